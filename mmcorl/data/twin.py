"""Twins: the same problems in other words, aligned by id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mmcorl.config import DataConfig
from mmcorl.data.loading import load_problems
from mmcorl.errors import MmcorlError
from mmcorl.problems import Problem

_SETTING = "data.twin"


def load_twin(problems: Sequence[Problem], path: str | Path) -> list[Problem]:
    """The other wording of each problem, in their order and under their ids.

    `path` is a data file or folder with the columns `id` and `question`. Images and options are those of the problem
    unless the file has its own; the kind is always the problem's. Raises MmcorlError when the file
    cannot be read, a problem has no twin, or one with another number of options.
    """
    twins = {twin.id: twin for twin in load_problems(DataConfig(path=str(path)), _SETTING).problems}
    if missing := [problem.id for problem in problems if problem.id not in twins]:
        raise MmcorlError(
            f"{_SETTING}={path} has no wording of {len(missing)} of {len(problems)} problems, such as {missing[0]!r}; "
            "give it a row with the id of every problem of data.train, or drop those problems from data.train"
        )
    return [_aligned(problem, twins[problem.id], path) for problem in problems]


def _aligned(problem: Problem, twin: Problem, path: str | Path) -> Problem:
    if twin.choices is not None and len(twin.choices) != len(problem.choices or ()):
        raise MmcorlError(
            f"{_SETTING}={path} gives problem {problem.id!r} {len(twin.choices)} options and data.train "
            f"{len(problem.choices or ())}; their letters would not mean the same"
        )
    return replace(
        problem,
        question=twin.question,
        images=twin.images or problem.images,
        choices=twin.choices or problem.choices,
    )
