"""mmcorl-grade: grade answers or whole completions against golds, and say why."""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from mmcorl.cli.command import run_command
from mmcorl.errors import EXIT_FAILED, MmcorlError
from mmcorl.graders import Extraction, Grader, judging
from mmcorl.graders.conventions import CONVENTIONS, STRICT, convention

_EPILOG = r"""
each line of IN has `gold` and either `pred` (an answer) or `response` (a whole completion), and may have `id`,
`question`, `choices`, `answer_type`, `precision` and `unit`; each line of OUT has `id`, `verdict` (true, false, or null
when nothing could be read), `answer` and `gold` in canonical form, and `why`.

example:
  echo '{"gold": "3/4", "response": "So it is \\boxed{0.75}."}' > in.jsonl
  mmcorl-grade in.jsonl out.jsonl
  mmcorl-grade in.jsonl --explain 1
"""


def main(argv: list[str] | None = None) -> int:
    """Write a verdict for every line, or explain one; exit code 1 where a line could not be used."""
    parser = _parser()
    options = parser.parse_args(argv)
    if (options.out is None) == (options.explain is None):
        parser.error("give either OUT or --explain N")
    return run_command(lambda: _grade(options) if options.explain is None else _explain(options))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mmcorl-grade",
        description="Grade answers or whole completions against golds, and say why.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("input", type=Path, metavar="IN", help="JSON lines to read; .gz is unpacked")
    parser.add_argument("out", type=Path, nargs="?", metavar="OUT", help="JSON lines to write")
    parser.add_argument("--explain", type=int, metavar="N", help="walk through line N (from 1) instead")
    parser.add_argument(
        "--convention",
        default=STRICT.name,
        metavar="NAME",
        help=f"count as right what a benchmark's own scorer does: {', '.join(CONVENTIONS)}",
    )
    parser.add_argument(
        "--last-number",
        action="store_true",
        help="take the last number where nothing is marked as the answer",
    )
    return parser


def _grader(options: argparse.Namespace) -> Grader:
    return Grader(Extraction(last_number=options.last_number))


def _grade(options: argparse.Namespace) -> int:
    convention(options.convention)  # an unknown name is said before OUT is created
    counts: Counter[str] = Counter()
    with _grader(options) as grader, _created(options) as out:
        grader.warm()
        for number, text in _lines(options.input):
            try:
                line = judging.parse(text)
            except MmcorlError as error:
                print(f"{options.input}, line {number}: {error}", file=sys.stderr)
                name, verdict = _name(text), judging.Verdict(None, None, None, f"line not usable: {error}")
                counts["not usable"] += 1
            else:
                name, verdict = line.id, judging.judge(line, grader, line.rule(options.convention))
                counts[json.dumps(verdict.right)] += 1
            out.write(json.dumps(_row(name or str(number), verdict), ensure_ascii=False) + "\n")
        given_up = grader.timeouts
    print(
        f"{counts.total()} lines: {counts['true']} true, {counts['false']} false, {counts['null']} null, "
        f"{counts['not usable']} not usable; {given_up} symbolic comparisons given up"
    )
    return EXIT_FAILED if counts["not usable"] else 0


def _name(text: bytes) -> str | None:
    """The id of a line that cannot be used, if it has one."""
    with contextlib.suppress(ValueError, RecursionError):
        data = json.loads(text)
        if isinstance(data, dict) and isinstance(data.get("id"), str | int):
            return str(data["id"])
    return None


def _row(name: str, verdict: judging.Verdict) -> dict[str, Any]:
    return {
        "id": name,
        "verdict": verdict.right,
        "answer": verdict.answer and verdict.answer.value,
        "gold": verdict.gold and verdict.gold.value,
        "why": verdict.why,
    }


def _explain(options: argparse.Namespace) -> int:
    path, wanted = options.input, options.explain
    text = next((text for number, text in _lines(path) if number == wanted), None)
    if text is None:
        raise MmcorlError(f"--explain={wanted}: {path} has no such line; lines are counted from 1")
    try:
        line = judging.parse(text)
    except MmcorlError as error:
        raise MmcorlError(f"{path}, line {wanted}: {error}") from None
    with _grader(options) as grader:
        print("\n".join(judging.explain(line, grader, line.rule(options.convention))))
    return 0


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Lines with their numbers from 1, blank ones left out; with a progress bar where someone is watching."""
    from rich import progress

    watching = sys.stderr.isatty()
    try:
        with progress.open(path, "rb", description="grading", transient=True, disable=not watching) as raw:
            lines = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw
            yield from ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    except (OSError, EOFError) as error:
        raise MmcorlError(f"IN={path} cannot be read ({error})") from None


def _created(options: argparse.Namespace) -> IO[str]:
    if not options.input.is_file():
        raise MmcorlError(f"IN={options.input} is no file")
    if options.out.exists() and options.out.samefile(options.input):
        raise MmcorlError(f"OUT={options.out} is the file to read; name another")
    try:
        return options.out.open("w", encoding="utf-8")
    except OSError as error:
        raise MmcorlError(f"OUT={options.out} cannot be written ({error.strerror})") from None


if __name__ == "__main__":
    sys.exit(main())
