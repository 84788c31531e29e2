"""The plan of a run: what each process of each agent holds, and what that makes on each device."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from mmcorl.config import Config
from mmcorl.planning.held import held, trained
from mmcorl.planning.items import MOMENTS, Item
from mmcorl.planning.load import load_of
from mmcorl.planning.shapes import ModelShape
from mmcorl.planning.work import work


@dataclass(frozen=True)
class AgentPlan:
    """What each process of an agent holds."""

    name: str
    shape: ModelShape
    trained: int
    """Parameters that are trained."""
    items: tuple[Item, ...]

    def total(self, moment: str) -> int:
        """Bytes of all items at one of `MOMENTS`."""
        return sum(getattr(item, moment) for item in self.items)

    @property
    def peak(self) -> int:
        """Bytes at the fullest moment."""
        return max(self.total(moment) for moment in MOMENTS)

    @property
    def idle(self) -> int:
        """Bytes held while the agent neither samples nor learns."""
        return sum(min(item.sampling, item.stepping) for item in self.items)


def plan_agent(config: Config, name: str, shape: ModelShape, device_bytes: int | None) -> AgentPlan:
    """The plan of agent `name`; `device_bytes` is the memory of its GPU, or None for a process on a CPU."""
    agent = config.agents[name]
    load = load_of(config, agent, shape)
    items = held(config, agent, shape, device_bytes) + work(config, agent, shape, load)
    return AgentPlan(name, shape, trained(agent, shape), tuple(item for item in items if any(_sizes(item))))


def _sizes(item: Item) -> list[int]:
    return [getattr(item, moment) for moment in MOMENTS]


def plan_run(
    config: Config, shapes: Mapping[str, ModelShape], device_bytes: int | None
) -> dict[str, AgentPlan]:
    """The plan of every agent in `shapes`, those that have a model of their own."""
    return {name: plan_agent(config, name, shape, device_bytes) for name, shape in shapes.items()}


def agents_by_device(config: Config, names: Collection[str], n_devices: int) -> dict[int, list[str]]:
    """The agents with a process on each device, named once for each process.

    The ranks of an agent without `devices` take the first devices.
    """
    places: dict[int, list[str]] = {}
    for name in names:
        agent = config.agents[name]
        for device in agent.devices or [rank % n_devices for rank in range(agent.ranks)]:
            places.setdefault(device, []).append(name)
    return dict(sorted(places.items()))


def peak_of_device(config: Config, plans: Sequence[AgentPlan]) -> int:
    """Bytes of processes that share a device: their peaks, or under `cohort.take_turns` one's beside what others keep."""
    if not config.cohort.take_turns:
        return sum(plan.peak for plan in plans)
    return sum(plan.idle for plan in plans) + max(plan.peak - plan.idle for plan in plans)
