"""Mathematical answers: from text to a value with one canonical way of writing it.

A value is a quantity, an equation, a list, tuple, interval or set, a region of the real line, a matrix, or, where the
mathematics is beyond this reader, the cleaned text (`Raw`), which the symbolic workers compare.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from mmcorl.graders import probe, regions
from mmcorl.graders.expressions import Symbol, symbols
from mmcorl.graders.latex import Token, Unreadable, tokens
from mmcorl.graders.repairs import MAX_TEXT, mended
from mmcorl.graders.scalars import clock, depth, scalar, split, summed
from mmcorl.graders.values import (
    Bound,
    Equation,
    Items,
    Matrix,
    Quantity,
    Raw,
    Region,
    Value,
    determinant,
    show,
    times,
)
from mmcorl.graders.words import words

MAX_TOKENS = 1500
MAX_NESTING = 40  # brackets within brackets
MAX_ITEMS = 200


@lru_cache(maxsize=8192)
def read(text: str) -> Value:
    """The value that the text states; Raw if this reader cannot tell. Never raises."""
    cleaned = mended(text)
    if len(cleaned) > MAX_TEXT:
        return Raw(cleaned)
    try:
        parts = tokens(cleaned)
        if len(parts) > MAX_TOKENS or depth(t.text for t in parts) > MAX_NESTING:
            return Raw(cleaned)
        return _statement(parts)
    except (Unreadable, probe.NoValue, RecursionError):
        return Raw(cleaned)


def running_words(text: str) -> int:
    """How many words of running text there are, which commands and their arguments are not; a Chinese sign is one."""
    return len(re.findall(r"(?<![\\a-zA-Z{])[a-zA-Z]{3,}|[\u4e00-\u9fff]", text))


# ------------------------------------------------------------------------------------------- statements


def _statement(parts: Sequence[Token]) -> Value:
    """Alternatives ("or"), conjunctions ("and"), lists, unions, relations, and what is inside them."""
    parts = _without_lead(parts)
    if not parts:
        raise Unreadable("nothing to read")
    for joint, merge in (("or", regions.union), ("and", regions.intersection)):
        pieces = split(parts, lambda t, joint=joint: t.kind == "word" and t.text.lower() == joint)
        if len(pieces) > 1 and all(pieces):
            values = [_statement(_strip_commas(p)) for p in pieces]
            found = [v for v in values if isinstance(v, Region)]
            if len(found) == len(values):
                return merge(found)
            if joint == "or" and len(set(map(show, values))) == 1:
                return values[0]  # "3/2 or 1.5"
            return (summed(values) or _mixed_number(pieces) if joint == "and" else None) or _listed(values)
    pieces = split(parts, lambda t: t.kind == "op" and t.text in (",", ";"))
    if len(pieces) > 1:
        values = [_statement(p) for p in pieces if p]
        found = [v for v in values if isinstance(v, Region) and v.variable]
        same_variable = len(found) == len(values) and len({r.variable for r in found}) == 1
        return regions.common_or_all(found) if same_variable else _listed(values)
    return _relation(parts)


def _mixed_number(pieces: Sequence[Sequence[Token]]) -> Quantity | None:
    """ "3 and 1/2", written with a slash; the list 3, 1/2 is written otherwise."""
    texts = [[t.text for t in piece] for piece in pieces]
    match texts:
        case [[whole], [top, "/", bottom]] if all(t.isdecimal() for t in (whole, top, bottom)):
            if 0 < int(top) < int(bottom):
                return scalar([*pieces[0], *(t._replace(spaced=True) for t in pieces[1])])
    return None


_LEADING_WORDS = words("about approximately is are exactly only answer therefore thus so equals")


def _without_lead(parts: Sequence[Token]) -> Sequence[Token]:
    """Without a few words that say only that an answer follows, as in "answer: 5" or "is about 5"."""
    for position, token in enumerate(parts[:4]):
        if position and token.text == ":":
            return parts[position + 1 :]
        if token.kind != "word" or token.text.lower() not in _LEADING_WORDS:
            return parts[position:]
    return parts


def _strip_commas(parts: Sequence[Token]) -> Sequence[Token]:
    return parts[:-1] if parts and parts[-1].text == "," else parts


def _listed(values: Sequence[Value]) -> Value:
    """A bare list, with nested bare lists (from ± or "and") opened up."""
    flat: list[Value] = []
    for value in values:
        flat.extend(value.items if isinstance(value, Items) and not value.opener else [value])
    if len(flat) > MAX_ITEMS:
        raise Unreadable("a list too long")
    return flat[0] if len(flat) == 1 else Items("", "", tuple(flat))


_RELATIONS = ("=", "<", ">", "<=", ">=", "!=", "≈")


def _relation(parts: Sequence[Token]) -> Value:
    signs = [t.text for t in parts if t.kind == "op" and t.text in _RELATIONS]
    sides = split(parts, lambda t: t.kind == "op" and t.text in _RELATIONS)
    if len(sides) == 1:
        member = split(parts, lambda t: t.text == "∈")
        if len(member) == 2 and len(member[0]) == 1:
            belongs = _relation(member[1])
            if isinstance(belongs, Items) and belongs.opener == "{":
                return belongs
            inside = regions.interval(belongs)
            if inside is not None and inside.variable is None:
                return Region(_variable(member[0]), inside.spans)
        if len(member) > 1:
            raise Unreadable("membership")
        return _unions(parts)
    if len(signs) != len(sides) - 1:
        raise Unreadable("relations inside brackets")
    if set(signs) <= {"=", "≈"}:
        left, right = _unions(sides[0]), _unions(sides[-1])
        if not (isinstance(left, Quantity) and not symbols(left.expression)):
            return Equation(left, right)
        lone = (
            isinstance(right, Quantity) and isinstance(right.expression, Symbol) and symbols(right.expression)
        )
        return Equation(right, left) if lone and len(sides) == 2 else right
    return _inequality([scalar(s) for s in sides], signs)


def _variable(parts: Sequence[Token]) -> str:
    expression = scalar(parts).expression
    if not isinstance(expression, Symbol):
        raise Unreadable("not a variable")
    return expression.name


def _inequality(sides: Sequence[Quantity], signs: Sequence[str]) -> Value:
    """One variable between constants becomes a region."""
    if list(signs) == ["!="] and isinstance(sides[0].expression, Symbol) and not symbols(sides[1].expression):
        return regions.without(sides[0].expression.name, [sides[1]])
    if "=" in signs or "!=" in signs or len({s[0] for s in signs}) != 1:
        raise Unreadable("a mixed chain of relations")
    if signs[0][0] == ">":
        sides, signs = sides[::-1], signs[::-1]
    if len(sides) == 2:
        solved = regions.solved(sides[0], sides[1], signs[0].endswith("="))
        if solved is not None:
            return solved
    if len(sides) == 3 and isinstance(sides[1].expression, Symbol):
        low, high = Bound(sides[0], signs[0].endswith("=")), Bound(sides[2], signs[1].endswith("="))
        return regions.ordered(sides[1].expression.name, [(low, high)])
    raise Unreadable("an inequality in several variables")


def _unions(parts: Sequence[Token]) -> Value:
    pieces = split(parts, lambda t: t.text == "∪")
    if len(pieces) == 1:
        return _object(parts)
    found = [regions.interval(_object(p)) for p in pieces]
    if any(r is None for r in found):
        raise Unreadable("a union of something else than intervals")
    return regions.union([r for r in found if r is not None])


def _object(parts: Sequence[Token]) -> Value:
    """Something in brackets, a matrix, or a scalar."""
    if not parts:
        raise Unreadable("nothing to read")
    first, last = parts[0].text, parts[-1].text
    if [t.text for t in parts] in (["∅"], [r"\{", r"\}"]):
        return Items("{", "}", ())
    if [t.text for t in parts] == ["reals"]:
        return Region(None, ((Bound(None, False), Bound(None, False)),))
    outside = split(parts, lambda t: t.text == "setminus")
    if len(outside) == 2 and [t.text for t in outside[0]] == ["reals"] and outside[1]:
        removed = _object(outside[1])
        points = removed.items if isinstance(removed, Items) and removed.opener == "{" else (removed,)
        return regions.without(None, [p for p in points if isinstance(p, Quantity)])
    if first in ("(", "[") and _encloses(parts) and parts[1].text == "begin" and parts[-2].text == "}":
        return _object(parts[1:-1])
    named_point = parts[0].kind == "name" and len(first) == 1 and first.isupper() and first != "C"
    if named_point and parts[1:] and parts[1].text == "(" and _encloses(parts[1:]):
        point = _object(parts[1:])
        if isinstance(point, Items) and point.opener == "(":
            return point
    if [t.text for t in parts[:3]] == ["begin", "{", "vmatrix"] and parts[-2].text == "vmatrix":
        return determinant(_matrix(parts))
    if any(t.kind == "command" and t.text == "begin" for t in parts) and not (
        first == "(" and _encloses(parts)
    ):
        return _multiple(parts)
    if parts[0].kind == "command" and first == "langle" and last == "rangle":
        return Items("(", ")", _items(parts[1:-1]))
    if first == r"\{" and last == r"\}" and _encloses(parts):
        return _set(parts[1:-1])
    if first == "]" or (last == "[" and first == "["):  # ]2, 5] is the half-open interval (2, 5]
        ends = split(parts[1:-1], lambda t: t.text in (",", ";"))
        if len(ends) != 2 or last not in "[]":
            raise Unreadable("brackets that do not match")
        return _bracketed("(" if first == "]" else "[", ")" if last == "[" else "]", ends)
    if first in ("(", "[") and last in (")", "]") and _encloses(parts):
        inside = split(parts[1:-1], lambda t: t.text in (",", ";"))
        if len(inside) > 1:
            return _rows(_bracketed(first, last, inside))
        if first == "(" and last == ")":
            return _statement(parts[1:-1])
        return Items(first, last, (_statement(parts[1:-1]),))
    if (time := clock(parts)) is not None:
        return time
    terms = split(parts, lambda t: t.text == ":" or (t.kind == "word" and t.text == "to"))
    if len(terms) > 1:
        return Items(":", ":", tuple(scalar(t) for t in terms))
    if any(t.text in ("±", "∓") for t in parts):
        return _both_signs(parts)
    return scalar(parts)


def _encloses(parts: Sequence[Token]) -> bool:
    """Whether the first bracket closes with the last token."""
    depth = 0
    for index, token in enumerate(parts):
        depth += (token.text in ("(", "[", r"\{")) - (token.text in (")", "]", r"\}"))
        if depth == 0:
            return index == len(parts) - 1
    return False


def _items(parts: Sequence[Token]) -> tuple[Value, ...]:
    value = _statement(parts)
    return value.items if isinstance(value, Items) and not value.opener else (value,)


def _bracketed(opener: str, closer: str, inside: Sequence[Sequence[Token]]) -> Value:
    infinite = [[t.text for t in piece] in (["∞"], ["-", "∞"], ["+", "∞"]) for piece in inside]
    if len(inside) == 2 and any(infinite):
        low = Bound(None if infinite[0] else scalar(inside[0]), opener == "[" and not infinite[0])
        high = Bound(None if infinite[1] else scalar(inside[1]), closer == "]" and not infinite[1])
        return Region(None, ((low, high),))
    if opener != closer.translate({41: 40, 93: 91}) and len(inside) != 2:
        raise Unreadable("brackets that do not match")
    values = tuple(_statement(piece) for piece in inside)
    if len(values) > MAX_ITEMS:
        raise Unreadable("a list too long")
    return Items(opener, closer, values)


def _rows(value: Value) -> Value:
    """[[1, 2], [3, 4]] is a matrix."""
    if not (isinstance(value, Items) and value.opener == "["):
        return value
    rows = [v.items for v in value.items if isinstance(v, Items) and v.opener == "["]
    even = len(rows) == len(value.items) > 1 and len({len(r) for r in rows}) == 1
    return Matrix(tuple(rows)) if even else value


def _set(parts: Sequence[Token]) -> Value:
    bar = split(parts, lambda t: t.text in ("|", ":"))
    if len(bar) == 2 and bar[0] and bar[0][0].kind in ("name", "command") and len(bar[0]) in (1, 3):
        region = regions.interval(_statement(bar[1]))
        if region is None:
            raise Unreadable("a set given by a condition")
        return Region(None, region.spans)
    items = _items(parts)
    return items[0] if len(items) == 1 else Items("{", "}", items)


def _multiple(parts: Sequence[Token]) -> Value:
    """A matrix, perhaps with a scalar before it."""
    start = next(i for i, t in enumerate(parts) if t.text == "begin")
    matrix = _matrix(parts[start:])
    if not start:
        return matrix
    factor = scalar(parts[: start - 1] if parts[start - 1].text == "*" else parts[:start])
    rows = [[v for v in row if isinstance(v, Quantity)] for row in matrix.rows]
    if sum(map(len, rows)) != sum(map(len, matrix.rows)):
        raise Unreadable("a multiple of a matrix of other things than numbers")
    return Matrix(tuple(tuple(times(factor, v) for v in row) for row in rows))


def _matrix(parts: Sequence[Token]) -> Matrix:
    texts = [t.text for t in parts]
    if (
        texts.count("begin") != 1
        or texts[1] != "{"
        or texts[2] not in ("pmatrix", "bmatrix", "matrix", "array", "Bmatrix", "vmatrix")
    ):
        raise Unreadable("not a plain matrix")
    start = texts.index("}") + 1
    if texts[2] == "array" and texts[start] == "{":
        start = texts.index("}", start) + 1
    end = texts.index("end") if "end" in texts else len(parts)
    rows = [r for r in split(parts[start:end], lambda t: t.text == "cr") if r]
    return Matrix(tuple(tuple(_statement(c) for c in split(row, lambda t: t.text == "&")) for row in rows))


def _both_signs(parts: Sequence[Token]) -> Value:
    texts = ["+" if t.text == "±" else "-" if t.text == "∓" else t.text for t in parts]
    other = ["-" if t.text == "±" else "+" if t.text == "∓" else t.text for t in parts]
    upper, lower = (
        scalar([t._replace(text=n) for t, n in zip(parts, new, strict=True)]) for new in (texts, other)
    )
    return Items("", "", (upper, lower))
