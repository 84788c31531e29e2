"""Lists of words, and numbers written as words, in English and Chinese."""

from __future__ import annotations

import re
from fractions import Fraction


def words(text: str) -> dict[str, int]:
    """The words of a text with their positions: an ordered set, for tables in the code."""
    return {word: position for position, word in enumerate(text.split())}


SCALES = {
    "hundred": 100,
    "thousand": 1000,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
    "dozen": 12,
    "万": 10**4,
    "亿": 10**8,
}
_ONES = words(
    """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen"""
)
_TENS = {
    word: 10 * n
    for word, n in words("0 10 twenty thirty forty fifty sixty seventy eighty ninety").items()
    if n > 1
}
_ORDINALS = words("zeroth first second third fourth fifth sixth seventh eighth ninth tenth")
_PARTS = {
    **{"half": 2, "halves": 2, "quarter": 4, "quarters": 4},
    **{word + ending: n for word, n in _ORDINALS.items() if n > 2 for ending in ("", "s")},
}
_MINUS = ("minus", "negative")


def from_words(text: str) -> Fraction | None:
    """The number that is spelled out, such as "twenty-one", "minus two thirds", "three and a half" or "十二"; or None."""
    if (chinese := _from_chinese(text.strip())) is not None:
        return chinese
    spelled = text.lower().replace("-", " ").split()
    if not spelled or len(spelled) > 12:
        return None
    if spelled[0] in _MINUS:
        value = from_words(" ".join(spelled[1:]))
        return None if value is None or spelled[1] in _MINUS else -value
    if spelled[0] in _ORDINALS and len(spelled) == 1:
        return Fraction(_ORDINALS[spelled[0]])
    if spelled[-1] in _PARTS and len(spelled) > 1:
        return _with_part(spelled)
    if spelled[0] in ("a", "an") and len(spelled) > 1 and spelled[1] in SCALES:
        spelled[0] = "one"
    whole = _whole(spelled)
    return None if whole is None else Fraction(whole)


def _with_part(spelled: list[str]) -> Fraction | None:
    """ "two thirds", "three and a half"."""
    part = _PARTS[spelled[-1]]
    head, joint, tail = spelled[:-1], "and" in spelled, spelled[:-1]
    if joint:
        cut = len(spelled) - 1 - spelled[::-1].index("and")
        head, tail = spelled[:cut], spelled[cut + 1 : -1]
    count = 1 if tail in (["a"], ["an"]) else _whole(tail)
    whole = _whole(head) if joint else 0
    return None if count is None or whole is None else whole + Fraction(count, part)


def _whole(spelled: list[str]) -> int | None:
    if not spelled or spelled[0] == "and" or spelled[-1] == "and":
        return None
    total, current = 0, 0
    previous = ""
    for word in spelled:
        if word in _ONES:
            if previous in _ONES:
                return None
            current += _ONES[word]
        elif word in _TENS:
            if previous in _ONES or previous in _TENS:
                return None
            current += _TENS[word]
        elif word == "hundred":
            current = max(current, 1) * 100
        elif word in SCALES and word.isascii():
            total, current = total + max(current, 1) * SCALES[word], 0
        elif word != "and":
            return None
        previous = word
    return total + current


_DIGITS = {digit: n for n, digit in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
_PLACES = {"十": 10, "百": 100, "千": 1000}
_CHINESE = re.compile(
    r"(负)?([零一二三四五六七八九两〇十百千万亿]+)(?:分之([零一二三四五六七八九两〇十百千万亿]+))?"
)


def _from_chinese(text: str) -> Fraction | None:
    """The number in Chinese numerals, also "三分之一" (1/3); None without."""
    found = _CHINESE.fullmatch(text) if len(text) <= 20 else None
    if found is None or text in ("万", "亿"):
        return None
    value = Fraction(_chinese_whole(found[2]))
    if found[3]:
        if not value:
            return None
        value = _chinese_whole(found[3]) / value
    return -value if found[1] else value


def _chinese_whole(text: str) -> int:
    total = section = digit = 0
    for sign in text:
        if sign in _DIGITS:
            digit = digit * 10 + _DIGITS[sign]
        elif sign in _PLACES:
            section, digit = section + (digit or 1) * _PLACES[sign], 0
        else:
            total, section, digit = (total + section + digit) * SCALES[sign], 0, 0
    return total + section + digit
