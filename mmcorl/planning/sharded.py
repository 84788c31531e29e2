"""What changes where an agent's weights, gradients and optimiser state lie in parts over its ranks.

FSDP2 holds each part once. DeepSpeed's ZeRO holds the part of the weights that a rank updates a second time, and works
with buffers of its own (its defaults: buckets of 5e8 gradients, at stage 3 at most 1e9 weights whole at a time).
"""

from __future__ import annotations

from dataclasses import dataclass

from mmcorl.config import AgentConfig
from mmcorl.planning.memory import FLOAT32
from mmcorl.planning.shapes import ModelShape

_BUCKET = 500_000_000
_LIVE = 1_000_000_000


@dataclass(frozen=True)
class Shares:
    """Bytes that one rank holds."""

    weights: int
    gradients: int
    state: int
    gathered: int
    """Weights of the layers at work that are whole for the while, and buffers that gradients pass through."""
    stepping: int
    """What the optimiser's step needs beside them."""


def shares_of(
    agent: AgentConfig, shape: ModelShape, weights: int, trained: int, state: int, width: int, whole: bool
) -> Shares:
    """The shares of one rank of `weights` and `state` bytes, and of the gradients of `trained` parameters.

    `width` is the bytes of a number in the forward pass. `whole` says that weights are computed with in one piece, as
    in rollouts of transformers; then `gathered` is that of a rollout.
    """
    ranks, gradients = agent.ranks, trained * FLOAT32
    if agent.sharding == "none":
        return Shares(weights, gradients, state, 0, 0)
    part, state = gradients // ranks, state // ranks
    if agent.sharding == "zero2":
        shares = Shares(weights + part, part, state, min(_BUCKET, trained) * FLOAT32, part)
    elif agent.sharding == "zero3":
        live = shape.total if whole else min(_LIVE, shape.total)
        gathered = live * FLOAT32 + min(_BUCKET, trained) * FLOAT32
        # the step takes at most so many weights at a time
        stepping = min(_LIVE * FLOAT32, part)
        shares = Shares(weights // ranks + part, part, state, gathered, stepping)
    else:
        shares = Shares(weights // ranks, part, state, _gathered_by_fsdp(shape, width, whole), 0)
    return _offloaded(agent, shares, weights, part)


def _gathered_by_fsdp(shape: ModelShape, width: int, whole: bool) -> int:
    """Bytes of what FSDP2 has whole at the fullest moment.

    These are the layer at work and the next, and what is in no layer, as embedding and head, from forward to backward;
    then gradients of the layer and of the rest, until they are added up in float32.
    """
    if whole:
        return shape.total * width
    towers = [tower for tower in (shape.text, shape.vision) if tower is not None]
    largest = max(tower.parameters for tower in towers)
    outside = shape.total - sum(tower.layers * tower.parameters for tower in towers)
    return (outside + 2 * largest) * width + (outside + largest) * (width + FLOAT32)


def _offloaded(agent: AgentConfig, shares: Shares, weights: int, part: int) -> Shares:
    """What stays on the GPU of that. FSDP2 moves weights, gradients and state together."""
    if not agent.offload:
        return shares
    if agent.sharding == "fsdp2":
        return Shares(0, 0, 0, shares.gathered, 0)
    whole = weights if agent.sharding == "zero2" else weights // agent.ranks
    return Shares(0 if "parameters" in agent.offload else whole, part, 0, shares.gathered, 0)
