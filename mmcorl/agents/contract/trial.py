"""What the points of the contract work on, and how they say what they saw."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from PIL import Image, ImageDraw
from torch import Tensor

from mmcorl.agents.agent import Agent
from mmcorl.agents.batches import TokenGroup
from mmcorl.agents.processors import Prompt
from mmcorl.problems import Problem, RolloutGroup

SAMPLES, MAX_TOKENS = 3, 12


class BrokenContract(AssertionError):
    """A point of the contract does not hold; the message says what was seen."""


class Skipped(str):
    """What a point says that has nothing to look at in this model."""


@dataclass(frozen=True)
class Trial:
    """An agent, problems of several shapes, their prompts and sampled completions."""

    agent: Agent
    problems: list[Problem]
    prompts: list[Prompt]
    groups: list[TokenGroup]
    sampled: Tensor


@dataclass(frozen=True)
class Point:
    """One point of the contract: a check that says what it measured, and where to look when it does not hold.

    `mend` names attributes and methods of the backbone, and `cause` what is typically wrong with them.
    """

    check: Callable[[Trial], str]
    cause: str
    mend: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What the point asks for."""
        return (self.check.__doc__ or "").splitlines()[0].rstrip(".")

    def __call__(self, trial: Trial) -> str:
        return self.check(trial)


def prepare(agent: Agent) -> Trial:
    """Problems with no, one and two images of different shapes (where the model sees images), and rollouts of them."""
    problems = sample_problems(agent.backbone.sees_images)
    prompts = [agent.encode(problem) for problem in problems]
    rollouts = sampled_rollouts(agent, problems)
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


def sampled_rollouts(agent: Agent, problems: Sequence[Problem]) -> list[RolloutGroup]:
    """The rollouts that the points look at, at the policy's own temperature."""
    return agent.rollout(
        problems,
        samples=SAMPLES,
        max_tokens=MAX_TOKENS,
        noise_key=("contract",),
        temperature=agent.policy.temperature,
    )


def weighted_gradient(agent: Agent, logprobs: Callable[[], Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
    """Log-probabilities, and the gradient by parameter of a fixed weighting of them."""
    agent.model.zero_grad()
    values = logprobs()
    weights = torch.linspace(-1, 1, len(values), device=values.device)
    (values * weights).sum().backward()
    gradient = {n: p.grad.clone() for n, p in agent.model.named_parameters() if p.grad is not None}
    agent.model.zero_grad()
    return values.detach(), gradient


def gradient_gap(one: dict[str, Tensor], other: dict[str, Tensor]) -> float:
    """Largest difference, as a part of the largest gradient. Raises BrokenContract where they are of other parameters."""
    if odd := one.keys() ^ other.keys():
        raise BrokenContract(f"only one way gives {sorted(odd)[0]} a gradient")
    largest = max(float(gradient.abs().max()) for gradient in other.values())
    return max(float((one[name] - gradient).abs().max()) for name, gradient in other.items()) / largest


@contextmanager
def favouring(agent: Agent, tokens: Sequence[int]) -> Iterator[None]:
    """Make the model all but certain of some tokens while the context is open."""

    def push(_module: torch.nn.Module, _inputs: object, logits: Tensor) -> Tensor:
        favoured = torch.tensor(tokens, device=logits.device)
        return logits.index_add(
            -1, favoured, torch.full((*logits.shape[:-1], len(tokens)), 1e4, device=logits.device)
        )

    head = agent.model.get_output_embeddings()
    assert head is not None
    handle = head.register_forward_hook(push)
    try:
        yield
    finally:
        handle.remove()


def _drawing(width: int, height: int) -> Image.Image:
    image = Image.new("RGB", (width, height), (128, 128, 128))
    ImageDraw.Draw(image).ellipse((10, 10, width // 2, height // 2), fill=(200, 30, 30))
    return image
