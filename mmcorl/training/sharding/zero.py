"""Optimiser state and gradients in parts by DeepSpeed's ZeRO, at stage 3 the weights too."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import Parameter

from mmcorl.agents.agent import Agent
from mmcorl.agents.extras import require_extra
from mmcorl.config import Offload, OptimizerConfig
from mmcorl.training.optimizer_state import OptimizerState, read_state
from mmcorl.training.optimizers import optimizer_of
from mmcorl.training.world import World


@dataclass(frozen=True)
class _Place:
    """Where this rank's part of a flattened parameter is: `size` numbers from `start` on, in `flat` from `offset` on.

    `flat` is a part of the weights of many parameters, one tensor to the optimizer.
    """

    flat: Tensor
    offset: int
    start: int
    size: int


class ZeroLayout:
    """See `Layout`. The optimiser steps flat parts of the weights, which changes nothing where it is elementwise."""

    lockstep = True

    def __init__(
        self, agent: Agent, world: World, optimizer: OptimizerConfig, stage: int, offload: Collection[Offload]
    ) -> None:
        self.agent, self.world, self.stage = agent, world, stage
        deepspeed = _deepspeed(stage)
        world.connect()
        self.optimizer = optimizer_of(agent, optimizer)
        names = {id(parameter): name for name, parameter in agent.model.named_parameters()}
        self._members = [[names[id(p)] for p in group["params"]] for group in self.optimizer.param_groups]
        self.engine: Any = deepspeed.initialize(
            model=agent.model,
            optimizer=self.optimizer,
            config=_options(stage, offload, optimizer.clip_norm, agent.policy.autocast),
        )[0]
        agent.policy.forward = self.engine
        self._zero = self.engine.optimizer
        self._is_whole = False

    @contextmanager
    def whole(self) -> Iterator[None]:
        if self.stage < 3 or self._is_whole:
            yield
            return
        from deepspeed.runtime.zero import GatheredParameters  # pyright: ignore[reportMissingImports]

        self._is_whole = True
        hooks = self._zero.parameter_offload
        try:
            # What gathers and releases weights around every module would have to be in step on all ranks.
            hooks._remove_module_hooks()
            hooks.forward_hooks, hooks.backward_hooks = [], []
            with GatheredParameters(list(self.agent.model.parameters())):
                yield
        finally:
            hooks.setup_zero_stage3_hooks()
            self._is_whole = False

    def zero_grad(self) -> None:
        self._zero.zero_grad()

    def backward(self, loss: Tensor, last: bool) -> None:
        self.engine.set_gradient_accumulation_boundary(last)
        self.engine.backward(loss * self.world.size)  # DeepSpeed takes the mean over ranks

    def step(self) -> float:
        self.engine.step()
        return float(self.engine.get_global_grad_norm())

    def snapshot(self) -> Callable[[Path], None]:
        settings = zip(self.optimizer.param_groups, self._members, strict=True)
        state = OptimizerState([{**group, "params": members} for group, members in settings])
        for name, place, parameter in self._places():
            for key, value in self.optimizer.state.get(place.flat, {}).items():
                if value.shape == place.flat.shape:
                    value = self._gathered(value, place, parameter)
                if self.world.is_first:
                    state.put(name, key, value)
        return state.write

    def load(self, path: Path) -> None:
        saved = read_state(path, self._members)
        for group, settings in zip(
            self.optimizer.param_groups, saved.settings(self.optimizer.param_groups), strict=True
        ):
            group.update(settings)
        by_name = saved.by_name()
        for name, place, _ in self._places():
            part = self.optimizer.state[place.flat]
            for key, value in by_name.get(name, {}).items():
                if value.ndim == 0:  # the number of steps, which is the same for all
                    part[key] = value.clone()
                    continue
                if key not in part:
                    part[key] = torch.zeros_like(place.flat)
                mine = value.flatten()[place.start : place.start + place.size]
                part[key][place.offset : place.offset + place.size] = mine.to(place.flat.device)

    def _gathered(self, values: Tensor, place: _Place, parameter: Parameter) -> Tensor:
        """A parameter's values out of what all ranks hold for it."""
        shape = getattr(parameter, "ds_shape", parameter.shape)
        gathered = torch.zeros(shape.numel(), device=self.world.device)
        gathered[place.start : place.start + place.size] = values[
            place.offset : place.offset + place.size
        ].to(gathered.device)
        dist.all_reduce(gathered)  # each number is on one rank, and zero on the others
        return gathered.view(shape)

    def _places(self) -> Iterator[tuple[str, _Place, Parameter]]:
        parameters = dict(self.agent.model.named_parameters())
        for number, members in enumerate(self._members):
            for name in members:
                parameter = parameters[name]
                yield name, self._place(parameter, number), parameter

    def _place(self, parameter: Any, group: int) -> _Place:
        if self.stage == 3:
            part, offset, size = self._zero.grad_position[self._zero.get_param_id(parameter)]
            start = min(size * self.world.rank, parameter.ds_numel)
            size = min(size, parameter.ds_numel - start)  # the last part is filled up with zeros
            return _Place(self._zero.fp32_partitioned_groups_flat[part], offset, start, size)
        flat, mapping = self._zero.single_partition_of_fp32_groups[group], parameter._hp_mapping
        if mapping is None:
            return _Place(flat, 0, 0, 0)
        mine, its = mapping.hp_fragment_address, mapping.lp_fragment_address
        return _Place(flat, mine.start, its.start, its.numel)


def _deepspeed(stage: int) -> Any:
    """DeepSpeed, imported. Raises MmcorlError where it is not installed."""
    deepspeed: Any = require_extra("deepspeed", f"sharding=zero{stage}", "scale")
    logging.getLogger("DeepSpeed").setLevel(logging.WARNING)
    # On a CPU it would compile its own sum over ranks when it starts; gloo's needs no compiler.
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    return deepspeed


def _options(
    stage: int, offload: Collection[Offload], clip_norm: float, autocast: torch.dtype | None
) -> dict[str, Any]:
    """DeepSpeed's configuration. Batches are the learner's own affair, and the loss is one of a whole update."""
    zero: dict[str, Any] = {"stage": stage}
    if "optimizer" in offload:
        zero["offload_optimizer"] = {"device": "cpu"}
    if "parameters" in offload:
        zero["offload_param"] = {"device": "cpu"}
    options: dict[str, Any] = {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 1,
        "gradient_clipping": clip_norm,
        "zero_optimization": zero,
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,  # the optimiser stays the one that all layouts have
    }
    if autocast is not None:
        # Its list of layers whose weights and gradients travel in half precision stays empty: sums are in float32.
        dtype = str(autocast).removeprefix("torch.")
        options["torch_autocast"] = {"enabled": True, "dtype": dtype, "lower_precision_safe_modules": []}
    return options
