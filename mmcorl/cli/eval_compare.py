"""`mmcorl-eval compare RUN1 RUN2`: how far two results are apart, and which problems changed."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mmcorl.cli.console import wide_console

if TYPE_CHECKING:
    from rich.table import Table

    from mmcorl.evaluation.compare import Difference

_SHOWN = 10
_WIDTH = 100  # characters of a question that are shown


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "compare",
        help="compare two results problem by problem",
        description="The difference between two results on the same problems, with a paired test, and what changed.",
        epilog="example: mmcorl-eval compare results/base results/trained --show 5",
    )
    parser.add_argument("first", type=Path, metavar="RUN1", help="a folder that --out was given")
    parser.add_argument("second", type=Path, metavar="RUN2", help="another; differences are RUN2 minus RUN1")
    parser.add_argument(
        "--models", nargs=2, metavar=("A", "B"), help="one model of each, where a folder has several"
    )
    parser.add_argument(
        "--show", type=int, default=_SHOWN, metavar="N", help=f"changed problems to list (default {_SHOWN})"
    )
    parser.add_argument("--json", action="store_true", help="print all of it as JSON")
    parser.set_defaults(command=compare_command)


def compare_command(options: argparse.Namespace) -> int:
    """Print the comparison. Raises MmcorlError where the two have nothing in common."""
    import json

    from mmcorl.evaluation.compare import compare

    models = None if options.models is None else (options.models[0], options.models[1])
    differences = compare(options.first, options.second, models)
    if options.json:
        print(json.dumps([d.to_json() for d in differences], indent=2))
        return 0
    wide_console().print(_table(differences))
    for d in differences:
        if not d.same_declaration:
            print(f"{d.benchmark}: the two were asked or graded by different declarations")
        if d.unpaired:
            print(
                f"{d.benchmark}: {d.unpaired} problems are left out, which only one has finished or which differ"
            )
        gained = sum(c.second_rate > c.first_rate for c in d.changes)
        print(
            f"{d.benchmark}: {gained} problems are solved more often now, {len(d.changes) - gained} less often"
        )
        for c in d.changes[: options.show]:
            question = " ".join(c.question.split())[:_WIDTH]
            print(
                f"  {c.problem}: {c.first_rate:.2f} -> {c.second_rate:.2f}, gold {c.gold!r}, "
                f"answers {c.first_answer!r} -> {c.second_answer!r}: {question}"
            )
    return 0


def _table(differences: Sequence[Difference]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    title = "Accuracy in %, second minus first [95 % interval]"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=0, pad_edge=False)
    for head in ("benchmark", "models"):
        table.add_column(head)
    for head in ("problems", "first", "second", "difference", "p"):
        table.add_column(head, justify="right")
    table.add_column("test")
    for d in differences:
        models = dict.fromkeys((d.first_model, d.second_model))
        interval = f"{100 * d.difference:+.1f} [{100 * d.low:+.1f}, {100 * d.high:+.1f}]"
        table.add_row(
            d.benchmark, " -> ".join(models), str(d.problems), f"{100 * d.first:.1f}", f"{100 * d.second:.1f}",
            interval, f"{d.p:.2g}", d.test,
        )  # fmt: skip
    return table
