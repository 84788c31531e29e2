"""Answers to open questions: mathematics where the text can be read as that, else words."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from mmcorl.graders import folding, math
from mmcorl.graders.answers import Answer
from mmcorl.graders.expectation import settled
from mmcorl.graders.latex import clean
from mmcorl.graders.repairs import MAX_TEXT
from mmcorl.graders.units import Unit
from mmcorl.graders.values import Raw, Value, show
from mmcorl.graders.words import from_words

_PLAIN = re.compile(r"[+-]?\d{1,14}(?:\.\d{1,14})?", re.ASCII)
_WORDS = re.compile(r"[^\W\d_]+(?:[\s,.'’-]+[^\W\d_]+)*")
_SYMBOLIC = re.compile(r"[²³¹⁰-₉√∞\u0370-\u03ff]")
_MEANING = re.compile(r"\w|∞|∅|\\emptyset|\\infty|\\varnothing|\\\{\s*\\\}|\{\s*\}|π")
_LABEL = re.compile(
    r"^\(?[A-J]\)[.:]?\s+(?=\S)|^\\text(?:bf)?\s*\{\s*\(?[A-J]\)\s*\}\s*(?=\S)|^A\s*[:：]\s*(?=[-\d$\\])|(?<=\w\w|\w°)\s+\([A-J]\)$"
)
_TEXT_COMMAND = re.compile(r"\\(?:text|textbf|mathrm|mbox)\s*\{([^{}]*)\}")
_NAMES = {
    **dict.fromkeys(("no solution", "no solutions", "no real solution", "no real solutions"), r"\{\}"),
    **dict.fromkeys(("empty set", "no real roots", "无解"), r"\{\}"),
    **dict.fromkeys(("all real numbers", "all reals", "set of all real numbers"), "(-∞, ∞)"),
}
_IS = re.compile(
    r"\s(?:is|are|was|were|equals?|=|≈|be)\s+(?:equal\s+to|approximately|about|exactly|roughly|around|only)?\s*"
)
_DENIES = re.compile(r"\b(?:not|never|no|nor)\b|n't\b|n’t\b|\?", re.IGNORECASE)
_STARTS_VALUE = re.compile(r"[-+−±]?\s*(?:[\d.$√π∞(\[{\\£€¥]|[a-zA-Z](?![a-zA-Z])|[½-¾])")
_MANY_WORDS = 6
MAX_SENTENCE = 300  # characters of a sentence that states one value


def words(text: str) -> Answer | None:
    """The text as folded words, None without any."""
    value = re.sub(r" and (?=\w)", " ", folding.fold(text))
    return Answer("text", value) if re.search(r"\w", value) else None


@lru_cache(maxsize=16_384)
def read(text: str, units: tuple[Unit, ...] = ()) -> Answer | None:
    """The answer that a text without its wrapping states, in the expected units; None if it states none."""
    if _PLAIN.fullmatch(text):
        return Answer("math", str(Fraction(text)))
    if folding.says_nothing(text) or not _MEANING.search(text):
        return None
    bare = _TEXT_COMMAND.sub(r" \1 ", text).strip(" .$。")
    if (value := _named(bare)) is None:
        if _WORDS.fullmatch(bare) and not _SYMBOLIC.search(bare) and not _is_symbols(bare):
            return words(text)
        value = Raw(bare) if _is_running_text(bare) else math.read(_LABEL.sub("", text, count=1))
        if isinstance(value, Raw) and (stated := _stated(bare)) is not None:
            value = stated
        elif isinstance(value, Raw) and _is_prose(value.text):
            return words(text)
    shown = show(settled(value, units))
    return Answer("math", shown) if _MEANING.search(shown) else None


def _named(bare: str) -> Value | None:
    """The value of a number in words, perhaps with a unit or noun after it, or of a name such as "no solution"."""
    if len(bare) > 100:
        return None
    if (name := _NAMES.get(folding.fold(bare))) is not None:
        return math.read(name)
    if (number := from_words(bare)) is not None:
        return math.read(str(number))
    spelled = bare.split()
    for cut in range(len(spelled) - 1, max(0, len(spelled) - 4), -1):
        number = from_words(" ".join(spelled[:cut]))
        if number is not None and spelled[0].lower() not in ("first", "second", "third"):
            value = math.read(f"{number} {' '.join(spelled[cut:])}")
            return None if isinstance(value, Raw) else value
    return None


def _stated(sentence: str) -> Value | None:
    """The value of a sentence that says one thing, such as "Therefore, the area is 12 square units"."""
    if len(sentence) > MAX_SENTENCE or _DENIES.search(sentence):
        return None
    said = _IS.split(sentence)
    if len(said) != 2 or not _STARTS_VALUE.match(said[1]):
        return None
    value = math.read(said[1])
    return None if isinstance(value, Raw) else value


def _is_symbols(word: str) -> bool:
    """Whether letters alone are mathematics: x, AB, pi, but not "no", "East" or "Yes"."""
    if word in ("pi", "π", "infinity", "inf", "oo"):
        return True
    return len(word) == 1 or (
        len(word) == 2 and (word.isupper() or word.islower()) and word.lower() not in ("no", "ok")
    )


def _is_running_text(text: str) -> bool:
    """Whether a text has so many words and so few signs that it is no mathematics."""
    return "\\" not in text and math.running_words(text) >= _MANY_WORDS


def _is_prose(text: str) -> bool:
    """Whether text that is no readable mathematics consists of words rather than formulas."""
    if len(text) > MAX_TEXT:
        return False
    if re.search(r"\\(?!text\b)[a-zA-Z]+", text):
        return math.running_words(text) >= 4
    return bool(re.search(r"[^\W\d_]{3}", clean(text)))
