"""`mmcorl-grade IN.jsonl OUT.jsonl`: grade answers or whole completions against golds, and say why."""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from mmcorl.errors import MmcorlError
from mmcorl.graders import Answer, Extraction, Grader, choices, comparison, math
from mmcorl.graders.conventions import CONVENTIONS, STRICT, Convention, convention
from mmcorl.graders.extract import statements
from mmcorl.graders.values import Quantity, Value
from mmcorl.problems import AnswerKind, Problem

_EPILOG = r"""
each line of IN has `gold` and either `pred` (an answer) or `response` (a whole completion), and may have `id`,
`question`, `choices`, `answer_type`, `precision` and `unit`; each line of OUT has `id`, `verdict` (true, false, or null
when nothing could be read), `answer` and `gold` in canonical form, and `why`.

example:
  echo '{"gold": "3/4", "response": "So it is \\boxed{0.75}."}' > in.jsonl
  mmcorl-grade in.jsonl out.jsonl
  mmcorl-grade in.jsonl --explain 1
"""
_WIDTH = 160  # characters of a text that --explain shows


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code: 0 done, 1 some lines could not be used, 2 wrong use, 130 interrupted."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if (options.out is None) == (options.explain is None):
        parser.error("give either OUT or --explain N")
    try:
        convention(options.convention)
        return _grade(options) if options.explain is None else _explain(options)
    except MmcorlError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


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


# ------------------------------------------------------------------------------------------------ lines

_KINDS: dict[str, AnswerKind] = {
    **dict.fromkeys(("choice", "mcq", "multiple_choice", "multi_choice"), "choice"),
    **dict.fromkeys(("math", "number", "integer", "float", "list", "math_latex", "open", "free_form"), "math"),
    "text": "text",
    "code": "code",
}  # fmt: skip


class Line(BaseModel):
    """One line of the input; keys that are not named here are ignored."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    gold: str
    pred: str | None = None
    response: str | None = None
    id: str | None = None
    question: str | None = None
    choices: tuple[str, ...] | None = None
    answer_type: str | None = None
    precision: int | None = Field(default=None, ge=0)
    unit: str | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> Line:
        if len(self.model_fields_set & {"pred", "response"}) != 1:
            raise ValueError("give exactly one of `pred` and `response`")
        if self.answer_type is not None and self.answer_type not in _KINDS:
            raise ValueError(f"answer_type {self.answer_type!r} is none of {', '.join(_KINDS)}")
        return self

    @property
    def whole(self) -> bool:
        """Whether there is a whole completion, not a bare answer."""
        return "response" in self.model_fields_set

    @property
    def text(self) -> str:
        """What is to be graded; a null is an empty text."""
        return (self.response if self.whole else self.pred) or ""

    def rule(self, name: str) -> Convention:
        """The convention of that name with what this line says beside it. Raises MmcorlError for an unknown name."""
        return convention(name, precision=self.precision, unit=self.unit, answer_type=self.answer_type)

    @property
    def problem(self) -> Problem:
        kind = _KINDS[self.answer_type] if self.answer_type else "choice" if self.choices else "math"
        return Problem(self.id or "", self.question or "", choices=self.choices or None, kind=kind)


def _parse(text: bytes) -> Line:
    """Raises MmcorlError with what is wrong with the line."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MmcorlError(f"not JSON ({error})") from None
    if not isinstance(data, dict):
        raise MmcorlError("not an object")
    try:
        return Line.model_validate(data)
    except ValidationError as error:
        wrong = (
            ": ".join([*map(str, e["loc"]), e["msg"].removeprefix("Value error, ")]) for e in error.errors()
        )
        raise MmcorlError("; ".join(wrong)) from None


# ---------------------------------------------------------------------------------------------- grading


@dataclass(frozen=True)
class Reading:
    """A place where a completion may state its answer, and what is read there."""

    how: str
    text: str
    answer: Answer | None


@dataclass(frozen=True)
class Verdict:
    """`right` is None where there is nothing to compare. `readings` are in order of preference."""

    right: bool | None
    answer: Answer | None
    gold: Answer | None
    why: str
    readings: tuple[Reading, ...] = ()


def judge(line: Line, grader: Grader, rule: Convention = STRICT) -> Verdict:
    """Grade one line, noting how its answer was found and which comparison decided."""
    problem = line.problem
    gold = grader.read(line.gold, problem)
    if line.whole:
        readings = tuple(_readings(line.text, problem, grader))
        answer = grader.answer(line.text, problem, rule)
    else:
        readings = (Reading("pred", line.text, grader.read(line.text, problem)),)
        answer = grader.read(line.text, problem, rule)
    if answer is None:
        nothing = "the response states no answer" if line.whole else "pred says nothing"
        return Verdict(None, None, gold, f"{nothing} that can be read", readings)
    unread = "code block" if problem.kind == "code" else "nearest option"
    found = next((r.how for r in readings if r.answer == answer), unread)
    if gold is None:
        return Verdict(None, answer, None, f"{found}; the gold says nothing that can be read", readings)
    same, reason = _compare(answer, gold, grader)
    right = grader.correct(answer, gold, problem, rule)
    reason = reason if right == same else f"{reason}, but {_allowance(rule)}"
    return Verdict(right, answer, gold, f"{found}; {reason}", readings)


def _readings(text: str, problem: Problem, grader: Grader) -> Iterator[Reading]:
    if problem.kind != "code":
        for statement in statements(text, grader.extraction):
            yield Reading(statement.how, statement.text, grader.read(statement.text, problem))


def _allowance(rule: Convention) -> str:
    """What a convention allows beside equality of numbers: `right by mathvista (precision 1, truncated)`."""
    allowed = [f"precision {rule.precision}"] if rule.precision is not None else []
    for name in ("relative", "absolute"):
        allowed += [f"{name} tolerance {getattr(rule, name):g}"] if getattr(rule, name) else []
    allowed += [name for name in ("truncated", "unordered") if getattr(rule, name)]
    allowed += [f"unit {rule.unit}"] if rule.unit else []
    by = "what the line allows" if rule.name == STRICT.name else rule.name
    return f"right by {by} ({', '.join(allowed)})"


_OTHER = {"choice": "another option", "text": "other words", "code": "another program"}


def _compare(answer: Answer, gold: Answer, grader: Grader) -> tuple[bool, str]:
    if answer == gold:
        return True, "the same canonical form"
    if answer.kind != gold.kind:
        return False, f"{answer.kind} against {gold.kind}"
    if answer.kind != "math":
        return False, _OTHER[answer.kind]
    a, b = math.read(answer.value), math.read(gold.value)
    given_up = grader.timeouts
    same = grader.same(answer, gold)
    if grader.timeouts > given_up:
        return same, "symbolic comparison given up: out of time or memory"
    undecided = comparison.equal(a, b) is None
    return same, f"{'equal' if same else 'not equal'} {'by symbolic algebra' if undecided else _method(a, b)}"


def _shape(value: Value) -> str:
    name = type(value).__name__.lower()
    return {"items": "list", "region": "interval", "raw": "formula"}.get(name, name)


def _method(a: Value, b: Value) -> str:
    """What decided between two values that need no symbolic algebra."""
    if not isinstance(a, Quantity) or not isinstance(b, Quantity):
        return f"part by part ({_shape(a)} against {_shape(b)})"
    if a.unit and b.unit and a.unit.dimension != b.unit.dimension:
        return f"in unit ({a.unit.name or 'none'} against {b.unit.name or 'none'})"
    return "by exact arithmetic" if a.form is not None and b.form is not None else "to 40 digits"


# ------------------------------------------------------------------------------------------- explaining


def explain(line: Line, grader: Grader, rule: Convention = STRICT) -> Iterator[str]:
    """The steps of `judge` for a person to read."""
    problem, verdict = line.problem, judge(line, grader, rule)
    yield f"kind      {problem.kind}"
    for letter, text in zip(choices.LETTERS, choices.options(problem) or (), strict=False):
        yield f"option {letter}  {_clip(text)}"
    if line.whole:
        yield f"response  {len(line.text)} characters, ending in {_clip(line.text[-60:])}"
    taken = False
    for reading in verdict.readings:
        note = "not needed" if taken else "passed over"
        if not taken and reading.answer is not None and reading.answer == verdict.answer:
            taken, note = True, "taken"
        yield f"  {reading.how:<11} {_clip(reading.text)} -> {_show(reading.answer)} [{note}]"
    if not verdict.readings and problem.kind != "code":
        yield "  nothing in it marks an answer"
    yield f"answer    {_show(verdict.answer)}"
    yield f"gold      {_clip(line.gold)} -> {_show(verdict.gold)}"
    yield f"verdict   {json.dumps(verdict.right)}: {verdict.why}"


def _show(answer: Answer | None) -> str:
    """Kind and canonical form, and for mathematics what sort of value it is."""
    if answer is None:
        return "nothing"
    if answer.kind != "math":
        return f"{answer.kind} {_clip(answer.value)}"
    value = math.read(answer.value)
    exactly = ", exact" if isinstance(value, Quantity) and value.form is not None else ""
    return f"{_shape(value)}{exactly} {_clip(answer.value)}"


def _clip(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= _WIDTH else f"{shown[:_WIDTH]}..."


# ---------------------------------------------------------------------------------------------- command


def _grader(options: argparse.Namespace) -> Grader:
    return Grader(Extraction(last_number=options.last_number))


def _grade(options: argparse.Namespace) -> int:
    counts: Counter[str] = Counter()
    with _grader(options) as grader, _created(options) as out:
        for number, text in _lines(options.input):
            try:
                line = _parse(text)
            except MmcorlError as error:
                print(f"{options.input}, line {number}: {error}", file=sys.stderr)
                name, verdict = _name(text), Verdict(None, None, None, f"line not usable: {error}")
                counts["not usable"] += 1
            else:
                name, verdict = line.id, judge(line, grader, line.rule(options.convention))
                counts[json.dumps(verdict.right)] += 1
            out.write(json.dumps(_row(name or str(number), verdict), ensure_ascii=False) + "\n")
        given_up = grader.timeouts
    print(
        f"{counts.total()} lines: {counts['true']} true, {counts['false']} false, {counts['null']} null, "
        f"{counts['not usable']} not usable; {given_up} symbolic comparisons given up"
    )
    return 1 if counts["not usable"] else 0


def _name(text: bytes) -> str | None:
    """The id of a line that cannot be used, if it has one."""
    with contextlib.suppress(ValueError, RecursionError):
        data = json.loads(text)
        if isinstance(data, dict) and isinstance(data.get("id"), str | int):
            return str(data["id"])
    return None


def _row(name: str, verdict: Verdict) -> dict[str, Any]:
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
        line = _parse(text)
    except MmcorlError as error:
        raise MmcorlError(f"{path}, line {wanted}: {error}") from None
    with _grader(options) as grader:
        print("\n".join(explain(line, grader, line.rule(options.convention))))
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
