"""Mathematical answers: from text to a value with one canonical way of writing it.

A value is a quantity, an equation, a list, tuple, interval or set, a region of the real line, a matrix, or, where the
mathematics is beyond this reader, the cleaned text (`Raw`), which the symbolic workers compare.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache

from mmcorl.graders import probe, regions, units
from mmcorl.graders.expressions import Apply, Number, Symbol, symbols
from mmcorl.graders.latex import Token, Unreadable, clean, tokens
from mmcorl.graders.parser import ANGLE_FUNCTIONS, number, parse
from mmcorl.graders.values import Bound, Equation, Items, Matrix, Quantity, Raw, Region, Value
from mmcorl.graders.words import from_words, words

MAX_TEXT = 4500  # characters of a formula that is parsed; longer ones are compared as text
MAX_TOKENS = 1500
MAX_NESTING = 40  # brackets within brackets
MAX_ITEMS = 200


def _cleaned(text: str) -> str:
    """Cleaned and repaired until nothing changes, so that reading a canonical text gives it again."""
    for _ in range(8):
        cleaned = _repaired(clean(text))
        if cleaned == text:
            break
        text = cleaned
    return text


@lru_cache(maxsize=8192)
def read(text: str) -> Value:
    """The value that the text states; Raw if this reader cannot tell. Never raises."""
    cleaned = _cleaned(text)
    if len(cleaned) > MAX_TEXT:
        return Raw(cleaned)
    try:
        parts = tokens(cleaned)
        if len(parts) > MAX_TOKENS or _depth(parts) > MAX_NESTING:
            return Raw(cleaned)
        return _statement(parts)
    except (Unreadable, probe.NoValue, RecursionError):
        return Raw(cleaned)


# ---------------------------------------------------------------------------------------------- repairs


def _repaired(text: str) -> str:
    """Mend the usual slips: a trailing stop or line break, a leading "=", brackets that do not close or open."""
    previous = None
    while previous != text:
        previous = text
        text = text.strip().rstrip("\\.,;:。？?*").lstrip("*").strip()
        text = text.removeprefix("=").removeprefix("≈").strip()
        if (quoted := _QUOTED.fullmatch(text)) is not None:
            text = quoted["inner"] or quoted["group"] or ""
    if len(text) <= MAX_TEXT:
        text = _balanced(_balanced(text, "{", "}"), "(", ")")
    return _unwrapped(text)


_QUOTED = re.compile(r"""(?P<mark>["'`])(?P<inner>[^"'`]*)(?P=mark)|\{(?P<group>[^{}]*)\}""")


def _balanced(text: str, opener: str, closer: str) -> str:
    """Close what was left open, and drop what closes nothing; half-open intervals stay as they are."""
    surplus = text.count(opener) - text.count(closer)
    if closer == ")" and ("[" in text or "]" in text):
        return text
    if surplus > 0 and text.startswith(opener * (surplus + 1)):
        return text[surplus:]
    if surplus > 0:
        return text + closer * min(surplus, 50)
    if surplus < 0 and text.endswith(closer * -surplus) and opener not in text:
        return text[:surplus]
    return text


def _unwrapped(text: str) -> str:
    """Without the many brackets around a whole text that has none inside."""
    depth = min(len(text) - len(text.lstrip("(")), len(text) - len(text.rstrip(")")))
    inner = text[depth : len(text) - depth]
    return inner if depth and re.fullmatch(r"[-\w.\\^+*/]*", inner) else text


# ------------------------------------------------------------------------------------------- statements

_OPENERS = frozenset(("(", "[", "{", r"\{"))
_CLOSERS = frozenset((")", "]", "}", r"\}"))


def _statement(parts: Sequence[Token]) -> Value:
    """Alternatives ("or"), conjunctions ("and"), lists, unions, relations, and what is inside them."""
    parts = _without_lead(parts)
    if not parts:
        raise Unreadable("nothing to read")
    for joint, merge in (("or", regions.union), ("and", regions.intersection)):
        pieces = _split(parts, lambda t, joint=joint: t.kind == "word" and t.text.lower() == joint)
        if len(pieces) > 1 and all(pieces):
            values = [_statement(_strip_commas(p)) for p in pieces]
            found = [v for v in values if isinstance(v, Region)]
            if len(found) == len(values):
                return merge(found)
            return _listed(values)
    pieces = _split(parts, lambda t: t.kind == "op" and t.text in (",", ";"))
    if len(pieces) > 1:
        return _listed([_statement(p) for p in pieces if p])
    return _relation(parts)


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


def _split(parts: Sequence[Token], at: Callable[[Token], bool]) -> list[Sequence[Token]]:
    """Cut at the tokens for which `at` holds, outside of all brackets."""
    pieces: list[Sequence[Token]] = []
    depth = start = 0
    for index, token in enumerate(parts):
        if token.kind == "op" and token.text in _OPENERS:
            depth += 1
        elif token.kind == "op" and token.text in _CLOSERS:
            depth -= 1
        elif token.kind == "command" and token.text in ("begin", "end"):
            depth += 1 if token.text == "begin" else -1
        elif depth == 0 and at(token):
            pieces.append(parts[start:index])
            start = index + 1
    pieces.append(parts[start:])
    return pieces


def _depth(parts: Sequence[Token]) -> int:
    """How deep brackets are nested."""
    depth = deepest = 0
    for token in parts:
        depth += (token.text in _OPENERS) - (token.text in _CLOSERS)
        deepest = max(depth, deepest)
    return deepest


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
    sides = _split(parts, lambda t: t.kind == "op" and t.text in _RELATIONS)
    if len(sides) == 1:
        member = _split(parts, lambda t: t.text == "∈")
        if len(member) == 2 and len(member[0]) == 1:
            inside = regions.interval(_relation(member[1]))
            if inside is not None and inside.variable is None:
                return Region(_scalar(member[0]).written, inside.spans)
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
    return _inequality([_scalar(s) for s in sides], signs)


def _inequality(sides: Sequence[Quantity], signs: Sequence[str]) -> Value:
    """One variable between constants becomes a region."""
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
    pieces = _split(parts, lambda t: t.text == "∪")
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
    if parts[0].kind == "command" and first == "begin":
        return _matrix(parts)
    if parts[0].kind == "command" and first == "langle" and last == "rangle":
        return Items("(", ")", _items(parts[1:-1]))
    if first == r"\{" and last == r"\}" and _encloses(parts):
        return _set(parts[1:-1])
    if first in ("(", "[") and last in (")", "]") and _encloses(parts):
        inside = _split(parts[1:-1], lambda t: t.text in (",", ";"))
        if len(inside) > 1:
            return _bracketed(first, last, inside)
        if first == "(" and last == ")":
            return _statement(parts[1:-1])
        return Items(first, last, (_statement(parts[1:-1]),))
    terms = _split(parts, lambda t: t.text == ":")
    if len(terms) > 1:
        return Items(":", ":", tuple(_scalar(t) for t in terms))
    if any(t.text in ("±", "∓") for t in parts):
        return _both_signs(parts)
    return _scalar(parts)


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
        low = Bound(None if infinite[0] else _scalar(inside[0]), opener == "[" and not infinite[0])
        high = Bound(None if infinite[1] else _scalar(inside[1]), closer == "]" and not infinite[1])
        return Region(None, ((low, high),))
    if opener != closer.translate({41: 40, 93: 91}) and len(inside) != 2:
        raise Unreadable("brackets that do not match")
    values = tuple(_statement(piece) for piece in inside)
    if len(values) > MAX_ITEMS:
        raise Unreadable("a list too long")
    return Items(opener, closer, values)


def _set(parts: Sequence[Token]) -> Value:
    bar = _split(parts, lambda t: t.text in ("|", ":"))
    if len(bar) == 2 and bar[0] and bar[0][0].kind in ("name", "command") and len(bar[0]) in (1, 3):
        region = regions.interval(_statement(bar[1]))
        if region is None:
            raise Unreadable("a set given by a condition")
        return Region(None, region.spans)
    return Items("{", "}", _items(parts))


def _matrix(parts: Sequence[Token]) -> Value:
    texts = [t.text for t in parts]
    if (
        texts.count("begin") != 1
        or texts[1] != "{"
        or texts[2] not in ("pmatrix", "bmatrix", "matrix", "array", "Bmatrix")
    ):
        raise Unreadable("not a plain matrix")
    start = texts.index("}") + 1
    if texts[2] == "array" and texts[start] == "{":
        start = texts.index("}", start) + 1
    end = texts.index("end") if "end" in texts else len(parts)
    rows = [r for r in _split(parts[start:end], lambda t: t.text == "cr") if r]
    return Matrix(tuple(tuple(_statement(c) for c in _split(row, lambda t: t.text == "&")) for row in rows))


def _both_signs(parts: Sequence[Token]) -> Value:
    texts = ["+" if t.text == "±" else "-" if t.text == "∓" else t.text for t in parts]
    other = ["-" if t.text == "±" else "+" if t.text == "∓" else t.text for t in parts]
    upper, lower = (
        _scalar([t._replace(text=n) for t, n in zip(parts, new, strict=True)]) for new in (texts, other)
    )
    return Items("", "", (upper, lower))


# --------------------------------------------------------------------------------------------- scalars


def _scalar(parts: Sequence[Token]) -> Quantity:
    """An expression with the unit after it, if there is one."""
    if (based := _in_base(parts)) is not None:
        return based
    worded = from_words(" ".join(t.text for t in parts)) if parts and parts[0].kind == "word" else None
    if worded is not None:
        return Quantity(Number(Fraction(worded)), None, str(worded))
    has_function = any(t.kind == "command" and t.text in ANGLE_FUNCTIONS for t in parts)
    for cut in range(1, len(parts)):
        if has_function and parts[cut].text == "°":  # the unit of the argument, not of the value
            continue
        if parts[cut].kind in ("word", "name", "op", "command") and _ends_number(parts[cut - 1]):
            found = units.suffix(parts[cut:])
            if found is not None:
                expression = parse(parts[:cut])
                if found.factor != 1:
                    expression = Apply("*", (expression, Number(Fraction(found.factor))))
                return Quantity(expression, found.unit, _written(parts[:cut]))
    return Quantity(parse(parts), None, _written(parts))


def _in_base(parts: Sequence[Token]) -> Quantity | None:
    """A numeral with its base, as in `52_8`. The base is a unit: the numeral alone leaves it to the question."""
    shown = [t for t in parts if t.text not in ("{", "}")]
    if len(shown) != 3 or shown[1].text != "_" or not shown[0].kind == shown[2].kind == "number":
        return None
    base = shown[2].text
    return Quantity(Number(number(shown[0].text)), units.Unit(f"_{base}", f"base {base}"), shown[0].text)


def _ends_number(token: Token) -> bool:
    return token.kind == "number" or token.text in (")", "}", "°", "!") or token.kind in ("command", "name")


def _written(parts: Sequence[Token]) -> str:
    """Tokens as text that reads back to the same tokens."""
    pieces: list[str] = []
    for token in parts:
        text = rf"\{token.text} " if token.kind == "command" else token.text
        text = rf"\text{{{text}}}" if token.kind == "word" else text
        pieces.append(f" {text}" if token.spaced and pieces else text)
    return " ".join("".join(pieces).split())
