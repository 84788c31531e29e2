"""What a mathematical answer can be, and the one canonical way of writing each value."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from mmcorl.graders import exact
from mmcorl.graders.expressions import Apply, Expr, size
from mmcorl.graders.latex import Unreadable
from mmcorl.graders.units import Unit


@dataclass(frozen=True)
class Quantity:
    """A number or scalar expression. `form` is its exact normal form, None where it has none."""

    expression: Expr
    unit: Unit | None
    written: str

    @property
    def form(self) -> exact.Form | None:
        return form_of(self.expression)


@dataclass(frozen=True)
class Equation:
    left: Value
    right: Value


@dataclass(frozen=True)
class Items:
    """A bare list (opener ""), a tuple or interval ("(" or "["), a finite set ("{") or a ratio or time (":")."""

    opener: str
    closer: str
    items: tuple[Value, ...]


@dataclass(frozen=True)
class Bound:
    at: Quantity | None  # None is infinity
    closed: bool


@dataclass(frozen=True)
class Region:
    """A union of intervals, in ascending order, for a variable where one is named."""

    variable: str | None
    spans: tuple[tuple[Bound, Bound], ...]


@dataclass(frozen=True)
class Matrix:
    rows: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True)
class Clock:
    """A time of the day, in minutes after midnight."""

    minutes: int


@dataclass(frozen=True)
class Raw:
    text: str


Value = Quantity | Equation | Items | Region | Matrix | Clock | Raw


def times(a: Quantity, b: Quantity) -> Quantity:
    """The product; one of the two has no unit."""
    return Quantity(
        Apply("*", (a.expression, b.expression)), a.unit or b.unit, f"({a.written})*({b.written})"
    )


MAX_DETERMINANT = 4  # rows


def determinant(matrix: Matrix) -> Quantity:
    """The determinant, developed along the first row. Raises Unreadable for what is no small square of numbers."""
    rows = matrix.rows
    if not 1 <= len(rows) <= MAX_DETERMINANT or any(len(row) != len(rows) for row in rows):
        raise Unreadable("no determinant")
    first = rows[0][0]
    if not isinstance(first, Quantity) or (first.unit and first.unit.name):
        raise Unreadable("a determinant of other things than numbers")
    if len(rows) == 1:
        return first
    terms: list[Expr] = []
    for column, entry in enumerate(rows[0]):
        minor = Matrix(tuple(row[:column] + row[column + 1 :] for row in rows[1:]))
        term = times(determinant(Matrix(((entry,),))), determinant(minor)).expression
        terms.append(Apply("neg", (term,)) if column % 2 else term)
    total = Apply("+", tuple(terms))
    form = form_of(total)
    if form is None:
        raise Unreadable("a determinant without an exact form")
    return Quantity(total, None, exact.show(form))


def show(value: Value) -> str:
    """The canonical text of a value; reading it gives the value again."""
    match value:
        case Quantity(_, unit, written):
            form = value.form
            number = written if form is None else exact.show(form)
            return number + _show_unit(unit) if unit and unit.name else number
        case Equation(left, right):
            return f"{show(left)}={show(right)}"
        case Items(opener, closer, items):
            if opener == ":":
                return ":".join(map(show, items))
            inner = ", ".join(map(show, items))
            return f"\\{opener}{inner}\\{closer}" if opener == "{" else f"{opener}{inner}{closer}"
        case Region(variable, spans):
            return (f"{exact.show_symbol(variable)}∈" if variable else "") + "∪".join(map(_show_span, spans))
        case Matrix(rows):
            body = r" \\ ".join(" & ".join(map(show, row)) for row in rows)
            return rf"\begin{{pmatrix}} {body} \end{{pmatrix}}"
        case Clock(minutes):
            hour, half = minutes // 60 % 12 or 12, "pm" if minutes >= 720 else "am"
            return f"{hour}:{minutes % 60:02} {half}"
        case Raw(raw):
            return raw


def _show_unit(unit: Unit) -> str:
    return unit.name if unit.name[0] in "%°" else rf" \text{{{unit.name}}}"


def _show_span(span: tuple[Bound, Bound]) -> str:
    low, high = span
    left = "-∞" if low.at is None else show(low.at)
    right = "∞" if high.at is None else show(high.at)
    return f"{'[' if low.closed else '('}{left}, {right}{']' if high.closed else ')'}"


@lru_cache(maxsize=8192)
def form_of(expression: Expr) -> exact.Form | None:
    """The exact normal form, remembered; None where there is none."""
    try:
        return exact.normal(expression) if size(expression) <= 400 else None
    except exact.NoForm:
        return None
