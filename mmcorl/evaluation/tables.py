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
    """A line a benchmark and model; shares in percent, with 95 % intervals over problems.

    `votes_only` leaves all but the votes out, to lay models and their ensemble side by side.
    """
    heads = ("k", "problems", "avg@k", "pass@k", "maj@k", "ties", "read", "cut off", "tokens", "s")
    table = Table(title="Accuracy in % [95 % interval over problems]", title_justify="left")
    table.add_column("benchmark")
    table.add_column("model")
    for head in heads:
        if not votes_only or head in ("k", "problems", "maj@k", "ties"):
            table.add_column(head, justify="right")
    for s in summary.scores:
        problems = f"{s.accuracy.problems}" + (f" of {s.accuracy.problems + s.missing}" if s.missing else "")
        vote = (shown(s.majority), _percent(s.tie_rate)) if s.majority else ("", "")
        if votes_only:
            table.add_row(s.benchmark, s.model, str(s.samples), problems, *vote)
            continue
        best = _percent(s.pass_at[s.samples]) if s.samples > 1 else ""
        rest = (
            _percent(s.extraction_rate),
            _percent(s.truncation_rate),
            f"{s.tokens:.0f}",
            f"{s.seconds:.0f}",
        )
        table.add_row(s.benchmark, s.model, str(s.samples), problems, shown(s.accuracy), best, *vote, *rest)
        if s.four_dimensions:
            strict, loose = (_percent(s.four_dimensions[f"score_{how}"]) for how in ("strict", "loose"))
            table.add_row("", f"four dimensions: strict {strict}, loose {loose}")
        for name, values in s.breakdown.items():
            for value, estimate in values.items():
                label = Text(f"{name}: {value}")  # values of rows may look like markup
                table.add_row("", label, "", str(estimate.problems), shown(estimate), style="dim")
    for e in summary.ensembles:
        facts = (str(e.samples * len(e.models)), str(e.majority.problems))
        others = () if votes_only else ("", "")
        vote = (shown(e.majority), _percent(e.tie_rate))
        table.add_row(e.benchmark, " + ".join(e.models), *facts, *others, *vote, style="bold")
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
