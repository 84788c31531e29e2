"""The curves of a report: what is plotted against the step, for every run and agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from mmcorl.analysis.report.digests import Digest
from mmcorl.analysis.report.runs import Run
from mmcorl.training.metrics import Line
from mmcorl.training.phases import PHASES

_MOST_POINTS, _MANY_LINES, _POINTS_OF_MANY = 100, 4, 20


@dataclass(frozen=True)
class Point:
    """The value at a step, with the ends of its 95 % interval where it has one."""

    step: float
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Series:
    """One line: of which run (its place among the report's), of which agent."""

    run: int
    agent: str
    points: list[Point]


@dataclass(frozen=True)
class Chart:
    """One chart. `percent` values are shares, shown times 100."""

    key: str
    title: str
    note: str
    series: list[Series]
    percent: bool = False
    unit: str = ""

    def show(self, value: float) -> str:
        """A value as text."""
        return f"{100 * value:.1f} %" if self.percent else f"{value:.3g}{self.unit and f' {self.unit}'}"


@dataclass(frozen=True)
class _Measure:
    """A key of the metrics' lines that is worth a chart."""

    key: str
    title: str
    note: str
    percent: bool = False
    unit: str = ""


_EVALUATIONS = (
    _Measure("accuracy", "Held-out accuracy, greedy", "On problems not trained on; with few lines, bands are 95 % intervals over problems.", True),
    _Measure("avg", "Held-out accuracy, sampled (avg@k)", "Mean over several sampled answers a problem: shows what greedy decoding hides.", True),
)  # fmt: skip
_TRAINING = (
    _Measure("agreement", "Agreement", "Share of problems on which an agent's vote is the vote that supervises it.", True),
    _Measure("vote_share", "Vote share", "Share of the leading answer in an agent's ballots: how sure of itself it is.", True),
    _Measure("vote_accuracy", "Vote accuracy", "Share of supervising votes that are right. Labels serve this diagnostic, not the training.", True),
    _Measure("reward", "Reward", "Mean over completions whose problem had a label."),
    _Measure("length", "Completion length", "Mean number of tokens.", unit="tokens"),
    _Measure("entropy", "Entropy", "Mean entropy of the next token, where the reward needs it.", unit="nats"),
    _Measure("abstained", "Abstentions", "Share of completions that concluded nothing readable.", True),
    _Measure("truncated", "Truncated completions", "Share of completions that ran into the token limit.", True),
)  # fmt: skip
_SPREAD = _Measure(
    "spread",
    "Spread of rewards in a group",
    "Standard deviation of the rewards of one problem, mean over groups, relative to the first step. "
    "At 0 nothing is left to learn from.",
)


def charts_of(runs: Sequence[Run], digests: Sequence[Mapping[str, Digest]]) -> list[Chart]:
    """The charts for which there is anything to draw; `digests` are the runs' completions by agent."""
    agents = [(number, name) for number, run in enumerate(runs) for name in run.agents]
    most = _MOST_POINTS if len(agents) <= _MANY_LINES else _POINTS_OF_MANY
    charts = [
        _chart(m, [(n, a, _measured(runs[n].agents[a].evaluations, m.key)) for n, a in agents])
        for m in _EVALUATIONS
    ]
    charts += [
        _chart(m, [(n, a, thin(_measured(runs[n].agents[a].train, m.key), most)) for n, a in agents])
        for m in _TRAINING
    ]
    spread = [(n, a, thin(_relative(_spread(runs[n], a, digests[n])), most)) for n, a in agents]
    charts.insert(5, _chart(_SPREAD, spread))
    return [chart for chart in charts if chart.series]


def phase_seconds(run: Run, agent: str) -> dict[str, float]:
    """Mean seconds a step of each phase that was timed."""
    lines = run.agents[agent].train
    timed = {phase: [point.value for point in _measured(lines, f"seconds_{phase}")] for phase in PHASES}
    return {phase: fmean(values) for phase, values in timed.items() if values}


def thin(points: Sequence[Point], most: int) -> list[Point]:
    """At most so many points, each the mean of an equal number of neighbours (the last of those left over)."""
    width = -(-len(points) // most)
    parts = [points[start : start + width] for start in range(0, len(points), width)] if points else []
    return [Point(fmean(p.step for p in part), fmean(p.value for p in part)) for part in parts]


def _chart(measure: _Measure, lines: Sequence[tuple[int, str, list[Point]]]) -> Chart:
    series = [Series(run, agent, points) for run, agent, points in lines if points]
    return Chart(measure.key, measure.title, measure.note, series, measure.percent, measure.unit)


def _measured(lines: Sequence[Line], key: str) -> list[Point]:
    return [
        Point(line["step"], line[key], line.get(f"{key}_low"), line.get(f"{key}_high"))
        for line in lines
        if line.get(key) is not None
    ]


def _spread(run: Run, agent: str, digests: Mapping[str, Digest]) -> list[tuple[int, float]]:
    """From the completions or, where they were not logged, from the metrics."""
    logged = [
        (line["step"], line["reward_std"])
        for line in run.agents[agent].train
        if line.get("reward_std") is not None
    ]
    return digests[agent].spread if agent in digests and digests[agent].spread else logged


def _relative(spread: Sequence[tuple[int, float]]) -> list[Point]:
    """Relative to the first step that has any spread."""
    first = next((value for _, value in spread if value > 0), None)
    return [Point(step, value / first) for step, value in spread] if first else []
