"""Grade stored completions again, without a model, as after a change of the grader."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track

from mmcorl.evaluation.grading import Marker
from mmcorl.evaluation.records import (
    OUT_SETTING,
    SAMPLES_FILE,
    BenchmarkResult,
    SampleRecord,
    benchmark_folders,
    read_result,
)
from mmcorl.evaluation.scores import groups
from mmcorl.files import Lines, replacing, writing
from mmcorl.graders import Grader


@dataclass(frozen=True)
class NewVerdict:
    """A sample that was right and is wrong now, or the reverse."""

    model: str
    problem: str
    sample: int
    gold: str | None
    answer_before: str | None
    answer: str | None
    correct: bool
    """The new verdict; the old one was the opposite."""


@dataclass(frozen=True)
class Rescored:
    """What grading one benchmark's samples again came to."""

    benchmark: str
    samples: int
    right_before: int
    right: int
    reread: int
    """Samples whose answer reads differently now, whatever the verdict."""
    new_verdicts: tuple[NewVerdict, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def rescore(out: Path, grader: Grader, write: bool = True) -> list[Rescored]:
    """Grade all samples of a result folder by the conventions that it recorded, and write the new verdicts.

    Each benchmark's samples are replaced whole, so a kill leaves the old verdicts or the new ones; then run it again.
    Programs are not run here: a benchmark of code keeps its verdicts and is not in the list. With `write=False`
    nothing is written.
    """
    changes: list[Rescored] = []
    for folder in benchmark_folders(out):
        result = read_result(folder)
        if any(p.kind == "code" for p in result.problems):
            continue
        after = regrade(result, grader)
        if write and after != result.samples:
            _replace_samples(folder, after)
        changes.append(_changes(result, after))
    return changes


def regrade(result: BenchmarkResult, grader: Grader) -> list[SampleRecord]:
    """The samples with new answers and verdicts, all else as it was. Raises MmcorlError for a sample that is one too many."""
    for model in {sample.model for sample in result.samples}:
        groups(result, model)  # refuses samples of problems that are not there
    convention = result.benchmark.declaration.get("convention", "strict")
    mark = {p.id: Marker(grader, p, convention) for p in result.problems}
    graded = []
    for sample in track(
        result.samples,
        result.benchmark.name,
        transient=True,
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
    ):
        answer, correct = mark[sample.problem](sample.completion, sample.finished)
        graded.append(replace(sample, answer=answer, correct=correct))
    return graded


def _replace_samples(folder: Path, samples: Sequence[SampleRecord]) -> None:
    with writing(folder, OUT_SETTING), replacing(folder / SAMPLES_FILE) as temporary:
        temporary.unlink(missing_ok=True)  # a process of the same number may have been killed here
        with Lines(temporary, OUT_SETTING) as lines:
            lines.append(sample.to_json() for sample in samples)


def _changes(result: BenchmarkResult, after: Sequence[SampleRecord]) -> Rescored:
    golds = {p.id: p.gold for p in result.problems}
    pairs = list(zip(result.samples, after, strict=True))
    return Rescored(
        benchmark=result.benchmark.name,
        samples=len(after),
        right_before=sum(old.correct for old, _ in pairs),
        right=sum(new.correct for _, new in pairs),
        reread=sum(old.answer != new.answer for old, new in pairs),
        new_verdicts=tuple(
            NewVerdict(
                new.model, new.problem, new.sample, golds[new.problem],
                old.answer and old.answer.value, new.answer and new.answer.value, new.correct,
            )
            for old, new in pairs
            if old.correct != new.correct
        ),
    )  # fmt: skip
