"""The plan as tables, and what to change where it does not fit."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from rich.console import Console
from rich.table import Table

from mmcorl.config import Config
from mmcorl.errors import MmcorlError
from mmcorl.planning.advice import cheapest_changes
from mmcorl.planning.items import MOMENTS
from mmcorl.planning.plan import AgentPlan, agents_by_device, peak_of_device, plan_run
from mmcorl.planning.shapes import ModelShape, read_shape

_GIB = 1 << 30
_HEADS = ("sampling", "forward", "backward", "optimiser step")
_RESERVE = 0.95
"""Of a device's memory: the rest goes to fragments between tensors."""


@dataclass(frozen=True)
class Device:
    """What agents run on: GPUs of so many bytes each, or a CPU and the host's memory."""

    bytes: int
    is_gpu: bool
    count: int = 1

    @property
    def room(self) -> int:
        """Bytes that a plan may fill."""
        return round(self.bytes * _RESERVE)


def device_here(gpu_gib: float | None) -> Device:
    """GPUs of `gpu_gib` where that is given; else the smallest visible GPU, or the host's memory where there is none.

    Raises MmcorlError for a `gpu_gib` that is no size.
    """
    if gpu_gib is not None:
        if not 0 < gpu_gib < math.inf:
            raise MmcorlError(
                f"--gpu-gib {gpu_gib:g} is no size; give the GiB of one GPU, as in --gpu-gib 80"
            )
        return Device(round(gpu_gib * _GIB), is_gpu=True)
    if torch.cuda.is_available():
        count = torch.cuda.device_count()
        sizes = [torch.cuda.get_device_properties(i).total_memory for i in range(count)]
        return Device(min(sizes), True, count)
    return Device(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), is_gpu=False)


def print_plan(config: Config, names: Sequence[str], device: Device, console: Console) -> bool:
    """Print the plan of those agents that have a model here, and of every device. Returns whether all of it fits.

    Raises MmcorlError for a model whose configuration cannot be read.
    """
    names = [name for name in names if config.agents[name].endpoint is None]
    shapes = {name: read_shape(config.agents[name].model) for name in names}
    plans = plan_run(config, shapes, device.bytes if device.is_gpu else None)
    for name, plan in plans.items():
        agent = config.agents[name]
        where = f"{agent.ranks} processes, each" if agent.ranks > 1 else "1 process"
        shape = (
            f"{plan.shape.model_type}, {_count(plan.shape.total)} parameters, {_count(plan.trained)} trained"
        )
        console.print(f"[b]{name}: {shape}, {where}[/b]", highlight=False)
        console.print(_agent_table(plan))
        console.print()
    count = max(device.count, *(config.agents[name].ranks for name in names), 1)
    places = agents_by_device(config, names, count) if device.is_gpu else {0: _processes(config, names)}
    kind, spare = ("GPU" if device.is_gpu else "host"), device.bytes - device.room
    room = f"{_gib(device.bytes)} GiB, {_gib(spare)} of them left for gaps between tensors"
    console.print(f"[b]each {kind}: {room}[/b]", highlight=False)
    console.print(_device_table(config, plans, places, device, kind))
    crowded = {
        index: here
        for index, here in places.items()
        if peak_of_device(config, [plans[n] for n in here]) > device.room
    }
    for line in dict.fromkeys(
        line for here in crowded.values() for line in _advice(config, shapes, here, device)
    ):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    return not crowded


def _processes(config: Config, names: Sequence[str]) -> list[str]:
    return [name for name in names for _ in range(config.agents[name].ranks)]


def _agent_table(plan: AgentPlan) -> Table:
    most = max(plan.total(moment) for moment in MOMENTS)
    unit, size = ("GiB", _GIB) if most >= _GIB else ("MiB", 1 << 20)
    table = Table()
    table.add_column(unit)
    for head in _HEADS:
        table.add_column(head, justify="right")
    for item in plan.items:
        table.add_row(item.name, *(_in(getattr(item, moment), size) for moment in MOMENTS))
    table.add_section()
    table.add_row("total", *(_in(plan.total(moment), size) for moment in MOMENTS), style="bold")
    return table


def _device_table(
    config: Config,
    plans: Mapping[str, AgentPlan],
    places: Mapping[int, list[str]],
    device: Device,
    kind: str,
) -> Table:
    table = Table()
    table.add_column(kind)
    table.add_column("agents")
    table.add_column("peak in GiB", justify="right")
    table.add_column()
    for here, indices in _alike(places).items():
        peak = peak_of_device(config, [plans[name] for name in here])
        agents = ", ".join(
            f"{name} x {here.count(name)}" if here.count(name) > 1 else name for name in dict.fromkeys(here)
        )
        shown = ", ".join(map(str, indices)) if device.is_gpu else ""
        table.add_row(shown, agents, _gib(peak), "fits" if peak <= device.room else "does not fit")
    return table


def _alike(places: Mapping[int, Sequence[str]]) -> dict[tuple[str, ...], list[int]]:
    """Devices by the processes on them."""
    alike: dict[tuple[str, ...], list[int]] = {}
    for index, here in places.items():
        alike.setdefault(tuple(here), []).append(index)
    return alike


def _advice(
    config: Config, shapes: Mapping[str, ModelShape], here: list[str], device: Device
) -> Iterator[str]:
    """A line for each change, agent after agent, until they fit together."""
    device_bytes = device.bytes if device.is_gpu else None

    def peak(changed: Config) -> int:
        return peak_of_device(
            changed, [plan_run(changed, {name: shapes[name]}, device_bytes)[name] for name in here]
        )

    yield f"{', '.join(dict.fromkeys(here))}: change, in this order and each on top of the one before,"
    now = config
    for name in dict.fromkeys(here):
        for change, then in cheapest_changes(now, name, peak, device.room):
            yield f"  {change.settings}  -> {_gib(then)} GiB  ({change.cost})"
            now = change.config
    if peak(now) > device.room:
        yield "  and then spread the agents over more devices, or take smaller models: this does not fit yet"


def _count(parameters: int) -> str:
    return f"{parameters / 1e9:.2f} B" if parameters >= 1e7 else f"{parameters / 1e6:.2f} M"


def _gib(size: int) -> str:
    return _in(size, _GIB)


def _in(size: int, unit: int) -> str:
    if not size:
        return ""
    return f"{size / unit:.1f}" if size >= unit else f"{size / unit:.2f}"
