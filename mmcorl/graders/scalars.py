"""One number or expression with its unit: "5 cm", "2 h 30 min", "3:30 pm", "52_8", "twenty-one"."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import pairwise

from mmcorl.graders import units
from mmcorl.graders.expressions import Apply, Number, symbols
from mmcorl.graders.latex import Token, Unreadable
from mmcorl.graders.parser import ANGLE_FUNCTIONS, number, parse
from mmcorl.graders.values import Clock, Quantity, Value
from mmcorl.graders.words import from_words

_OPENERS = frozenset(("(", "[", "{", r"\{"))
_CLOSERS = frozenset((")", "]", "}", r"\}"))


def split(parts: Sequence[Token], at: Callable[[Token], bool]) -> list[Sequence[Token]]:
    """Cut at the tokens for which `at` holds, outside of all brackets."""
    pieces: list[Sequence[Token]] = []
    depth = start = 0
    for index, token in enumerate(parts):
        if token.kind == "op" and token.text in _OPENERS:
            depth += 1
        elif token.kind == "op" and token.text in _CLOSERS:
            depth -= 1
        elif token.kind == "command" and token.text in ("begin", "end", "langle", "rangle"):
            depth += 1 if token.text in ("begin", "langle") else -1
        elif depth == 0 and at(token):
            pieces.append(parts[start:index])
            start = index + 1
    pieces.append(parts[start:])
    return pieces


def depth(pieces: Iterable[str]) -> int:
    """How deep brackets are nested in a text or in the texts of tokens."""
    level = deepest = 0
    for piece in pieces:
        level += (piece in _OPENERS) - (piece in _CLOSERS)
        deepest = max(level, deepest)
    return deepest


def scalar(parts: Sequence[Token]) -> Quantity:
    """An expression with the unit after it, if there is one. Raises Unreadable."""
    if (based := _in_base(parts)) is not None:
        return based
    if (summed := _in_two_units(parts)) is not None:
        return summed
    worded = from_words(" ".join(t.text for t in parts)) if parts and parts[0].kind == "word" else None
    if worded is not None:
        return Quantity(Number(worded), None, str(worded))
    has_function = any(t.kind == "command" and t.text in ANGLE_FUNCTIONS for t in parts)
    for cut in range(1, len(parts)):
        if has_function and parts[cut].text == "°":  # the unit of the argument, not of the value
            continue
        if parts[cut].kind in ("word", "name", "op", "command") and _ends_number(parts[cut - 1]):
            found = units.suffix(parts[cut:])
            if found is not None:
                expression = parse(parts[:cut])
                if symbols(expression) and [(t.kind, len(t.text)) for t in parts[cut:]] == [("name", 1)]:
                    continue  # the h of "a b h" is no hour
                if found.factor != 1:
                    expression = Apply("*", (expression, Number(Fraction(found.factor))))
                return Quantity(expression, found.unit, written(parts[:cut]))
    return Quantity(parse(parts), None, written(parts))


def _in_base(parts: Sequence[Token]) -> Quantity | None:
    """A numeral with its base, as in `52_8`. The base is a unit: the numeral alone leaves it to the question."""
    shown = [t for t in parts if t.text not in ("{", "}")]
    if len(shown) != 3 or shown[1].text != "_" or shown[0].kind != "number":
        return None
    base = shown[2].text if shown[2].kind == "number" else from_words(shown[2].text)
    if base is None:
        return None
    return Quantity(Number(number(shown[0].text)), units.Unit(f"_{base}", f"base {base}"), shown[0].text)


def _in_two_units(parts: Sequence[Token]) -> Quantity | None:
    """Numbers with ever smaller units of one dimension, as in "5 ft 6 in"."""
    starts = [i for i, t in enumerate(parts) if t.kind == "number"]
    if not 2 <= len(starts) <= 3 or starts[0] != 0 or any(b - a < 2 for a, b in pairwise(starts)):
        return None
    if any(t.kind == "op" for t in parts):
        return None
    pieces = [parts[a:b] for a, b in zip(starts, [*starts[1:], len(parts)], strict=True)]
    return summed([scalar(p) for p in pieces]) if all(len(p) > 1 for p in pieces) else None


def summed(measures: Sequence[Value]) -> Quantity | None:
    """The sum of measures in ever smaller units of one dimension, in the first of them; None for other values."""
    total, factors, first = Fraction(0), [], None
    for measure in measures:
        if not (isinstance(measure, Quantity) and measure.unit and isinstance(measure.expression, Number)):
            return None
        first = first or measure.unit
        if measure.unit.dimension != first.dimension or not first.dimension:
            return None
        factors.append(measure.unit.factor)
        total += measure.expression.value * measure.unit.factor / first.factor
    if factors != sorted(set(factors), reverse=True):
        return None
    return Quantity(Number(total), first, str(total))


def clock(parts: Sequence[Token]) -> Clock | None:
    """A time of the day with am or pm, as in "3:30 pm" or "3 pm"; None for what is not."""
    *numerals, half = parts
    if half.text.lower() not in ("am", "pm") or not 1 <= len(numerals) <= 3 or numerals[0].kind != "number":
        return None
    texts = [t.text for t in numerals]
    if not texts[0].isdecimal() or (
        len(texts) > 1 and (len(texts) != 3 or texts[1] != ":" or not texts[2].isdecimal())
    ):
        return None
    hour, minute = int(texts[0]), int(texts[2]) if len(texts) == 3 else 0
    if not 1 <= hour <= 12 or minute > 59:
        raise Unreadable("no time of the day")
    return Clock(hour % 12 * 60 + minute + 720 * (half.text.lower() == "pm"))


def _ends_number(token: Token) -> bool:
    return token.kind == "number" or token.text in (")", "}", "°", "!") or token.kind in ("command", "name")


def written(parts: Sequence[Token]) -> str:
    """Tokens as text that reads back to the same tokens."""
    pieces: list[str] = []
    for token in parts:
        text = rf"\{token.text} " if token.kind == "command" else token.text
        text = rf"\text{{{text}}}" if token.kind == "word" else text
        pieces.append(f" {text}" if token.spaced and pieces else text)
    return " ".join("".join(pieces).split())
