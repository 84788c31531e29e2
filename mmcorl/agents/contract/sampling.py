"""Points about completions: what the sampler may draw, where it stops, and that nothing else changes it."""

from __future__ import annotations

import torch

from mmcorl.agents.agent import stop_ids
from mmcorl.agents.contract.trial import (
    MAX_TOKENS,
    BrokenContract,
    Skipped,
    Trial,
    favouring,
    sampled_rollouts,
)


def placeholders_are_never_sampled(trial: Trial) -> str:
    """The policy can never sample an image placeholder, however likely the model finds it."""
    banned = sorted(trial.agent.backbone.placeholder_ids())
    if not banned:
        return Skipped("text only")
    with favouring(trial.agent, banned):
        for group in trial.agent.rollout(trial.problems[:1], samples=8, max_tokens=4, noise_key=("banned",)):
            for completion in group.completions:
                if set(banned) & set(completion.token_ids):
                    raise BrokenContract(f"sampled {completion.token_ids} although {banned} are banned")
    return f"banned: {banned}"


def stop_tokens_are_honoured(trial: Trial) -> str:
    """Every stop token of the generation config ends a completion, and is part of it."""
    tokenizer = trial.agent.prompts.tokenizer
    stops = stop_ids(trial.agent.model, tokenizer)
    for stop in stops:
        with favouring(trial.agent, [stop]):
            for group in trial.agent.rollout(
                trial.problems[:1], samples=2, max_tokens=4, noise_key=("stop",)
            ):
                for completion in group.completions:
                    if completion.token_ids != (stop,) or not completion.finished:
                        raise BrokenContract(f"stop token {stop} gave {completion.token_ids}")
    return ", ".join(f"{tokenizer.convert_ids_to_tokens(stop)} ({stop})" for stop in stops)


def sampler_equals_policy(trial: Trial) -> str:
    """Log-probabilities of the sampler equal those of the policy."""
    limit = 1e-4
    with torch.no_grad():
        gap = float((trial.agent.policy.logprobs(trial.groups).cpu() - trial.sampled).abs().max())
    if not gap <= limit:
        raise BrokenContract(f"they differ by {gap:.2g} nats (limit {limit:g})")
    return f"{gap:.1e} nats (limit {limit:g})"


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
                input_ids=prompt.ids[None].to(model.device),
                attention_mask=torch.ones_like(prompt.ids)[None].to(model.device),
                do_sample=False,
                max_new_tokens=MAX_TOKENS,
                repetition_penalty=1.0,  # some generation configs ask for one, which no policy could learn from
                bad_words_ids=[[token] for token in agent.backbone.placeholder_ids()] or None,
                **{name: value.to(model.device) for name, value in inputs.items()},
            )[0, len(prompt.ids) :].tolist()
            if ours != theirs:
                raise BrokenContract(f"{problem.id}: {ours} against {theirs}")
    finally:
        model.train()
    return f"{len(trial.problems)} prompts"


def batching_changes_nothing(trial: Trial) -> str:
    """A prompt's rollouts do not depend on the prompts beside it."""
    together = sampled_rollouts(trial.agent, trial.problems)
    for problem, group in zip(trial.problems, together, strict=True):
        [alone] = sampled_rollouts(trial.agent, [problem])
        if [c.token_ids for c in alone.completions] != [c.token_ids for c in group.completions]:
            raise BrokenContract(f"{problem.id} gives other completions alone than beside the others")
    return f"{len(trial.problems)} prompts, alone and together"
