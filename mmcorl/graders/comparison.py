"""Equality of mathematical values, decided here wherever exact or many-digit arithmetic can."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from mmcorl.graders import exact, probe, regions
from mmcorl.graders.expressions import Apply, Expr, Number, Symbol, symbols
from mmcorl.graders.values import Bound, Clock, Equation, Items, Matrix, Quantity, Raw, Region, Value, form_of

_FLOAT_DIGITS = 15  # a decimal of at least so many digits is a rounded double, not an exact number


def equal(a: Value, b: Value) -> bool | None:
    """Whether two values are the same answer; None where only symbolic algebra can tell. Symmetric."""
    if a == b:
        return True
    match a, b:
        case (Raw(), _) | (_, Raw()):
            return None
        case Quantity(), Quantity():
            return _quantities(a, b)
        case Equation(), Equation():
            return _equations(a, b)
        case Equation(), _:
            return equal(a.right, b) or (_list_of_solutions(a, b))
        case _, Equation():
            return equal(b, a)
        case (Region(), _) | (_, Region()):
            return _regions(a, b)
        case Items(":", _, _), _ if isinstance(b, Quantity) or (isinstance(b, Items) and b.opener == ":"):
            return _ratios(a, b)
        case Quantity(), Items(":", _, _):
            return _ratios(b, a)
        case Items(), Items():
            return _items(a, b)
        case (Clock(), _) | (_, Clock()):
            return _times_of_day(a, b)
        case (Matrix(), Items("(", _, items)) | (Items("(", _, items), Matrix()):
            matrix = a if isinstance(a, Matrix) else b
            return equal(matrix, Matrix(tuple((item,) for item in items)))
        case Matrix(), Matrix():
            if [len(r) for r in a.rows] != [len(r) for r in b.rows]:
                return False
            return _all(
                equal(x, y) for r, s in zip(a.rows, b.rows, strict=True) for x, y in zip(r, s, strict=True)
            )
        case _:
            return False


def _all(verdicts: Iterable[bool | None]) -> bool | None:
    """False if any is False, else None if any is None, else True."""
    undecided = False
    for verdict in verdicts:
        if verdict is False:
            return False
        undecided = undecided or verdict is None
    return None if undecided else True


_ABSOLUTE: dict[str, Expr] = {
    "percent": Number(Fraction(1, 100)),
    "degree": Apply("/", (Symbol("pi"), Number(Fraction(180)))),
}


def _quantities(a: Quantity, b: Quantity) -> bool | None:
    """A number without a unit leaves the unit to the question, so it is the same as one with any unit.

    Percent and degrees are pure numbers as well: 50 % is 50 or 1/2, 90° is 90 or pi/2.
    """
    if a.unit is not None and b.unit is not None and a.unit.name and b.unit.name:
        if a.unit.dimension != b.unit.dimension:
            return False
        return expressions(_scaled(a.expression, a.unit.factor), _scaled(b.expression, b.unit.factor))
    if expressions(a.expression, b.expression):
        return True
    marked, plain = (a, b) if a.unit is not None and a.unit.name else (b, a)
    absolute = _ABSOLUTE.get(marked.unit.dimension) if marked.unit else None
    return absolute is not None and expressions(Apply("*", (marked.expression, absolute)), plain.expression)


def _scaled(expression: Expr, factor: Fraction) -> Expr:
    return expression if factor == 1 else Apply("*", (expression, Number(factor)))


def expressions(a: Expr, b: Expr) -> bool:
    """Exact where both have a normal form, else by their values to many digits.

    What has no finite value of manageable size (1/0, towers of powers) is the same as itself only.
    """
    left, right = form_of(a), form_of(b)
    if left is not None and right is not None:
        return left == right or _rounded(a, b)
    verdict = probe.agree(a, b)
    return bool(verdict) or (verdict is False and _rounded(a, b))


def _rounded(a: Expr, b: Expr) -> bool:
    """Whether one is the other as a double would print it: equal to the last of 15 or more digits."""
    if symbols(a) or symbols(b):
        return False
    places = [p for p in map(_places, (a, b)) if p is not None]
    return bool(places) and probe.agree_to(a, b, Fraction(1, 10 ** min(places)))


def _places(expression: Expr) -> int | None:
    """Decimal places of a decimal that has at least 15 digits, else None."""
    form = form_of(expression)
    if form is None or form.keys() - {(1, ())}:
        return None
    value = exact.rational(form)
    rest, places = value.denominator, 0
    while places < 40 and rest > 1:
        places += 1
        rest = (value * 10**places).denominator
    return (
        places
        if rest == 1
        and places
        and len(str(abs(value.numerator * 10**places // value.denominator))) >= _FLOAT_DIGITS
        else None
    )


def _equations(a: Equation, b: Equation) -> bool | None:
    """The same sides, or the same curve: one difference of sides a multiple of the other."""
    same_sides = _all((equal(a.left, b.left), equal(a.right, b.right)))
    if same_sides:
        return True
    sides = (a.left, a.right, b.left, b.right)
    if not all(isinstance(s, Quantity) for s in sides):
        return same_sides
    first, second = (form_of(_difference(e)) for e in (a, b))
    if first is None or second is None:
        return same_sides
    return exact.proportional(first, second) is not None or (not first and not second)


def _difference(equation: Equation) -> Expr:
    assert isinstance(equation.left, Quantity) and isinstance(equation.right, Quantity)
    return Apply("+", (equation.left.expression, Apply("neg", (equation.right.expression,))))


def _list_of_solutions(equation: Equation, other: Value) -> bool:
    """`5 = x` is the answer 5 as well."""
    left, right = equation.left, equation.right
    lone = isinstance(right, Quantity) and isinstance(right.expression, Symbol)
    return lone and isinstance(left, Quantity) and not symbols(left.expression) and equal(left, other) is True


def _times_of_day(a: Value, b: Value) -> bool:
    """A time without am or pm is either, if it does not count to 24."""
    if not isinstance(a, Clock):
        a, b = b, a
    match a, b:
        case Clock(minutes), Items(":", _, (Quantity(Number(hour)), Quantity(Number(minute)))):
            read = hour * 60 + minute
            return read == minutes or (hour <= 12 and read % 720 == minutes % 720)
        case _:
            return False


def _ratios(a: Items, b: Items | Quantity) -> bool | None:
    """Proportional terms; a ratio of two numbers is also their quotient."""
    left = a.items
    right = b.items if isinstance(b, Items) else (b, Quantity(Number(Fraction(1)), None, "1"))
    if len(left) != len(right) or not all(isinstance(q, Quantity) for q in (*left, *right)):
        return False
    return _all(
        expressions(_times(left[0], y), _times(right[0], x)) for x, y in zip(left[1:], right[1:], strict=True)
    )


def _times(a: Value, b: Value) -> Expr:
    assert isinstance(a, Quantity) and isinstance(b, Quantity)
    return Apply("*", (a.expression, b.expression))


def _items(a: Items, b: Items) -> bool | None:
    openers = {a.opener, b.opener}
    if openers == {"{"}:
        return _same_members(a.items, b.items)
    if "" in openers and ("{" in openers or openers == {""}):
        return len(a.items) == len(b.items) and _matching(a.items, b.items)
    if len(a.items) != len(b.items) or (":" in openers and len(openers) > 1):
        return False
    if "" in openers and {(a.opener, a.closer), (b.opener, b.closer)} & {("[", ")"), ("(", "]")}:
        return False  # an interval that is open at one end is no list
    pair = len(a.items) == 2 and "" not in openers
    if pair and (a.opener, a.closer) != (b.opener, b.closer):
        return False
    if "{" in openers:
        return False
    return _all(equal(x, y) for x, y in zip(a.items, b.items, strict=True))


def _same_members(a: tuple[Value, ...], b: tuple[Value, ...]) -> bool | None:
    undecided = False
    for some, others in ((a, b), (b, a)):
        for item in some:
            verdicts = [equal(item, other) for other in others]
            if True in verdicts:
                continue
            if None not in verdicts:
                return False
            undecided = True
    return None if undecided else True


def _matching(a: tuple[Value, ...], b: tuple[Value, ...]) -> bool | None:
    """Whether the items pair up in some order."""
    left = list(b)
    undecided = False
    for item in a:
        verdicts = [equal(item, other) for other in left]
        if True in verdicts:
            left.pop(verdicts.index(True))
        elif None in verdicts:
            undecided = True
        else:
            return False
    return None if undecided else True


def _regions(first: Value, second: Value) -> bool | None:
    try:
        a, b = regions.interval(first), regions.interval(second)
    except probe.NoValue:
        return False
    if a is None or b is None:
        return False
    if a.variable is not None and b.variable is not None and a.variable != b.variable:
        return False
    if len(a.spans) != len(b.spans):
        return False
    return _all(
        _bounds(x, y) for s, t in zip(a.spans, b.spans, strict=True) for x, y in zip(s, t, strict=True)
    )


def _bounds(a: Bound, b: Bound) -> bool | None:
    if a.at is None or b.at is None:
        return a.at is b.at
    return a.closed == b.closed and equal(a.at, b.at)
