"""How an agent's weights, gradients and optimiser state lie over its ranks: whole on each, or in parts."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from mmcorl.agents.agent import Agent
from mmcorl.agents.engines.transformers import TransformersEngine
from mmcorl.config import Offload, OptimizerConfig, Sharding
from mmcorl.training.world import World


class Layout(Protocol):
    """The weights of one agent in training. But for `optimizer`, all ranks use it together."""

    optimizer: torch.optim.Optimizer
    """Holds the groups of learning rates."""
    lockstep: bool
    """Whether ranks meet inside a forward and backward, so that all have to make the same ones."""

    def whole(self) -> AbstractContextManager[None]:
        """Inside, each rank has the weights whole, for as many forwards without gradient as it needs."""
        ...

    def zero_grad(self) -> None:
        """Forget the gradients of the last update."""
        ...

    def backward(self, loss: Tensor, last: bool) -> None:
        """Add the gradients of one micro-batch's loss; `last` says that it is the update's last."""
        ...

    def step(self) -> float:
        """Add up gradients over ranks, clip them and update the weights. Returns the global norm before clipping.

        Parameters that no loss has reached have gradient zero. A norm that is not finite updates nothing.
        """
        ...

    def snapshot(self) -> Callable[[Path], None]:
        """Copy the optimiser's state, whole, into the first rank's memory. What is returned writes the copy to a file."""
        ...

    def load(self, path: Path) -> None:
        """Take up an optimiser state that a snapshot of any layout wrote."""
        ...


def open_layout(
    agent: Agent,
    world: World,
    optimizer: OptimizerConfig,
    sharding: Sharding = "none",
    offload: Collection[Offload] = (),
) -> Layout:
    """Lay the agent's weights out over its ranks. Its own engine then samples with whole ones.

    Raises MmcorlError where the library that it needs is not installed.
    """
    if sharding == "none":
        from mmcorl.training.sharding.replicated import Replicated

        return Replicated(agent, world, optimizer)
    if sharding == "fsdp2":
        from mmcorl.training.sharding.fsdp import FullyShardedLayout

        layout: Layout = FullyShardedLayout(agent, world, optimizer, offload)
    else:
        from mmcorl.training.sharding.zero import ZeroLayout

        layout = ZeroLayout(agent, world, optimizer, 2 if sharding == "zero2" else 3, offload)
    if isinstance(agent.engine, TransformersEngine):
        agent.engine.whole = layout.whole
    return layout
