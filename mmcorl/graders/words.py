"""Lists of words, and numbers written as words."""

from __future__ import annotations


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


def from_words(text: str) -> int | None:
    """The number that is spelled out in English, such as "twenty-one" or "three hundred and five", or None."""
    spelled = text.lower().replace("-", " ").split()
    if not spelled or len(spelled) > 12 or spelled[0] == "and" or spelled[-1] == "and":
        return None
    if spelled[0] in _ORDINALS and len(spelled) == 1:
        return _ORDINALS[spelled[0]]
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
        elif word in SCALES:
            total, current = total + max(current, 1) * SCALES[word], 0
        elif word != "and":
            return None
        previous = word
    return total + current
