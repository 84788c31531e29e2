"""Optimizer state as one safetensors file, by parameter name: bit-exact, and without pickle."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from mmcorl.errors import MmcorlError


def snapshot_optimizer(
    optimizer: torch.optim.Optimizer, names: Mapping[str, torch.nn.Parameter]
) -> Callable[[Path], None]:
    """Copy the state of `optimizer` into host memory. What is returned writes the copy to a path, at any time.

    `names` are the model's parameters by name (`dict(model.named_parameters())`). Tensors of the state are stored
    as `NAME.KEY`; numbers and the settings of the parameter groups as JSON in the header of the file.
    """
    known = {id(parameter): name for name, parameter in names.items()}
    tensors: dict[str, torch.Tensor] = {}
    numbers: dict[str, dict[str, Any]] = {}
    groups: list[dict[str, Any]] = []
    for group in optimizer.param_groups:
        members = [known[id(parameter)] for parameter in group["params"]]
        groups.append({**group, "params": members})
        for name, parameter in zip(members, group["params"], strict=True):
            for key, value in optimizer.state.get(parameter, {}).items():
                if isinstance(value, torch.Tensor):
                    # A copy each: safetensors refuses tensors that share memory, as tied or fused state may.
                    copy = value.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)
                    tensors[f"{name}.{key}"] = copy
                else:
                    numbers.setdefault(name, {})[key] = value
    header = {"groups": json.dumps(groups), "numbers": json.dumps(numbers)}
    return partial(save_file, tensors, metadata=header)


def load_optimizer(
    optimizer: torch.optim.Optimizer, names: Mapping[str, torch.nn.Parameter], path: Path
) -> None:
    """Give `optimizer` the state that `snapshot_optimizer` wrote, on the devices of its own parameters.

    Raises MmcorlError when the file is missing, damaged or of other parameters than the optimizer's.
    """
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata()
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (not a mapping)
    except (OSError, SafetensorError) as error:
        raise MmcorlError(
            f"{path} cannot be read ({error}); remove its checkpoint to resume from the one before"
        ) from None
    groups: list[dict[str, Any]] = json.loads(header["groups"])
    state: dict[str, dict[str, Any]] = json.loads(header["numbers"])
    for key, value in tensors.items():
        name, field = key.rsplit(".", 1)
        state.setdefault(name, {})[field] = value

    known = {id(parameter): name for name, parameter in names.items()}
    layout = optimizer.state_dict()["param_groups"]
    live = [[known[id(parameter)] for parameter in group["params"]] for group in optimizer.param_groups]
    saved = [group["params"] for group in groups]
    if [set(members) for members in saved] != [set(members) for members in live]:
        odd = sorted(set(chain(*saved)) ^ set(chain(*live)))
        raise MmcorlError(
            f"{path} holds optimizer state of other parameters (for instance {', '.join(odd[:3]) or 'other groups'});"
            " resume with the same model, adapters and `freeze` as the run was started with"
        )
    index = dict(zip(chain(*live), chain(*(group["params"] for group in layout)), strict=True))
    optimizer.load_state_dict(
        {
            "state": {index[name]: values for name, values in state.items()},
            "param_groups": [
                {**_as_before(group, slots), "params": slots["params"]}
                for group, slots in zip(groups, layout, strict=True)
            ],
        }
    )


def _as_before(group: Mapping[str, Any], live: Mapping[str, Any]) -> dict[str, Any]:
    """JSON knows lists only; what is a tuple in the live group (AdamW's betas) becomes one again."""
    return {
        key: tuple(value) if isinstance(live.get(key), tuple) and isinstance(value, list) else value
        for key, value in group.items()
    }
