"""Parts of the real line: intervals, their unions and intersections, and inequalities in one variable."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from mmcorl.graders import probe
from mmcorl.graders.expressions import Apply, Number, Symbol, symbols
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
    """low < high solved for its variable where it is linear in just one; None otherwise."""
    for a, b, flip in ((low, high, False), (high, low, True)):
        if isinstance(a.expression, Symbol) and symbols(a.expression) and not symbols(b.expression):
            bound, end = Bound(b, closed), Bound(None, False)
            return Region(a.expression.name, ((bound, end) if flip else (end, bound),))
    names = symbols(low.expression) | symbols(high.expression)
    form = form_of(Apply("+", (high.expression, Apply("neg", (low.expression,)))))
    if form is None or len(names) != 1:
        return None
    [name] = names
    slope = form.get((1, ((name, Fraction(1)),)))
    if slope is None or any(powers not in ((), ((name, 1),)) or root != 1 for root, powers in form):
        return None
    edge = -form.get((1, ()), Fraction(0)) / slope
    bound = Bound(Quantity(Number(edge), None, str(edge)), closed)
    end = Bound(None, False)
    return Region(name, ((bound, end) if slope > 0 else (end, bound),))


def ordered(variable: str | None, spans: Sequence[tuple[Bound, Bound]]) -> Region:
    """The region of these intervals. Raises NoValue where an end is no real number."""
    placed = sorted(spans, key=lambda s: (_position(s[0], float("-inf")), _position(s[1], float("inf"))))
    return Region(variable, tuple(placed))


def union(regions: Sequence[Region]) -> Region:
    return ordered(_variable(regions), [span for region in regions for span in region.spans])


def intersection(regions: Sequence[Region]) -> Region:
    if any(len(r.spans) != 1 for r in regions):
        raise Unreadable("an intersection of unions")
    lows, highs = zip(*(r.spans[0] for r in regions), strict=True)
    low = max(lows, key=lambda b: (_position(b, float("-inf")), not b.closed))
    high = min(highs, key=lambda b: (_position(b, float("inf")), b.closed))
    return ordered(_variable(regions), [(low, high)])


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
