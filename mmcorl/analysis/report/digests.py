"""One pass over an agent's completions, however many: every vote, the spread of rewards, a few samples."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from statistics import fmean, stdev
from typing import TypeVar

from mmcorl.config import Config
from mmcorl.training.completions import read_completions
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
    """An agent's completions of one problem at one step, as they were logged."""

    step: int
    problem: str
    role: str | None
    """What the agent was to do, in a run whose agents read each other's texts; else None."""
    completions: list[Line]

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
    samples: list[Group] = field(default_factory=list)


def digest(folder: Path, config: Config, steps: Collection[int], per_step: int) -> Digest:
    """Read the completions once, a step at a time. `per_step` problems of each of `steps` are kept, evenly over the step.

    They are chosen in the order of their ids: agents of one cohort answer the same problems, so the same ones are kept
    of each. No folder gives an empty digest. Raises MmcorlError for a damaged file.
    """
    result = Digest()
    places = set(evenly(range(config.rollouts.problems_per_step), per_step))
    for step, lines in read_completions(folder, texts_of=steps):
        groups = [list(group) for _, group in groupby(lines, key=_problem_and_role)]
        result.count += sum(map(len, groups))
        first_roles = {group[0]["problem"]: group[0] for group in reversed(groups)}
        result.votes += [Vote(step, problem, line["own_vote"]) for problem, line in first_roles.items()]
        deviations = [stdev(rewards) for rewards in map(_rewards, groups) if rewards and len(rewards) > 1]
        if deviations:
            result.spread.append((step, fmean(deviations)))
        if step in steps:
            chosen = {name for place, name in enumerate(sorted(first_roles)) if place in places}
            for group in groups:
                problem, role = _problem_and_role(group[0])
                if problem in chosen:
                    result.samples.append(Group(step, problem, role, group))
    return result


def evenly(items: Sequence[T], count: int) -> list[T]:
    """At most `count` of the items, evenly spaced, the first and the last among them."""
    if len(items) <= count:
        return list(items)
    if count == 1:
        return [items[0]]
    return [items[round(place * (len(items) - 1) / (count - 1))] for place in range(count)]


def _problem_and_role(line: Line) -> tuple[str, str | None]:
    return line["problem"], line.get("role")


def _rewards(group: Sequence[Line]) -> list[float] | None:
    """The rewards of a group; None for a group without a label."""
    rewards = [line["reward"] for line in group]
    return None if None in rewards else rewards
