"""Everything whole on every rank: ranks meet once an update, to add up their gradients."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import torch
from torch import Tensor

from mmcorl.agents.agent import Agent
from mmcorl.config import OptimizerConfig
from mmcorl.training.optimizer_state import load_optimizer, snapshot_optimizer
from mmcorl.training.optimizers import optimizer_of
from mmcorl.training.world import World


class Replicated:
    """See `Layout`."""

    lockstep = False

    def __init__(self, agent: Agent, world: World, optimizer: OptimizerConfig) -> None:
        self.agent, self.world = agent, world
        self.optimizer, self.clip_norm = optimizer_of(agent, optimizer), optimizer.clip_norm
        self.parameters = [p for p in agent.model.parameters() if p.requires_grad]

    def whole(self) -> AbstractContextManager[None]:
        return nullcontext()

    def zero_grad(self) -> None:
        self.optimizer.zero_grad()

    def backward(self, loss: Tensor, last: bool) -> None:
        loss.backward()

    def step(self) -> float:
        gradients = zero_where_none(self.parameters)
        self.world.sum(gradients)
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, self.clip_norm)
        if torch.isfinite(norm):
            self.optimizer.step()
        return float(norm)

    def snapshot(self) -> Callable[[Path], None]:
        return snapshot_optimizer(
            self.optimizer, dict(self.agent.model.named_parameters()), keep=self.world.is_first
        )

    def load(self, path: Path) -> None:
        load_optimizer(self.optimizer, dict(self.agent.model.named_parameters()), path)


def zero_where_none(parameters: list[torch.nn.Parameter]) -> list[Tensor]:
    """The gradients, which become zero where no live completion reached a parameter."""
    for parameter in parameters:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    return [parameter.grad for parameter in parameters if parameter.grad is not None]
