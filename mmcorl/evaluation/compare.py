"""Two results on the same problems: how far apart they are, whether chance explains it, and which problems changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from mmcorl.errors import MmcorlError
from mmcorl.evaluation.records import (
    BenchmarkResult,
    ProblemRecord,
    RunRecord,
    SampleRecord,
    benchmark_folders,
    read_result,
    read_run,
)
from mmcorl.evaluation.scores import clusters_of, groups
from mmcorl.statistics import bootstrap_interval, mcnemar_test, sign_flip_test


@dataclass(frozen=True)
class Change:
    """A problem that one of the two solved more often. Rates are shares of its samples; answers are of the first one."""

    problem: str
    question: str
    gold: str | None
    first_rate: float
    second_rate: float
    first_answer: str | None
    second_answer: str | None


@dataclass(frozen=True)
class Difference:
    """One benchmark, one model of each result. Rates are between 0 and 1; differences are second minus first."""

    benchmark: str
    first_model: str
    second_model: str
    problems: int
    """Those that both have, with the same question, options and gold."""
    unpaired: int
    """Problems that only one has, or that differ."""
    first: float
    second: float
    difference: float
    low: float
    high: float
    """95 % bootstrap interval of the difference, over problems."""
    p: float
    """Of a test that the two are equal: the chance of a difference at least as large."""
    test: Literal["exact McNemar", "sign flips"]
    """McNemar's for one sample of independent problems each, else the paired permutation test of averages."""
    same_declaration: bool
    """Whether both asked and graded alike."""
    changes: tuple[Change, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def compare(first: Path, second: Path, models: tuple[str, str] | None = None) -> list[Difference]:
    """The difference on every benchmark that both result folders have, by name.

    `models` names one model of each; without it a folder's only model is compared with the other's only one, or
    models of equal names with each other. Raises MmcorlError where there is nothing to compare.
    """
    runs = read_run(first), read_run(second)
    pairs = [models] if models else _pairs(*runs)
    for run, folder, names in zip(runs, (first, second), zip(*pairs, strict=True), strict=True):
        if unknown := set(names) - run.models.keys():
            raise MmcorlError(f"{folder} has no model {min(unknown)!r}; it has {', '.join(run.models)}")
    shared = {f.name for f in benchmark_folders(first)} & {f.name for f in benchmark_folders(second)}
    if not shared:
        raise MmcorlError(f"{first} and {second} have no benchmark in common")
    results = [(read_result(first / name), read_result(second / name)) for name in sorted(shared)]
    differences = [difference(one, other, pair) for one, other in results for pair in pairs]
    found = [d for d in differences if d is not None]
    if not found:
        raise MmcorlError(f"{first} and {second} have no problem in common that both have finished")
    return found


def difference(
    first: BenchmarkResult,
    second: BenchmarkResult,
    models: tuple[str, str],
) -> Difference | None:
    """The difference between two results of one benchmark; None where they share no finished problem."""
    one, other = groups(first, models[0]), groups(second, models[1])
    theirs = {p.id: _asked(p) for p in second.problems}
    shared = [p for p in first.problems if p.id in one and p.id in other and theirs[p.id] == _asked(p)]
    if not shared:
        return None
    rates = [(_rate(one[p.id]), _rate(other[p.id])) for p in shared]
    steps = [b - a for a, b in rates]
    clusters = clusters_of(first, shared)
    single = first.benchmark.sampling.samples == second.benchmark.sampling.samples == 1 and clusters is None
    low, high = bootstrap_interval(steps, clusters)
    return Difference(
        benchmark=first.benchmark.name,
        first_model=models[0],
        second_model=models[1],
        problems=len(shared),
        unpaired=len({p.id for p in first.problems} | theirs.keys()) - len(shared),
        first=fmean(a for a, _ in rates),
        second=fmean(b for _, b in rates),
        difference=fmean(steps),
        low=low,
        high=high,
        p=mcnemar_test(steps.count(-1), steps.count(1)) if single else sign_flip_test(steps, clusters),
        test="exact McNemar" if single else "sign flips",
        same_declaration=first.benchmark.digest == second.benchmark.digest,
        changes=tuple(
            _change(p, one[p.id], other[p.id]) for p, step in zip(shared, steps, strict=True) if step
        ),
    )


def _pairs(first: RunRecord, second: RunRecord) -> list[tuple[str, str]]:
    if len(first.models) == len(second.models) == 1:
        return [(next(iter(first.models)), next(iter(second.models)))]
    same = [(name, name) for name in first.models if name in second.models]
    if not same:
        raise MmcorlError(
            f"no model has the same name in both: {', '.join(first.models)}, and {', '.join(second.models)}; "
            "give --models A B"
        )
    return same


def _asked(problem: ProblemRecord) -> tuple[Any, ...]:
    return problem.question, problem.choices, problem.kind, problem.gold, problem.images


def _rate(samples: Sequence[SampleRecord]) -> float:
    return fmean(s.correct for s in samples)


def _change(problem: ProblemRecord, one: Sequence[SampleRecord], other: Sequence[SampleRecord]) -> Change:
    answers = [group[0].answer and group[0].answer.value for group in (one, other)]
    return Change(problem.id, problem.question, problem.gold, _rate(one), _rate(other), *answers)
