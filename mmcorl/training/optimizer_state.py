"""Optimizer state as one safetensors file, whole and by parameter name: bit-exact, and without pickle."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.nn import Parameter

from mmcorl.agents.whole import in_host_memory, whole
from mmcorl.errors import MmcorlError


@dataclass(frozen=True)
class OptimizerState:
    """What an optimizer knows, in host memory, however its parameters lie over ranks."""

    groups: list[dict[str, Any]]
    """The settings of each group; its `params` are the names of its parameters."""
    tensors: dict[str, Tensor] = field(default_factory=dict)
    """Under `NAME.KEY`."""
    numbers: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By name and key."""

    def put(self, name: str, key: str, value: Any) -> None:
        """Keep a copy of a value."""
        if isinstance(value, Tensor):
            # A copy each: safetensors refuses tensors that share memory, as tied or fused state may.
            self.tensors[f"{name}.{key}"] = in_host_memory(value)
        else:
            self.numbers.setdefault(name, {})[key] = value

    def write(self, path: Path) -> None:
        """Write it; settings and numbers are JSON in the header of the file."""
        header = {"groups": json.dumps(self.groups), "numbers": json.dumps(self.numbers)}
        save_file(self.tensors, path, metadata=header)

    def by_name(self) -> dict[str, dict[str, Any]]:
        """Tensors and numbers of each parameter."""
        state = {name: dict(values) for name, values in self.numbers.items()}
        for key, value in self.tensors.items():
            name, field_name = key.rsplit(".", 1)
            state.setdefault(name, {})[field_name] = value
        return state

    def settings(self, live: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The settings of each group as in the optimizer's `live` groups, whose members they do not name."""
        return [_as_before(group, slots) for group, slots in zip(self.groups, live, strict=True)]


def read_state(path: Path, members: Sequence[Sequence[str]]) -> OptimizerState:
    """Read what was written, of an optimizer with these parameters in its groups.

    Raises MmcorlError when the file is missing, damaged or of other parameters.
    """
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata()
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (not a mapping)
    except (OSError, SafetensorError) as error:
        raise MmcorlError(
            f"{path} cannot be read ({error}); remove its checkpoint to resume from the one before"
        ) from None
    state = OptimizerState(json.loads(header["groups"]), tensors, json.loads(header["numbers"]))
    saved = [group["params"] for group in state.groups]
    if [set(names) for names in saved] != [set(names) for names in members]:
        odd = sorted(set(chain(*saved)) ^ set(chain(*members)))
        raise MmcorlError(
            f"{path} holds optimizer state of other parameters (for instance {', '.join(odd[:3]) or 'other groups'});"
            " resume with the same model, adapters and `freeze` as the run was started with"
        )
    return state


def snapshot_optimizer(
    optimizer: torch.optim.Optimizer, names: Mapping[str, Parameter], keep: bool = True
) -> Callable[[Path], None]:
    """Copy the state of `optimizer` into host memory. What is returned writes the copy to a path, at any time.

    `names` are the model's parameters by name (`dict(model.named_parameters())`). Where these lie over ranks, all
    ranks call this, and those that do not `keep` copy nothing.
    """
    known = {id(parameter): name for name, parameter in names.items()}
    members = _members(optimizer, known)
    state = OptimizerState([{**g, "params": m} for g, m in zip(optimizer.param_groups, members, strict=True)])
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            for key, value in optimizer.state.get(parameter, {}).items():
                value = whole(value) if isinstance(value, Tensor) else value
                if keep:
                    state.put(known[id(parameter)], key, value)
    return state.write


def load_optimizer(optimizer: torch.optim.Optimizer, names: Mapping[str, Parameter], path: Path) -> None:
    """Give `optimizer` the state that a snapshot wrote, on the devices of its own parameters and laid out as they are.

    Raises MmcorlError when the file is missing, damaged or of other parameters than the optimizer's.
    """
    known = {id(parameter): name for name, parameter in names.items()}
    members = _members(optimizer, known)
    saved = read_state(path, members)
    layout = optimizer.state_dict()["param_groups"]
    index = dict(zip(chain(*members), chain(*(group["params"] for group in layout)), strict=True))
    optimizer.load_state_dict(
        {
            "state": {
                index[name]: {key: _laid_out_as(names[name], value) for key, value in values.items()}
                for name, values in saved.by_name().items()
            },
            "param_groups": [
                {**settings, "params": slots["params"]}
                for settings, slots in zip(saved.settings(layout), layout, strict=True)
            ],
        }
    )


def _members(optimizer: torch.optim.Optimizer, known: Mapping[int, str]) -> list[list[str]]:
    """The names of each group's parameters."""
    return [[known[id(parameter)] for parameter in group["params"]] for group in optimizer.param_groups]


def _laid_out_as(parameter: Parameter, value: Any) -> Any:
    """This rank's part of a whole value, where the parameter lies over ranks."""
    if not isinstance(parameter, DTensor) or not isinstance(value, Tensor) or value.shape != parameter.shape:
        return value
    mesh = parameter.device_mesh
    return distribute_tensor(value.to(mesh.device_type), mesh, parameter.placements, src_data_rank=None)


def _as_before(group: Mapping[str, Any], live: Mapping[str, Any]) -> dict[str, Any]:
    """JSON knows lists only; what is a tuple in the live group (AdamW's betas) becomes one again."""
    return {
        key: tuple(value) if isinstance(live.get(key), tuple) and isinstance(value, list) else value
        for key, value in group.items()
        if key != "params"
    }
