"""The paper's accuracy tables (1-4, 8-11) beside our own results.

    python eval/paper.py --template > rows.csv     # all rows; fill in the column `results`
    python eval/paper.py rows.csv OUT              # writes OUT/paper.md and OUT/paper.csv

`results` names the result folder of `mmcorl-eval` that belongs to a row, relative to the file: `FOLDER`, or
`FOLDER:MODEL` where the folder holds several models; for the ensembles of Tables 10 and 11 two of them, joined by ` + `.
A row without results, and a benchmark that its folder lacks, are missing cells.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import NamedTuple, TextIO

from mmcorl.cli.command import run_command
from mmcorl.errors import MmcorlError
from mmcorl.evaluation.records import BenchmarkResult, benchmark_folders, read_result, read_run
from mmcorl.evaluation.scores import Estimate, accuracy, pooled
from mmcorl.files import write_whole, writing
from mmcorl.graders import Grader

REPORTED = Path(__file__).parent / "reported" / "benchmark_results.csv"
AVERAGE = "Avg"
VOTED_SAMPLES = {10: 8, 11: 8}
"""Tables of maj@k, with k over all models of a row; the others are averages over samples."""
NAMES = {
    "GSM8K": "gsm8k",
    "MATH-500": "math500",
    "AMC": "amc",
    "HumanEval": "humaneval",
    "GPQA": "gpqa_diamond",
    "MBPP": "mbpp",
    "LiveCodeBench": "livecodebench",
    "MMLU": "mmlu",
    "SciBench": "scibench",
    "MathVision": "mathvision",
    "MathVerse": "mathverse",
    "MathVista": "mathvista",
    "We-Math": "wemath",
}
"""Benchmark in the paper -> its name in mmcorl."""


class Row(NamedTuple):
    """What identifies a row of the paper's tables."""

    table: int
    model: str
    train_data: str
    method: str


@dataclass(frozen=True)
class Cell:
    """One figure, in percent; `ours` is None where it is missing."""

    row: Row
    benchmark: str
    reported: Decimal
    ours: Estimate | None
    samples: int

    @property
    def ours_percent(self) -> float | None:
        return None if self.ours is None else 100 * self.ours.value

    @property
    def difference(self) -> float | None:
        return None if self.ours_percent is None else self.ours_percent - float(self.reported)


def read_reported(path: Path = REPORTED) -> dict[Row, dict[str, Decimal]]:
    """Row -> benchmark -> accuracy in percent with the paper's decimals, in its order, `Avg` last."""
    rows: dict[Row, dict[str, Decimal]] = {}
    with path.open(newline="", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            row = Row(int(line["table"]), line["model"], line["train_data"], line["method"])
            rows.setdefault(row, {})[line["benchmark"]] = Decimal(line["accuracy_pct"])
    return rows


def read_mapping(path: Path, known: Iterable[Row]) -> dict[Row, list[tuple[Path, str | None]]]:
    """Row -> result folders and the model in each. Raises MmcorlError for a row that the paper does not have."""
    known, sources = set(known), {}
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MmcorlError(f"{path} is no file of rows ({error}); see --template") from None
    with io.StringIO(text, newline="") as file:
        reader = csv.DictReader(file)
        if missing := {*Row._fields, "results"} - {*(reader.fieldnames or ())}:
            raise MmcorlError(f"{path} lacks the columns {', '.join(sorted(missing))}; see --template")
        for number, line in enumerate(reader, start=2):
            if not (line["results"] or "").strip():
                continue
            try:
                row = Row(int(line["table"]), line["model"], line["train_data"], line["method"])
            except ValueError:
                raise MmcorlError(f"{path}, line {number}: table {line['table']!r} is no number") from None
            if row not in known:
                raise MmcorlError(f"{path}, line {number}: the paper has no row {tuple(row)}; see --template")
            parts = [part.strip().partition(":") for part in line["results"].split(" + ")]
            sources[row] = [(path.parent / folder, model or None) for folder, _, model in parts]
    return sources


def fill(
    reported: dict[Row, dict[str, Decimal]], sources: dict[Row, list[tuple[Path, str | None]]], grader: Grader
) -> list[Cell]:
    """Every figure of the paper with ours, where its results are there."""
    cells = []
    for row, figures in reported.items():
        ours: dict[str, tuple[Estimate, int] | None] = {
            name: _figure(row, sources.get(row, []), NAMES[name], grader)
            for name in figures
            if name != AVERAGE
        }
        for name, figure in figures.items():
            found = _average(ours.values()) if name == AVERAGE else ours[name]
            cells.append(Cell(row, name, figure, *(found or (None, 0))))
    return cells


def _figure(
    row: Row, sources: Sequence[tuple[Path, str | None]], benchmark: str, grader: Grader
) -> tuple[Estimate, int] | None:
    """Our figure and the number of samples a problem behind it."""
    voters = [found for source in sources if (found := _result(*source, benchmark))]
    if not voters or len(voters) < len(sources):
        return None
    if row.table in VOTED_SAMPLES:
        found = pooled(voters, VOTED_SAMPLES[row.table] // len(voters), grader.classes)
        return found and (found[0], VOTED_SAMPLES[row.table])
    if len(voters) > 1:
        raise MmcorlError(f"{tuple(row)} names {len(voters)} results; only Tables 10 and 11 pool several")
    estimate = accuracy(*voters[0])
    return estimate and (estimate, voters[0][0].benchmark.sampling.samples)


def _average(found: Collection[tuple[Estimate, int] | None]) -> tuple[Estimate, int] | None:
    """The unweighted mean of a row; its interval adds the half-widths as independent errors do."""
    estimates = [f[0] for f in found if f is not None]
    if not estimates or len(estimates) < len(found):
        return None
    value = fmean(e.value for e in estimates)
    low = sum((e.value - e.low) ** 2 for e in estimates) ** 0.5 / len(estimates)
    high = sum((e.high - e.value) ** 2 for e in estimates) ** 0.5 / len(estimates)
    return Estimate(value, value - low, value + high, sum(e.problems for e in estimates)), 0


@lru_cache(maxsize=64)
def _result(folder: Path, model: str | None, benchmark: str) -> tuple[BenchmarkResult, str] | None:
    """A benchmark's result and the model that is meant; None where the folder lacks the benchmark."""
    run = read_run(folder)
    if model is None and len(run.models) > 1:
        raise MmcorlError(f"{folder} holds {', '.join(run.models)}; name one as {folder.name}:MODEL")
    if model is not None and model not in run.models:
        raise MmcorlError(f"{folder} has no model {model!r}; it has {', '.join(run.models)}")
    if benchmark not in {f.name for f in benchmark_folders(folder)}:
        return None
    return read_result(folder / benchmark), model or next(iter(run.models))


def to_markdown(cells: Sequence[Cell]) -> str:
    """A table for each of the paper's: ours, and in brackets the reported figure and the difference."""
    missing = sum(c.ours is None for c in cells)
    lines = [
        "# The paper's tables, and ours",
        "",
        "In percent: ours (reported, difference); `-` where our result is missing. Tables 10 and 11 are maj@8, ties by",
        "expected credit. Avg is the unweighted mean over benchmarks.",
        "",
        f"{len(cells) - missing} of {len(cells)} figures are there, {missing} are missing.",
    ]
    for table in sorted({c.row.table for c in cells}):
        mine = [c for c in cells if c.row.table == table]
        names = list(dict.fromkeys(c.benchmark for c in mine))
        heads = ["model", "trained on", "method", *names]
        lines += ["", f"## Table {table}", "", _line(heads), _line(["---"] * 3 + ["---:"] * len(names))]
        for row in dict.fromkeys(c.row for c in mine):
            found = {c.benchmark: c for c in mine if c.row == row}
            lines.append(
                _line([row.model, row.train_data, row.method, *(_shown(found.get(n)) for n in names)])
            )
    return "\n".join(lines) + "\n"


def write_csv(cells: Sequence[Cell], file: TextIO) -> None:
    """One line a figure; empty where ours is missing."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(
        [*Row._fields, "benchmark", "reported", "ours", "low", "high", "difference", "problems", "samples"]
    )
    for c in cells:
        ours = ["", "", "", "", "", ""]
        if c.ours is not None:
            figures = (100 * c.ours.value, 100 * c.ours.low, 100 * c.ours.high, c.difference)
            ours = [*(f"{f:.2f}" for f in figures), c.ours.problems, c.samples or ""]
        writer.writerow([*c.row, c.benchmark, c.reported, *ours])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _shown(cell: Cell | None) -> str:
    if cell is None:
        return ""
    if cell.ours_percent is None:
        return f"- ({cell.reported})"
    decimals = -int(cell.reported.as_tuple().exponent)
    return f"{cell.ours_percent:.{decimals}f} ({cell.reported}, {cell.difference:+.{decimals}f})"


def _template(rows: Iterable[Row]) -> Iterator[Sequence[object]]:
    yield [*Row._fields, "results"]
    yield from ([*row, ""] for row in rows)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "rows", type=Path, nargs="?", metavar="ROWS", help="CSV: a row of the paper -> results"
    )
    parser.add_argument("out", type=Path, nargs="?", metavar="OUT", help="folder for paper.md and paper.csv")
    parser.add_argument("--template", action="store_true", help="print a ROWS file without results")
    options = parser.parse_args(arguments)
    if options.template == (options.out is not None):
        parser.error("give ROWS and OUT, or --template")
    return run_command(lambda: _build(options))


def _build(options: argparse.Namespace) -> int:
    reported = read_reported()
    if options.template:
        csv.writer(sys.stdout, lineterminator="\n").writerows(_template(reported))
        return 0
    if not options.rows.is_file():
        raise MmcorlError(f"{options.rows} does not exist; begin with --template > {options.rows}")
    sources = read_mapping(options.rows, reported)
    with Grader() as grader:
        cells = fill(reported, sources, grader)
    with writing(options.out, "OUT"):
        options.out.mkdir(parents=True, exist_ok=True)
        write_whole(options.out / "paper.md", to_markdown(cells))
        with (options.out / "paper.csv").open("w", encoding="utf-8", newline="") as file:
            write_csv(cells, file)
    missing = sum(c.ours is None for c in cells)
    print(
        f"written: {options.out / 'paper.md'}, {options.out / 'paper.csv'}; {missing} of {len(cells)} figures are missing"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
