"""The samples that the report shows: problems with their pictures, and what every agent made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter

from markupsafe import escape

from mmcorl.analysis.report.digests import Digest, Group, evenly
from mmcorl.analysis.report.problems import Problems, as_data_uri
from mmcorl.errors import MmcorlError
from mmcorl.problems import Problem

_TEXT_BYTES = 1_500_000
_IMAGE_BYTES = 1_500_000
_LONGEST, _SHORTEST = 6000, 300
_MOST_COMPLETIONS = 16
_MOST_IMAGES = 4


@dataclass(frozen=True)
class Shown:
    """One completion: its text, perhaps shortened in the middle, and what became of it."""

    text: str
    left_out: int
    """Characters that are not shown."""
    answer: str | None
    reward: float | None
    advantage: float | None
    """None where it was not logged."""


@dataclass(frozen=True)
class AgentSample:
    """One agent's part of a sample, in one role; of many completions, some evenly chosen."""

    agent: str
    """Its name, with the role where it has one."""
    own_vote: str | None
    vote: str | None
    completions: list[Shown]
    total: int


@dataclass(frozen=True)
class Sample:
    """A problem at a step, with every agent's completions. `problem` is None where the data is gone."""

    step: int
    problem_id: str
    problem: Problem | None
    gold: str | None
    images: list[str]
    """As `data:` addresses."""
    images_left_out: int
    agents: list[AgentSample]


def choose(digests: Mapping[str, Digest], problems: Problems, budget: float) -> list[Sample]:
    """The samples that the agents' digests kept, by step. `budget` is this run's share of the page's size."""
    kept = [(agent, group) for agent, found in digests.items() for group in found.samples]
    keys = sorted(dict.fromkeys((group.step, group.problem) for _, group in kept), key=itemgetter(0))
    count = sum(len(group.completions) for _, group in kept)
    longest = min(_LONGEST, max(_SHORTEST, int(budget * _TEXT_BYTES / max(1, count))))
    samples, room = [], budget * _IMAGE_BYTES
    for step, name in keys:
        problem = problems.by_id.get(name)
        images = _images(problem, int(room)) if problem else []
        room -= sum(map(len, images))
        agents = [
            _agent_sample(agent, group, longest)
            for agent, group in kept
            if (group.step, group.problem) == (step, name)
        ]
        left_out = len(problem.images) - len(images) if problem else 0
        samples.append(Sample(step, name, problem, problems.golds.get(name), images, left_out, agents))
    return samples


def _agent_sample(agent: str, group: Group, longest: int) -> AgentSample:
    shown = [
        Shown(*_shorten(line["text"], longest), line["answer"], line["reward"], line.get("advantage"))
        for line in evenly(group.completions, _MOST_COMPLETIONS)
    ]
    return AgentSample(
        f"{agent}, {group.role}" if group.role else agent,
        group.own_vote,
        group.vote,
        shown,
        len(group.completions),
    )


def _shorten(text: str, longest: int) -> tuple[str, int]:
    """The beginning and the end, where the answer stands, and how many characters are missing between them.

    `longest` is in bytes of the page, where a sign of markup takes five and one of Chinese three.
    """
    size = len(escape(text).encode())
    if size <= longest:
        return text, 0
    half = longest * len(text) // size // 2
    return f"{text[:half]}\n[...]\n{text[-half:]}", len(text) - 2 * half


def _images(problem: Problem, room: int) -> list[str]:
    """As many as fit into so many bytes; one that cannot be read is left out."""
    shown = []
    for image in problem.images[:_MOST_IMAGES]:
        try:
            address = as_data_uri(image)
        except MmcorlError:
            continue
        if len(address) > room:
            break
        room -= len(address)
        shown.append(address)
    return shown
