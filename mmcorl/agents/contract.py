"""The contract that every backbone keeps. `mmcorl-check` runs it on any model; a test runs it on tiny ones."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from PIL import Image, ImageDraw
from torch import Tensor

from mmcorl.agents.agent import Agent, stop_ids
from mmcorl.agents.batches import TokenGroup
from mmcorl.agents.processors import Prompt, PromptBuilder
from mmcorl.config import AgentConfig, RolloutsConfig
from mmcorl.errors import PromptTooLong
from mmcorl.problems import Problem, RolloutGroup

SAMPLES, MAX_TOKENS = 3, 12


class BrokenContract(AssertionError):
    """A point of the contract does not hold; the message says what was seen and where to mend it."""


@dataclass(frozen=True)
class Outcome:
    """One point of the contract: what it asks, whether it holds, and what was measured."""

    point: str
    holds: bool
    detail: str


@dataclass(frozen=True)
class Trial:
    """What the points work on: an agent, problems of several shapes, their prompts and sampled completions."""

    agent: Agent
    problems: list[Problem]
    prompts: list[Prompt]
    groups: list[TokenGroup]
    sampled: Tensor


Point = Callable[[Trial], str]

# What models raise that do not take what they are given.
_FAILURES = (
    BrokenContract,
    ValueError,
    RuntimeError,
    LookupError,
    TypeError,
    AttributeError,
)


def check(agent_config: AgentConfig) -> Iterator[Outcome]:
    """Run every point on a model, in float32; a point that raises is one that does not hold."""
    agent = Agent.load("check", agent_config)
    try:
        trial = prepare(agent)
    except _FAILURES as error:
        yield Outcome("Problems become prompts and prompts completions", False, _named(error))
        return
    for point in POINTS:
        title = (point.__doc__ or "").splitlines()[0].rstrip(".")
        try:
            yield Outcome(title, True, point(trial))
        except _FAILURES as error:
            yield Outcome(title, False, _named(error))


def prepare(agent: Agent) -> Trial:
    """Problems with no, one and two images of different shapes (where the model sees images), and rollouts of them."""
    problems = sample_problems(agent.backbone.sees_images)
    prompts = [agent.encode(problem) for problem in problems]
    rollouts = _sampled(agent, problems)
    groups = [
        TokenGroup(prompt, [torch.tensor(c.token_ids) for c in rollout.completions])
        for prompt, rollout in zip(prompts, rollouts, strict=True)
    ]
    sampled = torch.tensor([x for rollout in rollouts for c in rollout.completions for x in c.logprobs])
    return Trial(agent, problems, prompts, groups, sampled)


def sample_problems(images: bool) -> list[Problem]:
    """Small problems of different lengths, with drawn images of different shapes where asked."""
    texts = ["What is 2 + 3?", "How many circles are there in the picture? Count the red ones as well."]
    problems = [Problem(f"text-{i}", text) for i, text in enumerate(texts)]
    if images:
        wide, tall, square = (_drawing(*size) for size in ((168, 84), (84, 140), (84, 84)))
        problems += [
            Problem("wide", texts[1], (wide,)),
            Problem("tall", texts[0], (tall,)),
            Problem(
                "two",
                "Which is larger, <image> or <image>?",
                (square, wide),
                ("the first", "the second"),
                "choice",
            ),
        ]
    return problems


def every_part_has_parameters(trial: Trial) -> str:
    """Every part of the model has parameters of its own, so that it can be frozen."""
    counts = dict.fromkeys(
        ("vision", "projector", "text") if trial.agent.backbone.sees_images else ("text",), 0
    )
    for name, parameter in trial.agent.model.named_parameters():
        part = trial.agent.backbone.part_of(name)
        counts[part] = counts.get(part, 0) + parameter.numel()
    if not all(counts.values()):
        raise BrokenContract(f"parameters: {counts} (Backbone.vision_names, projector_names)")
    return ", ".join(f"{part} {count / 1e6:.2f} M" for part, count in counts.items())


def placeholders_equal_features(trial: Trial) -> str:
    """Image placeholder tokens equal the feature rows of the vision part."""
    if not trial.agent.backbone.sees_images:
        return "text only"
    counts = []
    for prompt in trial.prompts:
        rows = trial.agent.backbone.feature_rows(prompt.vision) if prompt.vision else 0
        tokens = _count(prompt.ids, trial.agent.backbone.placeholder_ids())
        if rows != tokens:
            raise BrokenContract(f"{prompt.problem_id}: {tokens} tokens, {rows} rows (Backbone.feature_rows)")
        counts.append(tokens)
    if not any(counts):
        raise BrokenContract("no prompt has an image token (Backbone.placeholder_ids, or the chat template)")
    return f"{counts} tokens"


def long_prompt_is_refused(trial: Trial) -> str:
    """A prompt that does not fit is refused with its id, never cut."""
    prompt, problem, built = trial.prompts[-1], trial.problems[-1], trial.agent.prompts
    builder = PromptBuilder(
        built.model, built.processor, built.backbone, built.prompt, built.images, len(prompt.ids) - 1
    )
    try:
        builder.build(problem)
    except PromptTooLong as error:
        if problem.id in str(error):
            return f"{len(prompt.ids)} tokens refused at a limit of {len(prompt.ids) - 1}"
        raise BrokenContract(f"the refusal does not name problem {problem.id!r}: {error}") from error
    raise BrokenContract("a prompt one token too long was taken")


def placeholders_are_never_sampled(trial: Trial) -> str:
    """The policy can never sample an image placeholder, however likely the model finds it."""
    banned = sorted(trial.agent.backbone.placeholder_ids())
    if not banned:
        return "text only"
    with _favour(trial.agent, banned):
        for group in trial.agent.rollout(trial.problems[:1], samples=8, max_tokens=4, noise_key=("banned",)):
            for completion in group.completions:
                if set(banned) & set(completion.token_ids):
                    raise BrokenContract(f"sampled {completion.token_ids} although {banned} are banned")
    return f"banned: {banned}"


def stop_tokens_are_honoured(trial: Trial) -> str:
    """Every stop token of the generation config ends a completion, and is part of it."""
    stops = stop_ids(trial.agent.model, trial.agent.prompts.tokenizer)
    for stop in stops:
        with _favour(trial.agent, [stop]):
            for group in trial.agent.rollout(
                trial.problems[:1], samples=2, max_tokens=4, noise_key=("stop",)
            ):
                for completion in group.completions:
                    if completion.token_ids != (stop,) or not completion.finished:
                        raise BrokenContract(f"stop token {stop} gave {completion.token_ids}")
    tokenizer = trial.agent.prompts.tokenizer
    return ", ".join(f"{tokenizer.convert_ids_to_tokens(stop)} ({stop})" for stop in stops)


def shared_prefix_equals_plain(trial: Trial) -> str:
    """Log-probabilities and gradients with a shared prefix equal those of the full forward."""
    policy = trial.agent.policy
    if not policy.shared_prefix:
        return "falls back to plain rows"
    shared, shared_gradient = _logprobs_and_gradient(trial, policy.shared_logprobs)
    plain, plain_gradient = _logprobs_and_gradient(trial, policy.plain_logprobs)
    gap = float((shared - plain).abs().max())
    largest = max(float(g.abs().max()) for g in plain_gradient.values())
    gradient_gap = (
        max(float((shared_gradient[n] - g).abs().max()) for n, g in plain_gradient.items()) / largest
    )
    if gap > 1e-4 or gradient_gap > 1e-3 or shared_gradient.keys() != plain_gradient.keys():
        raise BrokenContract(f"log-probs differ by {gap:.2g}, gradients by {gradient_gap:.2g} of the largest")
    return f"log-probs {gap:.1e}, gradients {gradient_gap:.1e} of the largest"


def sampler_equals_policy(trial: Trial) -> str:
    """Log-probabilities of the sampler equal those of the policy."""
    with torch.no_grad():
        gap = float((trial.agent.policy.logprobs(trial.groups) - trial.sampled).abs().max())
    if gap > 1e-4:
        raise BrokenContract(
            f"they differ by {gap:.2g} nats (positions of the cache, or Backbone.token_inputs)"
        )
    return f"{gap:.1e} nats"


def greedy_equals_generate(trial: Trial) -> str:
    """Greedy rollouts equal those of `generate`, token for token."""
    agent, model = trial.agent, trial.agent.model
    model.eval()
    try:
        for problem, prompt in zip(trial.problems, trial.prompts, strict=True):
            [group] = agent.rollout([problem], samples=1, max_tokens=MAX_TOKENS, noise_key=None)
            inputs = {name: value[None] for name, value in prompt.tokens.items()} | prompt.vision
            ours = list(group.completions[0].token_ids)
            theirs = model.generate(  # pyright: ignore[reportCallIssue]
                input_ids=prompt.ids[None],
                attention_mask=torch.ones_like(prompt.ids)[None],
                do_sample=False,
                max_new_tokens=MAX_TOKENS,
                repetition_penalty=1.0,  # some generation configs ask for one, which no policy could learn from
                bad_words_ids=[[token] for token in agent.backbone.placeholder_ids()] or None,
                **inputs,
            )[0, len(prompt.ids) :].tolist()
            if ours != theirs:
                raise BrokenContract(f"{problem.id}: {ours} against {theirs}")
    finally:
        model.train()
    return f"{len(trial.problems)} prompts"


def batching_changes_nothing(trial: Trial) -> str:
    """A prompt's rollouts do not depend on the prompts beside it."""
    together = _sampled(trial.agent, trial.problems)
    for problem, group in zip(trial.problems, together, strict=True):
        [alone] = _sampled(trial.agent, [problem])
        if [c.token_ids for c in alone.completions] != [c.token_ids for c in group.completions]:
            raise BrokenContract(f"{problem.id} gives other completions alone than beside the others")
    return f"{len(trial.problems)} prompts, alone and together"


def reload_keeps_logits(trial: Trial) -> str:
    """Saved and reloaded, the model gives the same log-probabilities."""
    with tempfile.TemporaryDirectory() as folder:
        trial.agent.snapshot()(Path(folder))
        again = Agent.load(
            "reloaded",
            AgentConfig.model_validate(
                {"model": folder, "attention": trial.agent.model.config._attn_implementation}
            ),
            trial.agent.prompts.prompt,
            trial.agent.prompts.images,
            RolloutsConfig(temperature=trial.agent.policy.temperature),
        )
        prompts = [again.encode(problem) for problem in trial.problems]
        groups = [TokenGroup(p, g.completions) for p, g in zip(prompts, trial.groups, strict=True)]
        with torch.no_grad():
            gap = float(
                (again.policy.logprobs(groups) - trial.agent.policy.logprobs(trial.groups)).abs().max()
            )
    if gap > 1e-5:
        raise BrokenContract(f"they differ by {gap:.2g} nats (tied weights, or the processor's files)")
    return f"{gap:.1e} nats"


POINTS: tuple[Point, ...] = (
    every_part_has_parameters,
    placeholders_equal_features,
    long_prompt_is_refused,
    placeholders_are_never_sampled,
    stop_tokens_are_honoured,
    shared_prefix_equals_plain,
    sampler_equals_policy,
    greedy_equals_generate,
    batching_changes_nothing,
    reload_keeps_logits,
)


def _sampled(agent: Agent, problems: Sequence[Problem]) -> list[RolloutGroup]:
    """The rollouts that the points look at, at the policy's own temperature."""
    return agent.rollout(
        problems,
        samples=SAMPLES,
        max_tokens=MAX_TOKENS,
        noise_key=("contract",),
        temperature=agent.policy.temperature,
    )


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _logprobs_and_gradient(
    trial: Trial, logprobs: Callable[[Sequence[TokenGroup]], Tensor]
) -> tuple[Tensor, dict[str, Tensor]]:
    """Log-probabilities, and the gradient of a fixed weighting of them."""
    model = trial.agent.model
    model.zero_grad()
    values = logprobs(trial.groups)
    weights = torch.linspace(-1, 1, len(values), device=values.device)
    (values * weights).sum().backward()
    gradient = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    return values.detach(), gradient


@contextmanager
def _favour(agent: Agent, tokens: Sequence[int]) -> Iterator[None]:
    """Make the model all but certain of some tokens while the context is open."""

    def push(_module: torch.nn.Module, _inputs: object, logits: Tensor) -> Tensor:
        return logits.index_add(-1, torch.tensor(tokens), torch.full((*logits.shape[:-1], len(tokens)), 1e4))

    head = agent.model.get_output_embeddings()
    assert head is not None
    handle = head.register_forward_hook(push)
    try:
        yield
    finally:
        handle.remove()


def _count(ids: Tensor, tokens: frozenset[int]) -> int:
    return int(torch.isin(ids, torch.tensor(sorted(tokens))).sum())


def _drawing(width: int, height: int) -> Image.Image:
    image = Image.new("RGB", (width, height), (128, 128, 128))
    ImageDraw.Draw(image).ellipse((10, 10, width // 2, height // 2), fill=(200, 30, 30))
    return image
