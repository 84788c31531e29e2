"""The paper's Tables 5 to 7, computed from outcome counts, beside what it reports.

    python eval/decoupling.py

The paper prints kappa, c, w and u of each pair, not the counts. Every printed c, w and u is a multiple of 0.2 %, so there
are 500 problems, and u and c then give `both`, `neither` and the sum of the two models' right answers. What remains, how
that sum is divided, follows from each model having one number of right answers in all its rows: the rows that share
models leave 253 for Qwen2.5-3B as the only possibility. In the rows of models that stand in one pair alone
(MiniCPM3-4B, and second seeds) it is the split that fits the printed kappa.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.table import Table

from mmcorl.analysis.diversity import Measures, Pair, Shares, measures, pair
from mmcorl.analysis.partners import Recommendation, recommend
from mmcorl.cli.console import wide_console

REPORTED = Path(__file__).parent / "reported"


class Row(NamedTuple):
    """A row of Table 6 or 7: what is computed, and what is printed."""

    table: int
    group: str
    decoupling: str
    names: tuple[str, str]
    pair: Pair
    printed: dict[str, str]

    @property
    def agrees(self) -> bool:
        """Whether every measure is the printed one, as far as it is printed."""
        computed = Measures(*(getattr(self.pair, name).value for name in Measures._fields))
        shown = {"kappa": f"{computed.kappa:.2f}"} | {
            f"{name}_pct": f"{100 * getattr(computed, name):.1f}" for name in ("c", "w", "u")
        }
        return all(self.printed[key] in ("", value) for key, value in shown.items())


def counts() -> dict[tuple[str, str], Shares]:
    """Table 5's outcomes of each pair of Table 6."""
    with (REPORTED / "decoupling_counts.csv").open(encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:]
    return {(row[0], row[1]): Shares(*map(int, row[2:])) for row in rows}


def rows() -> list[Row]:
    """Tables 6 and 7, in the paper's order."""
    # The counts do not tell which problems are which, so no two pairs may share their resamples.
    pairs = {
        names: pair(*names, _problems(cells), seed=seed)
        for seed, (names, cells) in enumerate(counts().items())
    }
    with (REPORTED / "decoupling.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    return [
        Row(int(line["table"]), line["tier"], line["decoupling"], names, pairs[names], line)
        for line in lines
        for names in [(line["model_a"], line["model_b"])]
    ]


def advice(tables: Sequence[Row]) -> list[Recommendation]:
    """The partner that the measures recommend to each anchor of Table 7."""
    pairs = list({row.names: row.pair for row in tables}.values())
    return [recommend(pairs, anchor) for anchor in ("Qwen2.5-3B", "Qwen2.5-7B")]


def _problems(cells: Shares) -> list[Shares]:
    """One entry a problem: the counts are all that the measures depend on."""
    one = [Shares(1, 0, 0, 0, 0), Shares(0, 1, 0, 0, 0), Shares(0, 0, 1, 0, 0), Shares(0, 0, 0, 1, 0), Shares(0, 0, 0, 1, 1)]  # fmt: skip
    times = (
        cells.both,
        cells.only_first,
        cells.only_second,
        cells.neither - cells.same_wrong,
        cells.same_wrong,
    )
    return [outcome for outcome, n in zip(one, times, strict=True) for _ in range(int(n))]


def main() -> int:
    """Print the tables. Returns 1 where a computed figure is not the printed one."""
    console = wide_console(190)
    outcomes = Table(title="Table 5: outcomes of each pair over 500 problems", title_justify="left")
    for head in (
        "pair",
        "both right",
        "only the first",
        "only the second",
        "neither",
        "same wrong answer",
        "kappa",
    ):
        outcomes.add_column(head, justify="left" if head == "pair" else "right")
    for names, cells in counts().items():
        outcomes.add_row(" x ".join(names), *map(str, cells), f"{measures(cells).kappa:.4f}")
    console.print(outcomes)
    tables = rows()
    for number in (6, 7):
        table = Table(title=f"Table {number}: computed [95 % interval], and printed", title_justify="left")
        for head in ("group", "decoupling", "pair"):
            table.add_column(head)
        for head in ("kappa", "c %", "w %", "u %"):
            table.add_column(head, justify="right")
        for row in tables:
            if row.table == number:
                cells = [_cell(row, name) for name in Measures._fields]
                table.add_row(row.group, row.decoupling, " x ".join(row.names), *cells)
        console.print(table)
    for choice in advice(tables):
        console.print(f"{choice.anchor}: {choice.partner} ({choice.reason})", soft_wrap=True, highlight=False)
    wrong = [row for row in tables if not row.agrees]
    console.print(
        f"{len(tables) - len(wrong)} of {len(tables)} rows agree with the paper in every printed figure"
    )
    return 1 if wrong else 0


def _cell(row: Row, name: str) -> str:
    estimate = getattr(row.pair, name)
    scale, digits, key = (1, 2, name) if name == "kappa" else (100, 1, f"{name}_pct")
    value, low, high = (f"{scale * v:.{digits}f}" for v in (estimate.value, estimate.low, estimate.high))
    return f"{value} \\[{low}, {high}] {row.printed[key] or '-'}"


if __name__ == "__main__":
    sys.exit(main())
