"""The scores of a result folder: as JSON, as CSV, as Markdown and on the screen."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from mmcorl.cohort.ballots import Classes
from mmcorl.evaluation.records import OUT_SETTING, benchmark_folders, read_result, read_run
from mmcorl.evaluation.scores import Estimate, Scores, pooled, score
from mmcorl.files import write_whole, writing


@dataclass(frozen=True)
class Ensemble:
    """Several models, one vote a problem over `samples` completions of each."""

    benchmark: str
    models: tuple[str, ...]
    samples: int
    majority: Estimate
    tie_rate: float


@dataclass(frozen=True)
class Summary:
    """All scores of a result folder. Ensembles are there where it has several models."""

    scores: list[Scores]
    ensembles: list[Ensemble]

    def to_json(self) -> dict[str, Any]:
        return {
            "scores": [s.to_json() for s in self.scores],
            "ensembles": [asdict(e) for e in self.ensembles],
        }


def summarize(out: Path, classes: Classes) -> Summary:
    """Score a result folder, finished or not. `classes` groups equal answers: `Grader.classes`."""
    run = read_run(out)
    scores: list[Scores] = []
    ensembles: list[Ensemble] = []
    for folder in benchmark_folders(out):
        result = read_result(folder)
        scores += filter(None, (score(result, model, classes) for model in run.models))
        samples = result.benchmark.sampling.samples
        if len(run.models) > 1 and (found := pooled([(result, m) for m in run.models], samples, classes)):
            ensembles.append(Ensemble(result.benchmark.name, tuple(run.models), samples, *found))
    return Summary(scores, ensembles)


def write_summary(out: Path, summary: Summary) -> None:
    """Write `summary.json`, `summary.csv` (a line a benchmark and model) and `summary.md` (a row a model)."""
    with writing(out, OUT_SETTING):
        write_whole(out / "summary.json", json.dumps(summary.to_json(), indent=2) + "\n")
        write_whole(out / "summary.csv", to_csv(summary))
        write_whole(out / "summary.md", to_markdown(summary))


_CSV: Sequence[str] = ("benchmark", "model", "samples", "problems", "missing", "accuracy", "low", "high", "majority", "tie_rate", "extraction_rate", "truncation_rate", "tokens", "seconds")  # fmt: skip


def to_csv(summary: Summary) -> str:
    """Shares are between 0 and 1. An ensemble has a vote alone, and its `samples` are those of all its models."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _CSV, lineterminator="\n", restval="")
    writer.writeheader()
    for s in summary.scores:
        facts = {name: getattr(s, name) for name in _CSV if hasattr(s, name)}
        vote = "" if s.majority is None else round(s.majority.value, 4)
        ties = "" if s.majority is None else round(s.tie_rate, 4)
        writer.writerow(
            {name: round(value, 4) if isinstance(value, float) else value for name, value in facts.items()}
            | _estimate(s.accuracy, "accuracy")
            | {"majority": vote, "tie_rate": ties}
        )
    for e in summary.ensembles:
        writer.writerow(
            {"benchmark": e.benchmark, "model": " + ".join(e.models), "samples": e.samples * len(e.models)}
            | _estimate(e.majority, "majority")
            | {"tie_rate": round(e.tie_rate, 4)}
        )
    return text.getvalue()


def to_markdown(summary: Summary) -> str:
    """Accuracy in percent with its interval; a row a model, a column a benchmark, and their unweighted mean."""
    names = list(dict.fromkeys(s.benchmark for s in summary.scores))
    heads = ["model", *names, *(["mean"] if len(names) > 1 else [])]
    rows = []
    for model in dict.fromkeys(s.model for s in summary.scores):
        found = {s.benchmark: s.accuracy for s in summary.scores if s.model == model}
        rows.append([model, *(shown(found.get(name)) for name in names), *_mean(found, names)])
    for models in dict.fromkeys(e.models for e in summary.ensembles):
        votes = {e.benchmark: e.majority for e in summary.ensembles if e.models == models}
        label = f"{' + '.join(models)} (vote)"
        rows.append([label, *(shown(votes.get(name)) for name in names), *_mean(votes, names)])
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def as_table(summary: Summary, votes_only: bool = False) -> Table:
    """A line a benchmark and model; n is the number of problems, shares are in percent.

    `votes_only` shows the votes alone, with their intervals, to lay models and their ensemble side by side.
    """
    title = "Accuracy in % [95 % interval over problems]"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=0, pad_edge=False)
    table.add_column("benchmark", no_wrap=True)
    table.add_column("model", overflow="fold", min_width=12)
    several = any(s.samples > 1 for s in summary.scores)
    votes = ("maj@k", "ties") if several or summary.ensembles else ()
    heads = votes if votes_only else ("avg@k", *(["pass@k"] if several else []), *votes, "read", "cut")
    for head in ("k", "n", *heads):
        # Intervals may go into a second line; a narrow terminal would cut off the last columns otherwise.
        table.add_column(head, justify="right", no_wrap=head not in ("avg@k", "maj@k"))

    def row(benchmark: str, model: str, style: str | None = None, **cells: str) -> None:
        # Names of models and values of rows may look like markup.
        table.add_row(
            benchmark, Text(model), *(cells.get(head, "") for head in ("k", "n", *heads)), style=style
        )

    for s in summary.scores:
        problems = f"{s.accuracy.problems}" + (f" of {s.accuracy.problems + s.missing}" if s.missing else "")
        cells = {"avg@k": shown(s.accuracy), "pass@k": _percent(s.pass_at[s.samples])}
        if s.majority:
            vote = shown(s.majority) if votes_only else _percent(s.majority.value)
            cells |= {"maj@k": vote, "ties": _percent(s.tie_rate)}
        cells |= {"read": _percent(s.extraction_rate), "cut": _percent(s.truncation_rate)}
        row(s.benchmark, s.model, k=str(s.samples), n=problems, **cells)
        if votes_only:
            continue
        for how in ("strict", "loose"):
            if s.four_dimensions:
                row("", f"four dimensions, {how}", **{"avg@k": _percent(s.four_dimensions[f"score_{how}"])})
        for name, values in s.breakdown.items():
            for value, estimate in values.items():
                row("", f"{name}: {value}", "dim", n=str(estimate.problems), **{"avg@k": shown(estimate)})
    for e in summary.ensembles:
        vote = shown(e.majority) if votes_only else _percent(e.majority.value)
        cells = {"k": str(e.samples * len(e.models)), "n": str(e.majority.problems), "maj@k": vote}
        row(e.benchmark, " + ".join(e.models), "bold", ties=_percent(e.tie_rate), **cells)
    return table


def shown(estimate: Estimate | None) -> str:
    """In percent, with the interval."""
    if estimate is None:
        return "-"
    return f"{100 * estimate.value:.1f} [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"


def _mean(found: dict[str, Estimate], names: Sequence[str]) -> list[str]:
    """One cell, or none for a single benchmark; empty where a benchmark is missing."""
    if len(names) < 2:
        return []
    whole = all(name in found for name in names)
    return [_percent(fmean(e.value for e in found.values())) if whole else "-"]


def _estimate(estimate: Estimate, name: str) -> dict[str, float]:
    figures = {name: estimate.value, "low": estimate.low, "high": estimate.high}
    return {key: round(value, 4) for key, value in figures.items()} | {"problems": estimate.problems}


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
