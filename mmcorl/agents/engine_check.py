"""Does a second engine sample from the policy's distribution? Compared on one prompt with and one without images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from mmcorl.agents.agent import Agent
from mmcorl.agents.batches import TokenGroup
from mmcorl.errors import MmcorlError
from mmcorl.problems import IMAGE_MARKER, Problem

_SAMPLES, _MOST_TOKENS = 2, 32


def engine_gap(agent: Agent, problems: Sequence[Problem], max_tokens: int, limit: float) -> float:
    """Largest difference in nats, over all sampled tokens, between the engine's log-probabilities and the policy's.

    Looks at the first of `problems` that has images and the first that has none; where all have, that one without its
    images. Raises MmcorlError beyond `limit`, or where the difference is not a number, and says what may differ.
    """
    gaps = {
        "with images": _gap(agent, next((p for p in problems if p.images), None), max_tokens),
        "without": _gap(agent, next((p for p in problems if not p.images), _blind(problems[0])), max_tokens),
    }
    worst = max(gaps.values())
    if all(gap <= limit for gap in gaps.values()):
        return worst
    seen = ", ".join(f"{gap:.2g} nats {kind}" for kind, gap in gaps.items())
    cause = "weights, temperature or banned tokens"
    if gaps["without"] <= limit:
        cause = "the vision part's weights, features kept from older ones, or how images are processed"
    raise MmcorlError(
        f"agent {agent.name}: log-probabilities of the rollout engine differ from the policy's by {seen}, and "
        f"rollouts.vllm.gap_limit is {limit:g}. What differs is {cause}. Raise the limit if it is rounding alone, or set "
        "rollouts.engine=transformers"
    )


def _gap(agent: Agent, problem: Problem | None, max_tokens: int) -> float:
    """The difference on one problem; 0 without one."""
    if problem is None:
        return 0.0
    [rollout] = agent.rollout(
        [problem],
        samples=_SAMPLES,
        max_tokens=min(_MOST_TOKENS, max_tokens),
        noise_key=("engine",),
        temperature=agent.policy.temperature,
    )
    group = TokenGroup(agent.encode(problem), [torch.tensor(c.token_ids) for c in rollout.completions])
    with torch.no_grad():
        policy = agent.policy.logprobs([group]).cpu()
    return float((policy - torch.tensor([x for c in rollout.completions for x in c.logprobs])).abs().max())


def _blind(problem: Problem) -> Problem:
    return replace(
        problem,
        id=f"{problem.id} without its images",
        question=problem.question.replace(IMAGE_MARKER, ""),
        images=(),
    )
