"""The unit that a question asks for, and values written in it.

Where the question says its unit, "0.05 m", "5 cm" and "5" become one value when they are read, so that nothing is left
for equality to guess. Where it says none, the unit stays with the value that has one.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from mmcorl.graders.expressions import Apply, Number
from mmcorl.graders.units import Unit, unit_of
from mmcorl.graders.values import Equation, Items, Matrix, Quantity, Value

_UNIT_WORDS = r"(?:(?:square|cubic|sq\.?|cu\.?)\s+)?[a-zA-Z°μ]{2,15}(?:\s+per\s+[a-z]{1,12}|/[a-zA-Z]{1,6})?(?:\^?[23]|[²³])?"
_ASKED = re.compile(  # every alternative begins with a plain character, which makes the search quick
    rf"""(?:How|how)\s+many\s+({_UNIT_WORDS})
        |(?:In|in)(?<!\w..)\s+(?:the\s+unit\s+of\s+|units?\s+of\s+)?({_UNIT_WORDS})\s*(?:[?.,)]|$)
        |(?:unit|Unit|单位)s?\s*(?:is|are|[:：为是])\s*\$?({_UNIT_WORDS}|[\u4e00-\u9fff]{{1,4}})
        |(?:\(\s*\)|（\s*）|__+)\s*\$?({_UNIT_WORDS}|[a-zA-Z°]|[\u4e00-\u9fff]{{1,4}})\s*(?:[.。?？]|$)
        |多少(?:个)?([\u4e00-\u9fff]{{1,4}})""",
    re.VERBOSE,
)
_PERCENT = re.compile(
    r"""\b(?:what|which|find|calculate|determine|how\s+many)\s+(?:\w+\s+){0,3}?percent(?:age)?\b
        |\b(?:as|in)\s+(?:an?\s+|the\s+)?(?:\w+\s+){0,2}?percent(?:age)?\b
        |百分之(?:几|多少)""",
    re.IGNORECASE | re.VERBOSE,
)
_PURE = re.compile(r"\b(?:probability|as\s+a\s+(?:common\s+)?(?:fraction|decimal))\b|概率", re.IGNORECASE)
_DEGREES = ("degree", "°", "\\circ", "度")
_RADIANS = ("radian", "弧度")

PERCENT_AS_NUMBER = Unit("", "percent", Fraction(100))


@lru_cache(maxsize=4096)
def expected(question: str) -> tuple[Unit, ...]:
    """The units that an answer to the question is given in: of a dimension each, none where it does not say."""
    question = question[-4000:]
    units: dict[str, Unit] = {}
    for found in _ASKED.finditer(question):
        unit = unit_of(
            next(g for g in found.groups() if g).replace(".", "").replace("²", "^2").replace("³", "^3")
        )
        if unit is not None and unit.dimension:
            units[unit.dimension] = unit
    lowered = question.lower()
    if ("percent" in lowered or "百分" in question) and _PERCENT.search(question):
        units["percent"] = Unit("%", "percent")
    elif _PURE.search(question):
        units["percent"] = PERCENT_AS_NUMBER
    if any(mark in lowered for mark in _DEGREES) and not any(mark in lowered for mark in _RADIANS):
        units["degree"] = Unit("°", "degree")
    return tuple(units.values())


def settled(value: Value, units: tuple[Unit, ...]) -> Value:
    """The value as a bare number of the expected unit, wherever it has a unit of that dimension."""
    match value:
        case Quantity(expression, Unit(_, dimension, factor), written):
            unit = next((u for u in units if u.dimension == dimension), None)
            if unit is None:
                return value
            ratio = factor / unit.factor
            if ratio == 1:
                return Quantity(expression, None, written)
            return Quantity(Apply("*", (expression, Number(ratio))), None, f"({written})*({ratio})")
        case Equation(left, right):
            return Equation(left, settled(right, units))
        case Items(opener, closer, items):
            return Items(opener, closer, tuple(settled(v, units) for v in items))
        case Matrix(rows):
            return Matrix(tuple(tuple(settled(v, units) for v in row) for row in rows))
        case _:
            return value
