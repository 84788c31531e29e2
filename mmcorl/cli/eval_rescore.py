"""`mmcorl-eval rescore DIR`: grade stored completions again, without a model."""

from __future__ import annotations

import argparse
from pathlib import Path

_SHOWN = 20


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "rescore",
        help="grade stored completions again, without a model",
        description="Grade the completions of a result folder again and say which verdicts changed.",
        epilog="example: mmcorl-eval rescore results/qwen --dry-run",
    )
    parser.add_argument("results", type=Path, metavar="DIR", help="a folder that --out was given")
    parser.add_argument("--dry-run", action="store_true", help="say what would change, and write nothing")
    parser.add_argument(
        "--last-number",
        action="store_true",
        help="take the last number where nothing is marked as the answer",
    )
    parser.add_argument(
        "--show", type=int, default=_SHOWN, metavar="N", help=f"new verdicts to list (default {_SHOWN})"
    )
    parser.add_argument("--json", action="store_true", help="print all of it as JSON")
    parser.set_defaults(command=rescore_command)


def rescore_command(options: argparse.Namespace) -> int:
    """Grade again, write the verdicts and the summary, print what changed. Raises MmcorlError for no result folder."""
    import json

    from mmcorl.evaluation.rescore import rescore
    from mmcorl.evaluation.tables import summarize, write_summary
    from mmcorl.graders import Extraction, Grader

    with Grader(Extraction(last_number=options.last_number)) as grader:
        changes = rescore(options.results, grader, write=not options.dry_run)
        if not options.dry_run:
            write_summary(options.results, summarize(options.results, grader.classes))
    if options.json:
        print(json.dumps([change.to_json() for change in changes], indent=2))
        return 0
    left = options.show
    for change in changes:
        print(
            f"{change.benchmark}: {change.samples} samples, {change.right_before} right before and {change.right} now; "
            f"{len(change.new_verdicts)} new verdicts, {change.reread} answers read differently"
        )
        for verdict in change.new_verdicts[:left]:
            word = "right" if verdict.correct else "wrong"
            print(
                f"  now {word}: {verdict.problem} ({verdict.model}, sample {verdict.sample}): gold {verdict.gold!r}, "
                f"read {verdict.answer_before!r} before and {verdict.answer!r} now"
            )
        left = max(0, left - len(change.new_verdicts))
    print("nothing was written" if options.dry_run else f"written: {options.results}")
    return 0
