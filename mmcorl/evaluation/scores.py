"""What the samples of a benchmark come to: accuracy with its interval, pass@k, maj@k, and what could not be read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Any

from mmcorl.cohort.ballots import Classes
from mmcorl.errors import MmcorlError
from mmcorl.evaluation.records import BenchmarkResult, ProblemRecord, SampleRecord
from mmcorl.evaluation.votes import Majority, majority
from mmcorl.evaluation.wemath import four_dimensions
from mmcorl.statistics import bootstrap_interval, pass_at_k

Groups = dict[str, list[SampleRecord]]
"""Problem id -> one model's samples of it, in the order of their numbers."""


@dataclass(frozen=True)
class Estimate:
    """A mean over problems, with its 95 % bootstrap interval over them; all between 0 and 1."""

    value: float
    low: float
    high: float
    problems: int

    @staticmethod
    def of(values: Sequence[float], clusters: Sequence[Hashable] | None = None) -> Estimate:
        return Estimate(fmean(values), *bootstrap_interval(values, clusters), len(values))


@dataclass(frozen=True)
class Scores:
    """One model on one benchmark. `samples` is k, the completions of every problem."""

    benchmark: str
    model: str
    samples: int
    missing: int
    """Problems left out because some of their samples are not there yet."""
    accuracy: Estimate
    """Right samples, averaged within each problem first: avg@k."""
    pass_at: dict[int, float]
    """k -> share of problems that k samples would solve at least once; for 1, 2, 4, ... up to `samples`."""
    majority: Estimate | None
    """maj@k, a tie worth its expected credit; None for a single sample."""
    tie_rate: float
    """Problems whose vote is a tie."""
    extraction_rate: float
    """Samples from which an answer could be read."""
    truncation_rate: float
    """Samples that ran into the limit on tokens."""
    tokens: float
    """Of a sample, on average."""
    seconds: float
    """Over all samples."""
    breakdown: dict[str, dict[str, Estimate]] = field(default_factory=dict)
    """Field of the row -> its value -> accuracy of the problems that have it."""
    four_dimensions: dict[str, float] | None = None
    """We-Math's score beside plain accuracy, averaged over samples."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def groups(result: BenchmarkResult, model: str) -> Groups:
    """The samples of one model, of the problems that have all of them, in the order of the problems.

    Raises MmcorlError where a number occurs twice or is none that was asked for: an average over k must be one over k
    real samples.
    """
    samples = result.benchmark.sampling.samples
    found: dict[str, dict[int, SampleRecord]] = {p.id: {} for p in result.problems}
    for sample in result.samples:
        if sample.model != model:
            continue
        place = found.get(sample.problem)
        if place is None or sample.sample in place or not 0 <= sample.sample < samples:
            raise MmcorlError(
                f"{result.benchmark.name}: sample {sample.sample} of problem {sample.problem} by {model} is one too many; "
                f"each of the {len(found)} problems has samples 0 to {samples - 1}, once each"
            )
        place[sample.sample] = sample
    return {
        problem: [place[i] for i in range(samples)]
        for problem, place in found.items()
        if len(place) == samples
    }


def accuracy(result: BenchmarkResult, model: str) -> Estimate | None:
    """avg@k of one model over the problems that have all of their samples; None where none has."""
    by_problem = groups(result, model)
    problems = [p for p in result.problems if p.id in by_problem]
    rates = [fmean(s.correct for s in by_problem[p.id]) for p in problems]
    return Estimate.of(rates, clusters_of(result, problems)) if rates else None


def score(
    result: BenchmarkResult,
    model: str,
    classes: Classes,
) -> Scores | None:
    """Score one model, split by the facts and with the clusters of the declaration; None while no problem is finished."""
    samples, by_problem = result.benchmark.sampling.samples, groups(result, model)
    if not by_problem:
        return None
    declared = result.benchmark.declaration
    problems = [p for p in result.problems if p.id in by_problem]
    flat = [s for group in by_problem.values() for s in group]
    means = [fmean(s.correct for s in by_problem[p.id]) for p in problems]
    clusters = clusters_of(result, problems)
    votes = [elect(by_problem[p.id], classes) for p in problems] if samples > 1 else []
    return Scores(
        benchmark=result.benchmark.name,
        model=model,
        samples=samples,
        missing=len(result.problems) - len(problems),
        accuracy=Estimate.of(means, clusters),
        pass_at={k: _pass_at(by_problem, k) for k in _powers_of_two(samples)},
        majority=Estimate.of([vote.credit for vote in votes], clusters) if votes else None,
        tie_rate=fmean(vote.tie for vote in votes) if votes else 0.0,
        extraction_rate=fmean(s.answer is not None for s in flat),
        truncation_rate=fmean(not s.finished for s in flat),
        tokens=fmean(s.tokens for s in flat),
        seconds=sum(s.seconds for s in flat),
        breakdown={name: _split(problems, means, clusters, name) for name in declared.get("by", ())},
        four_dimensions=(
            _four_dimensions(problems, by_problem) if declared.get("metric") == "wemath" else None
        ),
    )


def clusters_of(result: BenchmarkResult, problems: Sequence[ProblemRecord]) -> list[Hashable] | None:
    """What problems have in common by the declaration; None where all are independent."""
    fact = result.benchmark.declaration.get("cluster")
    return None if fact is None else [p.fields.get(fact, p.id) for p in problems]


def elect(samples: Sequence[SampleRecord], classes: Classes) -> Majority:
    """The vote of these samples of one problem, whoever they are by."""
    right = {s.answer: s.correct for s in samples if s.answer is not None}
    return majority([s.answer for s in samples], classes, right)


def pooled(
    voters: Sequence[tuple[BenchmarkResult, str]], samples: int, classes: Classes
) -> tuple[Estimate, float] | None:
    """Score one vote a problem over the first `samples` completions of each voter: a matched-budget ensemble.

    Two models with 4 samples each spend what one model spends on maj@8. Voters are models with the results they are
    in. Returns the estimate and the share of ties, over the problems that all have finished; None where there are none.
    Raises MmcorlError for voters on different problems or with fewer samples.
    """
    first, name = voters[0][0], voters[0][0].benchmark.name
    for result, model in voters:
        if result.benchmark.fingerprint != first.benchmark.fingerprint:
            raise MmcorlError(f"{name}: {model} answered other problems; a vote needs the same ones")
        if (drawn := result.benchmark.sampling.samples) < samples:
            raise MmcorlError(f"{name}: {model} has {drawn} samples a problem, and the vote takes {samples}")
    parts = [groups(result, model) for result, model in voters]
    problems = [p for p in first.problems if all(p.id in part for part in parts)]
    if not problems:
        return None
    votes = [elect([s for part in parts for s in part[p.id][:samples]], classes) for p in problems]
    estimate = Estimate.of([vote.credit for vote in votes], clusters_of(first, problems))
    return estimate, fmean(vote.tie for vote in votes)


def _pass_at(by_problem: Groups, k: int) -> float:
    return fmean(pass_at_k(len(g), sum(s.correct for s in g), k) for g in by_problem.values())


def _powers_of_two(most: int) -> list[int]:
    return sorted({*(1 << i for i in range(most.bit_length())), most})


def _split(
    problems: Sequence[ProblemRecord],
    means: Sequence[float],
    clusters: Sequence[Hashable] | None,
    name: str,
) -> dict[str, Estimate]:
    """Accuracy by the values of a field; a problem with a list of values counts under each of them."""
    members: dict[str, list[int]] = defaultdict(list)
    for index, problem in enumerate(problems):
        value = problem.fields.get(name)
        for one in value if isinstance(value, list) else [] if value is None else [value]:
            members[str(one)].append(index)
    return {
        value: Estimate.of([means[i] for i in indices], clusters and [clusters[i] for i in indices])
        for value, indices in sorted(members.items())
    }


def _four_dimensions(problems: Sequence[ProblemRecord], by_problem: Groups) -> dict[str, float]:
    """Averaged over the samples."""
    samples = len(by_problem[problems[0].id])
    rounds = [
        four_dimensions(
            (str(p.fields["problem"]), p.fields["key"], by_problem[p.id][i].correct) for p in problems
        ).to_json()
        for i in range(samples)
    ]
    return {name: fmean(one[name] for one in rounds) for name in rounds[0]}
