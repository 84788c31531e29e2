"""Twins: the same problems in other words, aligned by id."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import tee
from pathlib import Path

from mmcorl.config import DataConfig
from mmcorl.data.bad_rows import BadRow
from mmcorl.data.opening import open_rows
from mmcorl.data.reading import read_rows, source_of
from mmcorl.errors import MmcorlError
from mmcorl.problems import Problem

ORIGINAL = "original"
"""Column with the digest of the wording that a twin was made from."""

_SETTING = "data.twin"


def wording_digest(problem: Problem) -> str:
    """A digest of a problem's question and options, by which a twin knows what it is the twin of."""
    return hashlib.blake2b(
        json.dumps([problem.question, problem.choices]).encode(), digest_size=16
    ).hexdigest()


def load_twin(problems: Sequence[Problem], path: str | Path) -> list[Problem]:
    """The other wording of each problem, in their order and under their ids.

    `path` is a data file or folder with the columns `id` and `question`, and perhaps `original`. Images and options are
    those of the problem unless the file has its own; the kind is always the problem's. Raises MmcorlError when the file
    cannot be read, a problem has no twin, one with another number of options, or one that was made from another wording.
    """
    twins, digests = _read(path)
    if missing := [problem.id for problem in problems if problem.id not in twins]:
        raise MmcorlError(
            f"{_SETTING}={path} has no wording of {len(missing)} of {len(problems)} problems, such as {missing[0]!r}; "
            "give it a row with the id of every problem of data.train, or drop those problems from data.train"
        )
    others = [p.id for p in problems if digests[p.id] not in (None, wording_digest(p))]
    if others:
        raise MmcorlError(
            f"{_SETTING}={path} was made from another wording of {len(others)} of {len(problems)} problems, such as "
            f"{others[0]!r}; make it again from data.train as it is now"
        )
    return [_aligned(problem, twins[problem.id], path) for problem in problems]


def _read(path: str | Path) -> tuple[dict[str, Problem], dict[str, str | None]]:
    """Twins by id, and the digests of what they were made from."""
    source = source_of(DataConfig(path=str(path)), f"{_SETTING}.")
    twins: dict[str, Problem] = {}
    digests: dict[str, str | None] = {}
    try:
        natives, rows = tee(open_rows(source))
        for native, read in zip(natives, read_rows(rows, source), strict=False):
            if isinstance(read, BadRow):
                raise read
            twins[read[0].id] = read[0]
            digests[read[0].id] = native.get(ORIGINAL)
    except MmcorlError as error:
        raise MmcorlError(f"{_SETTING}={path}: {error}") from None
    return twins, digests


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
