"""Weights, gradients and optimiser state in parts by torch's FSDP2: a layer is whole while it computes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (
    CPUOffloadPolicy,
    FSDPModule,
    MixedPrecisionPolicy,
    OffloadPolicy,
    fully_shard,
)
from torch.distributed.tensor import DTensor
from transformers.modeling_layers import GradientCheckpointingLayer

from mmcorl.agents.agent import Agent
from mmcorl.config import Offload, OptimizerConfig
from mmcorl.training.optimizer_state import load_optimizer, snapshot_optimizer
from mmcorl.training.optimizers import optimizer_of
from mmcorl.training.sharding.replicated import zero_where_none
from mmcorl.training.world import World


class FullyShardedLayout:
    """See `Layout`. Each layer of the model is one unit, and what is in no layer is another.

    Under `dtype=bfloat16` ranks send each other bfloat16 weights and float32 gradients; weights stay float32.
    """

    lockstep = True

    def __init__(
        self, agent: Agent, world: World, optimizer: OptimizerConfig, offload: Collection[Offload]
    ) -> None:
        self.agent, self.world = agent, world
        world.connect()
        mesh = init_device_mesh(world.device.type, (world.size,))
        precision = MixedPrecisionPolicy(
            param_dtype=agent.policy.autocast, reduce_dtype=torch.float32, cast_forward_inputs=False
        )
        place = CPUOffloadPolicy(pin_memory=world.device.type == "cuda") if offload else OffloadPolicy()
        layers = [m for m in agent.model.modules() if isinstance(m, GradientCheckpointingLayer)]
        for module in [*reversed(layers), agent.model]:
            fully_shard(module, mesh=mesh, mp_policy=precision, offload_policy=place)
        self.units = [module for module in agent.model.modules() if isinstance(module, FSDPModule)]
        for unit in self.units:
            # Every completion brings its weight in the loss, so gradients are added up and not averaged.
            unit.set_gradient_divide_factor(1.0)
            unit.set_force_sum_reduction_for_comms(True)
        self.parameters = [p for p in agent.model.parameters() if p.requires_grad]
        self.optimizer, self.clip_norm = optimizer_of(agent, optimizer), optimizer.clip_norm
        self._is_whole = False

    @contextmanager
    def whole(self) -> Iterator[None]:
        if self._is_whole:
            yield
            return
        self._is_whole = True
        try:
            for unit in self.units:
                unit.set_reshard_after_forward(False, recurse=False)
                unit.unshard()
            yield
        finally:
            for unit in self.units:
                unit.reshard()
                unit.set_reshard_after_forward(unit is not self.agent.model, recurse=False)
            self._is_whole = False

    def zero_grad(self) -> None:
        self.optimizer.zero_grad()

    def backward(self, loss: Tensor, last: bool) -> None:
        loss.backward()

    def step(self) -> float:
        parts = [_part(gradient) for gradient in zero_where_none(self.parameters)]
        squares = torch.nn.utils.get_total_norm(parts).square().to(self.world.device)
        self.world.sum([squares])
        norm = squares.sqrt()
        if torch.isfinite(norm):
            torch._foreach_mul_(parts, float((self.clip_norm / (norm + 1e-6)).clamp(max=1.0)))
            self.optimizer.step()
        return float(norm)

    def snapshot(self) -> Callable[[Path], None]:
        return snapshot_optimizer(
            self.optimizer, dict(self.agent.model.named_parameters()), keep=self.world.is_first
        )

    def load(self, path: Path) -> None:
        load_optimizer(self.optimizer, dict(self.agent.model.named_parameters()), path)


def _part(gradient: Tensor) -> Tensor:
    """What this rank holds of it."""
    assert isinstance(gradient, DTensor)
    return gradient.to_local()
