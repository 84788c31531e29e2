"""How a benchmark counts an answer as right, where that is more than being the same answer.

A convention is data. What differs from row to row (the decimals asked for, the unit, whether an integer is expected)
is a field too: `convention("mathvista", precision=1)`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from string import ascii_uppercase

from mmcorl.errors import MmcorlError
from mmcorl.graders import comparison, probe
from mmcorl.graders.expectation import settled
from mmcorl.graders.folding import fold
from mmcorl.graders.units import unit_of
from mmcorl.graders.values import Equation, Items, Quantity, Value

MAX_NEAREST = 200  # characters of an answer that is mapped to the nearest option


@dataclass(frozen=True)
class Convention:
    """What counts as right beside the same answer. The default adds nothing.

    Numbers in lists, tuples and equations are compared one by one under the same rule.
    """

    name: str = "strict"
    precision: int | None = None
    """Decimals to which both numbers are rounded, as python rounds floats; None compares them exactly."""
    relative: float = 0.0
    """Relative tolerance, of the larger of the two numbers."""
    absolute: float = 0.0
    """Absolute tolerance."""
    truncated: bool = False
    """Where the gold is an integer, the fractional part of the answer is dropped."""
    unordered: bool = False
    """The order of a tuple or list does not matter."""
    nearest_choice: bool = False
    """An answer that names no option counts as the option nearest to it by edit distance."""
    unit: str | None = None
    """The unit of the gold, if it has one beside it."""
    answer_type: str | None = None
    """As MathVista has it: `integer`, `float`, `list` or `text`."""

    @property
    def adds_nothing(self) -> bool:
        exact = self.precision is None and self.relative == self.absolute == 0
        return exact and self.unit is None and not self.truncated and not self.unordered


STRICT = Convention()
CONVENTIONS: dict[str, Convention] = {
    c.name: c
    for c in (
        STRICT,
        Convention("mathvista", truncated=True, nearest_choice=True),
        Convention("mathverse"),
        Convention("mathvision"),
        Convention("wemath"),
        Convention("geoqa"),
        Convention("mmmu", precision=2),
        Convention("mmmu_pro"),
        Convention("scibench", relative=0.05),
        Convention("math500"),
        Convention("gsm8k"),
    )
}


def convention(
    name: str, *, precision: int | None = None, unit: str | None = None, answer_type: str | None = None
) -> Convention:
    """The convention of a benchmark with the fields of one row; what the row leaves out stays.

    Raises:
        MmcorlError: No convention has that name, or `precision` is negative.
    """
    if name not in CONVENTIONS:
        raise MmcorlError(f"no grading convention {name!r}; there are: {', '.join(CONVENTIONS)}")
    if precision is not None and precision < 0:
        raise MmcorlError(f"precision is {precision}, but a number of decimals is 0 or more")
    base = CONVENTIONS[name]
    return replace(
        base,
        precision=base.precision if precision is None else precision,
        unit=unit or base.unit,
        answer_type=answer_type or base.answer_type,
    )


def accepts(rule: Convention, answer: Value, gold: Value) -> bool:
    """Whether the convention counts a mathematical value that is not the gold's as right nevertheless."""
    if rule.adds_nothing:
        return False
    if rule.unit and (unit := unit_of(rule.unit)) is not None:
        answer, gold = settled(answer, (unit,)), settled(gold, (unit,))
        if any(isinstance(v, Quantity) and v.unit and v.unit.name for v in (answer, gold)):
            return False  # of another dimension
        if comparison.equal(answer, gold):
            return True
    answer, gold = _right_side(answer), _right_side(gold)
    if isinstance(answer, Items) and isinstance(gold, Items):
        brackets = {(v.opener, v.closer) for v in (answer, gold) if v.opener}
        if len(brackets) > 1 and rule.answer_type != "list":
            return False
        return _lists(rule, rule.unordered or gold.opener == "{", answer.items, gold.items)
    if not (isinstance(answer, Quantity) and isinstance(gold, Quantity)):
        return False
    if answer.unit and gold.unit and answer.unit != gold.unit:
        return False
    try:
        return _numbers(rule, *(probe.approximate(q.expression) for q in (answer, gold)))
    except (probe.NoValue, OverflowError):
        return False


def _right_side(value: Value) -> Value:
    return value.right if isinstance(value, Equation) else value


def _numbers(rule: Convention, answer: float, gold: float) -> bool:
    if (
        rule.truncated
        and rule.answer_type in (None, "integer")
        and gold == int(gold)
        and rule.precision is None
    ):
        return int(answer) == gold
    if rule.precision is not None and round(answer, rule.precision) == round(gold, rule.precision):
        return True
    tolerant = rule.relative > 0 or rule.absolute > 0
    return tolerant and math.isclose(answer, gold, rel_tol=rule.relative, abs_tol=rule.absolute)


def _lists(rule: Convention, unordered: bool, answer: Sequence[Value], gold: Sequence[Value]) -> bool:
    if len(answer) != len(gold):
        return False

    def right(a: Value, g: Value) -> bool:
        return comparison.equal(a, g) is True or accepts(rule, a, g)

    if not unordered:
        return all(right(a, g) for a, g in zip(answer, gold, strict=True))
    left = list(answer)
    for g in gold:
        found = next((i for i, a in enumerate(left) if right(a, g)), None)
        if found is None:
            return False
        left.pop(found)
    return True


def nearest(text: str, options: Sequence[str]) -> str:
    """The letter of the option with the smallest edit distance to a text, the first of several."""
    said = fold(text[:MAX_NEAREST])
    distances = [_distance(said, fold(option[:MAX_NEAREST])) for option in options]
    return ascii_uppercase[distances.index(min(distances))]


def _distance(a: str, b: str) -> int:
    """Levenshtein's edit distance."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]
