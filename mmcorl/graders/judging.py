"""Judging one labelled line, a bare answer or a whole completion against its gold, and saying why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from string import ascii_uppercase

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from mmcorl.errors import MmcorlError
from mmcorl.graders import choices, comparison, math
from mmcorl.graders.answers import Answer
from mmcorl.graders.conventions import STRICT, Convention, convention
from mmcorl.graders.extract import Statement
from mmcorl.graders.grader import Grader
from mmcorl.graders.values import Quantity, Value
from mmcorl.problems import AnswerKind, Problem

_WIDTH = 160  # characters of a text that an explanation shows

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


def parse(text: bytes) -> Line:
    """One line of JSON. Raises MmcorlError with what is wrong with it."""
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


@dataclass(frozen=True)
class Verdict:
    """`right` is None where there is nothing to compare."""

    right: bool | None
    answer: Answer | None
    gold: Answer | None
    why: str


def judge(line: Line, grader: Grader, rule: Convention = STRICT) -> Verdict:
    """Grade one line, noting how its answer was found and which comparison decided."""
    problem = line.problem
    gold = grader.read(line.gold, problem)
    found, answer = next((r for r in _readings(line, grader) if r[1] is not None), (None, None))
    if answer is None and (problem.kind == "code" or rule.nearest_choice):
        answer = (grader.answer if line.whole else grader.read)(line.text, problem, rule)
    if answer is None:
        nothing = "the response states no answer" if line.whole else "pred says nothing"
        return Verdict(None, None, gold, f"{nothing} that can be read")
    unread = "code block" if problem.kind == "code" else "nearest option"
    how = found.how if found else unread
    if gold is None:
        return Verdict(None, answer, None, f"{how}; the gold says nothing that can be read")
    same, reason = _compare(answer, gold, grader)
    right = grader.correct(answer, gold, problem, rule)
    reason = reason if right == same else f"{reason}, but {_allowance(rule)}"
    return Verdict(right, answer, gold, f"{how}; {reason}")


def _readings(line: Line, grader: Grader) -> Iterator[tuple[Statement, Answer | None]]:
    if line.whole:
        yield from grader.readings(line.text, line.problem)
    elif line.problem.kind != "code":
        yield Statement(line.text, "pred"), grader.read(line.text, line.problem)


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


def explain(line: Line, grader: Grader, rule: Convention = STRICT) -> Iterator[str]:
    """The steps of `judge` for a person to read."""
    problem, verdict = line.problem, judge(line, grader, rule)
    yield f"kind      {problem.kind}"
    for letter, text in zip(ascii_uppercase, choices.options(problem) or (), strict=False):
        yield f"option {letter}  {_clip(text)}"
    if line.whole:
        yield f"response  {len(line.text)} characters, ending in {_clip(line.text[-60:])}"
    taken, note = False, ""
    for statement, answer in _readings(line, grader):
        note = "not needed" if taken else "taken" if answer else "passed over"
        taken = taken or answer is not None
        yield f"  {statement.how:<11} {_clip(statement.text)} -> {_show(answer)} [{note}]"
    if not note and problem.kind != "code":
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
