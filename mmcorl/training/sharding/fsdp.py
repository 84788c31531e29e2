"""Weights, gradients and optimiser state in parts by torch's FSDP2: a layer is whole while it computes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

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
from mmcorl.training.sharding.replicated import Replicated, zero_where_none
from mmcorl.training.world import World


class FullyShardedLayout(Replicated):
    """As `Replicated`, of parts. Each layer of the model is one unit, and what is in no layer is another.

    Under `dtype=bfloat16` ranks send each other bfloat16 weights and float32 gradients; weights stay float32.
    """

    lockstep = True

    def __init__(
        self, agent: Agent, world: World, optimizer: OptimizerConfig, offload: Collection[Offload]
    ) -> None:
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
        super().__init__(agent, world, optimizer)
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

    def step(self) -> float:
        parts = [_part(gradient) for gradient in zero_where_none(self.parameters)]
        squares = torch.nn.utils.get_total_norm(parts).square().to(self.world.device)
        self.world.sum([squares])
        norm = squares.sqrt()
        if torch.isfinite(norm):
            torch._foreach_mul_(parts, float((self.clip_norm / (norm + 1e-6)).clamp(max=1.0)))
            self.optimizer.step()
        return float(norm)


def _part(gradient: Tensor) -> Tensor:
    """What this rank holds of it."""
    assert isinstance(gradient, DTensor)
    return gradient.to_local()
