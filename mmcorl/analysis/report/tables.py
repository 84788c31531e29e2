"""The result table: where every agent of every run started and ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from mmcorl.analysis.report.runs import Run
from mmcorl.training.metrics import Line

_SHARES = (("accuracy", "greedy"), ("avg", "avg@{samples}"))
_LABEL_FREE = (("agreement", "agreement"), ("vote_share", "vote share"))


@dataclass(frozen=True)
class Row:
    """An agent of a run, or the mean of its agents."""

    run: Run
    agent: str
    steps: int
    cells: list[str]
    is_mean: bool = False


@dataclass(frozen=True)
class ResultTable:
    """Heads of the measured columns, and the rows."""

    heads: list[str]
    rows: list[Row]
    evaluated: bool
    """Whether any held-out accuracy is in it."""


def result_table(runs: Sequence[Run]) -> ResultTable:
    """Held-out accuracy at start and end, in percent with 95 % intervals; without evaluations, what is free of labels."""
    evaluated = any(metrics.evaluations for run in runs for metrics in run.agents.values())
    columns = [
        (key, label)
        for key, label in (_SHARES if evaluated else _LABEL_FREE)
        if any(key in line for run in runs for agent in run.agents for line in _lines(run, agent, evaluated))
    ]
    samples = "/".join(str(k) for k in sorted({run.config.evaluation.samples for run in runs}) if k)
    labels = [label.format(samples=samples) for _, label in columns]
    heads = [head for label in labels for head in (f"{label}, start", f"{label}, end", "gain")]
    rows = []
    for run in runs:
        agents = {name: _lines(run, name, evaluated) for name in run.agents}
        for name, lines in agents.items():
            cells = [cell for key, _ in columns for cell in _cells(lines, key)]
            steps = lines[-1]["step"] if lines else 0
            rows.append(Row(run, name, steps, cells))
        if len(agents) > 1:
            cells = [cell for key, _ in columns for cell in _mean_cells(list(agents.values()), key)]
            rows.append(Row(run, "mean", run.steps_done, cells, is_mean=True))
    return ResultTable(heads, rows, evaluated)


def _lines(run: Run, agent: str, evaluated: bool) -> list[Line]:
    return run.agents[agent].evaluations if evaluated else run.agents[agent].train


def _ends(lines: Sequence[Line], key: str) -> tuple[Line, Line] | None:
    known = [line for line in lines if line.get(key) is not None]
    return (known[0], known[-1]) if known else None


def _cells(lines: Sequence[Line], key: str) -> tuple[str, str, str]:
    ends = _ends(lines, key)
    if ends is None:
        return "-", "-", "-"
    first, last = ends
    low, high = last.get(f"{key}_low"), last.get(f"{key}_high")
    interval = f" [{100 * low:.1f}, {100 * high:.1f}]" if low is not None and high is not None else ""
    return (
        f"{100 * first[key]:.1f}",
        f"{100 * last[key]:.1f}{interval}",
        f"{100 * (last[key] - first[key]):+.1f}",
    )


def _mean_cells(agents: Sequence[Sequence[Line]], key: str) -> tuple[str, str, str]:
    ends = [_ends(lines, key) for lines in agents]
    known = [pair for pair in ends if pair is not None]
    if len(known) < len(ends):
        return "-", "-", "-"
    start, end = fmean(first[key] for first, _ in known), fmean(last[key] for _, last in known)
    return f"{100 * start:.1f}", f"{100 * end:.1f}", f"{100 * (end - start):+.1f}"
