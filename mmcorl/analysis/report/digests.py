"""One pass over an agent's `completions.jsonl`, however long: every vote, the spread of rewards, a few samples."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from statistics import fmean, stdev
from typing import TypeVar

from mmcorl.config import Config
from mmcorl.errors import MmcorlError
from mmcorl.training.metrics import Line

T = TypeVar("T")


@dataclass(frozen=True)
class Vote:
    """What one agent elected for one problem at one step; None where it elected nothing."""

    step: int
    problem: str
    answer: str | None


@dataclass(frozen=True)
class Group:
    """An agent's completions of one problem at one step, as they were logged, and the advantage of each."""

    step: int
    problem: str
    completions: list[Line]
    advantages: list[float] | None
    """None where they were not logged and do not follow from the rewards."""

    @property
    def vote(self) -> str | None:
        """What supervised the agent."""
        return self.completions[0]["vote"]

    @property
    def own_vote(self) -> str | None:
        return self.completions[0]["own_vote"]


@dataclass
class Digest:
    """What the report keeps of an agent's completions."""

    count: int = 0
    votes: list[Vote] = field(default_factory=list)
    """The agent's own, in the order of the steps."""
    spread: list[tuple[int, float]] = field(default_factory=list)
    """Step, and the mean over its labelled groups of the standard deviation of the rewards in a group."""
    samples: dict[tuple[int, str], Group] = field(default_factory=dict)
    """By step and problem id."""


def digest(path: Path, config: Config, steps: Collection[int], per_step: int) -> Digest:
    """Read the file once, a step at a time. `per_step` groups of each of `steps` are kept, evenly over the step.

    Agents of one cohort answer the same problems in the same order, so the same ones are kept of each. No file gives
    an empty digest. Raises MmcorlError for a damaged line.
    """
    result = Digest()
    places = set(evenly(range(config.rollouts.problems_per_step), per_step))
    for step, lines in groupby(stream_lines(path), key=itemgetter("step")):
        groups = [list(group) for _, group in groupby(lines, key=itemgetter("problem"))]
        result.count += sum(map(len, groups))
        result.votes += [Vote(step, group[0]["problem"], group[0]["own_vote"]) for group in groups]
        deviations = [stdev(rewards) for rewards in map(_rewards, groups) if rewards and len(rewards) > 1]
        if deviations:
            result.spread.append((step, fmean(deviations)))
        if step in steps:
            kept = {place: group for place, group in enumerate(groups) if place in places}
            advantages = _advantages(groups, config)
            for place, group in kept.items():
                problem = group[0]["problem"]
                result.samples[step, problem] = Group(step, problem, group, advantages[place])
    return result


def stream_lines(path: Path) -> Iterator[Line]:
    """The records of a JSONL file one by one, as `mmcorl.files.read_lines` gives them all at once."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return  # a killed process could not finish it
            try:
                yield json.loads(line)
            except ValueError as error:
                raise MmcorlError(
                    f"{path}, line {number} is not JSON ({error}); the file was changed or damaged"
                ) from None


def evenly(items: Sequence[T], count: int) -> list[T]:
    """At most `count` of the items, evenly spaced, the first and the last among them."""
    if len(items) <= count:
        return list(items)
    if count == 1:
        return [items[0]]
    return [items[round(place * (len(items) - 1) / (count - 1))] for place in range(count)]


def _rewards(group: Sequence[Line]) -> list[float] | None:
    """The rewards of a group; None for a group without a label."""
    rewards = [line["reward"] for line in group]
    return None if None in rewards else rewards


def _advantages(groups: Sequence[Sequence[Line]], config: Config) -> list[list[float] | None]:
    """The advantages of all groups of a step: as logged, else as training derives them from the rewards."""
    if all("advantage" in line for group in groups for line in group):
        return [[line["advantage"] for line in group] for group in groups]
    if len(set(map(len, groups))) > 1:
        return [None] * len(groups)  # of a step that is not all there
    import torch  # only older logs need it

    from mmcorl.training.grpo import group_advantages

    rewards = [_rewards(group) for group in groups]
    values = [[0.0] * len(group) if row is None else row for group, row in zip(groups, rewards, strict=True)]
    labelled = torch.tensor([row is not None for row in rewards])
    return [
        [float(value) for value in row]
        for row in group_advantages(torch.tensor(values), labelled, config.loss.scale)
    ]
