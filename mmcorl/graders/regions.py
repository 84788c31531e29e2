"""Parts of the real line: intervals, their unions and intersections, and inequalities in one variable."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from mmcorl.graders import exact, probe
from mmcorl.graders.exact import Powers
from mmcorl.graders.expressions import Apply, Expr, Number, Symbol, symbols
from mmcorl.graders.latex import Unreadable
from mmcorl.graders.values import Bound, Items, Quantity, Region, Value, form_of


def interval(value: Value) -> Region | None:
    """A region, or a pair in interval brackets read as one; None for what is neither. Raises NoValue."""
    match value:
        case Region():
            return value
        case Items(("(" | "[") as opener, (")" | "]") as closer, (Quantity() as low, Quantity() as high)):
            return ordered(None, [(Bound(low, opener == "["), Bound(high, closer == "]"))])
        case _:
            return None


def solved(low: Quantity, high: Quantity, closed: bool) -> Region | None:
    """low < high (or <=) solved for its variable, where it is linear or quadratic in just one; None otherwise."""
    for bounded, bound, inside in ((low, high, True), (high, low, False)):
        if isinstance(bounded.expression, Apply) and bounded.expression.head == "abs":
            return _distance(bounded.expression.args[0], bound, closed, inside)
    for a, b, flip in ((low, high, False), (high, low, True)):
        if isinstance(a.expression, Symbol) and symbols(a.expression) and not symbols(b.expression):
            bound, end = Bound(b, closed), Bound(None, False)
            return Region(a.expression.name, ((bound, end) if flip else (end, bound),))
    names = symbols(low.expression) | symbols(high.expression)
    form = form_of(Apply("+", (high.expression, Apply("neg", (low.expression,)))))
    if form is None or len(names) != 1:
        return None
    [name] = names
    powers: list[Powers] = [(), ((name, Fraction(1)),), ((name, Fraction(2)),)]
    if form.keys() - {(1, p) for p in powers}:
        return None
    constant, slope, curvature = (form.get((1, p), Fraction(0)) for p in powers)
    if curvature:
        return _beyond_roots(name, curvature, slope, constant, closed)
    if not slope:
        return None
    bound, end = Bound(_constant(Number(-constant / slope)), closed), Bound(None, False)
    return Region(name, ((bound, end) if slope > 0 else (end, bound),))


def _distance(inner: Expr, bound: Quantity, closed: bool, inside: bool) -> Region | None:
    """|inner| < bound if `inside`, else |inner| > bound."""
    if symbols(bound.expression) or probe.approximate(bound.expression) <= 0:
        return None
    value, minus = Quantity(inner, None, ""), _constant(Apply("neg", (bound.expression,)))
    ends = ((minus, value), (value, bound)) if inside else ((value, minus), (bound, value))
    below, above = (solved(low, high, closed) for low, high in ends)
    if below is None or above is None:
        return None
    return intersection([below, above]) if inside else union([below, above])


def _beyond_roots(name: str, a: Fraction, b: Fraction, c: Fraction, closed: bool) -> Region | None:
    """Where a x^2 + b x + c > 0 (or >=), if it has two roots."""
    if b * b <= 4 * a * c:
        return None
    width = Apply("root", (Number((b * b / 4 - a * c) / (a * a)), Number(Fraction(2))))
    middle = Number(-b / (2 * a))
    low, high = (Bound(_constant(Apply("+", (middle, w))), closed) for w in (Apply("neg", (width,)), width))
    end = Bound(None, False)
    return Region(name, ((end, low), (high, end)) if a > 0 else ((low, high),))


def _constant(expression: Expr) -> Quantity:
    form = form_of(expression)
    if form is None:
        raise Unreadable("a bound without an exact form")
    return Quantity(expression, None, exact.show(form))


def ordered(variable: str | None, spans: Sequence[tuple[Bound, Bound]]) -> Region:
    """The region of these intervals, those that overlap or touch made one. Raises NoValue for an end that is not real."""
    placed = sorted(spans, key=lambda s: (_position(s[0], float("-inf")), _position(s[1], float("inf"))))
    kept = placed[:1]
    for span in placed[1:]:
        low, high = kept[-1]
        if _apart(high, span[0]):
            kept.append(span)
        else:
            kept[-1] = (low, max(high, span[1], key=_upper))
    return Region(variable, tuple(kept))


def _apart(high: Bound, low: Bound) -> bool:
    """Whether there is something between the end of an interval and the beginning of the next."""
    end, begin = _position(high, float("inf")), _position(low, float("-inf"))
    if math.isclose(end, begin, rel_tol=1e-12, abs_tol=1e-12):
        return not (high.closed or low.closed)
    return end < begin


def _upper(bound: Bound) -> tuple[float, bool]:
    return _position(bound, float("inf")), bound.closed


def union(regions: Sequence[Region]) -> Region:
    return ordered(_variable(regions), [span for region in regions for span in region.spans])


def intersection(regions: Sequence[Region]) -> Region:
    if any(len(r.spans) != 1 for r in regions):
        raise Unreadable("an intersection of unions")
    lows, highs = zip(*(r.spans[0] for r in regions), strict=True)
    low = max(lows, key=lambda b: (_position(b, float("-inf")), not b.closed))
    high = min(highs, key=_upper)
    if _apart(high, low):
        raise Unreadable("an empty intersection")
    return ordered(_variable(regions), [(low, high)])


def common_or_all(regions: Sequence[Region]) -> Region:
    """What a list of inequalities stands for: "x > 1, x < 3" is where both hold, "x < 1, x > 3" where either does."""
    try:
        return intersection(regions)
    except Unreadable:
        return union(regions)


def without(variable: str | None, points: Sequence[Quantity]) -> Region:
    """The real line but for some points. Raises NoValue."""
    ends = sorted(points, key=lambda p: probe.approximate(p.expression))
    bounds = [Bound(None, False), *(Bound(p, False) for p in ends), Bound(None, False)]
    return Region(variable, tuple(pairwise(bounds)))


def _position(bound: Bound, infinite: float) -> float:
    return infinite if bound.at is None else probe.approximate(bound.at.expression)


def _variable(regions: Sequence[Region]) -> str | None:
    names = {r.variable for r in regions} - {None}
    if len(names) > 1:
        raise Unreadable("regions of different variables")
    return next(iter(names), None)
