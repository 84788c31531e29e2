"""Mending of the usual slips in written mathematics, before it is cut into tokens."""

from __future__ import annotations

import re

from mmcorl.graders.latex import clean

MAX_TEXT = 4500  # characters of a formula that is parsed; longer ones are compared as text

_QUOTED = re.compile(r"""(?P<mark>["'`])(?P<inner>[^"'`]*)(?P=mark)|\{(?P<group>[^{}]*)\}""")
_OPEN_SET = re.compile(r"\\\{([^{}]*)(?<!\\)\}|(?<![\\_^a-zA-Z])\{([^{},]*,[^{}]*)\\?\}")
_ANY_INTEGER = re.compile(  # "k ∈ Z" after a formula says what k stands for, which needs no saying
    r"[,;]?\s*(?:\\text\s*\{\s*(?:where|for|with)\s*\}\s*|where\s+|for\s+)?\(?\s*[a-zA-Z]\s*∈\s*(?:\\mathbb\s*\{?\s*[ZN]\s*\}?|ℤ)\s*\)?\s*$"
)


def mended(text: str) -> str:
    """Cleaned and repaired until nothing changes, so that reading a canonical text gives it again."""
    for _ in range(8):
        cleaned = _repaired(clean(text))
        if cleaned == text:
            break
        text = cleaned
    return text


def _repaired(text: str) -> str:
    """Without a trailing stop or line break, a leading "=", brackets that do not close or open."""
    previous = None
    while previous != text:
        previous = text
        text = text.strip().rstrip("\\.,;:。？?*").lstrip("*").strip()
        text = text.removeprefix("=").removeprefix("≈").strip()
        if (quoted := _QUOTED.fullmatch(text)) is not None and "," not in (quoted["group"] or ""):
            text = quoted["inner"] or quoted["group"] or ""
    if len(text) <= MAX_TEXT:
        text = _OPEN_SET.sub(lambda m: rf"\{{{m[1] or m[2]}\}}", text)
        text = _balanced(_balanced(text, "{", "}"), "(", ")")
        if (qualified := _ANY_INTEGER.search(text)) and "|" not in text:
            text = text[: qualified.start()]
    return _unwrapped(text)


def _balanced(text: str, opener: str, closer: str) -> str:
    """Close what was left open, and drop what closes nothing; half-open intervals stay as they are."""
    surplus = text.count(opener) - text.count(closer)
    if closer == ")" and ("[" in text or "]" in text):
        return text
    if surplus > 0 and text.startswith(opener * (surplus + 1)):
        return text[surplus:]
    if surplus > 0:
        return text + closer * min(surplus, 50)
    if surplus < 0 and text.endswith(closer * -surplus) and not text.endswith(f"\\{closer}"):
        return text[:surplus]
    return text


def _unwrapped(text: str) -> str:
    """Without the many brackets around a whole text that has none inside."""
    depth = min(len(text) - len(text.lstrip("(")), len(text) - len(text.rstrip(")")))
    inner = text[depth : len(text) - depth]
    return inner if depth and re.fullmatch(r"[-\w.\\^+*/]*", inner) else text
