"""Plain words: folding of case, punctuation and articles, and the ways of saying that there is no answer."""

from __future__ import annotations

import re
import unicodedata

_ARTICLES = frozenset(("a", "an", "the"))
_DIGIT = re.compile(r"\d")
_NOTHING = frozenset(
    ("none", "null", "nil", "nan", "n a", "na", "unknown", "undefined answer", "no answer", "i do not know")
) | frozenset(
    ("i don t know", "don t know", "do not know", "not sure", "answer", "your answer", "final answer")
)


def fold(text: str) -> str:
    """Text with case, accents' encoding, punctuation, articles and spacing taken away; for comparing words."""
    text = unicodedata.normalize("NFKC", re.sub(r"\\[a-zA-Z]+|[{}$]", " ", text)).casefold()
    words = re.sub(r"[^\w+\-<>=%°/.]|(?<!\d)\.|\.(?!\d)|(?<!\d)-|-(?!\w)|_", " ", text).split()
    kept = [w for w in words if w not in _ARTICLES]
    return " ".join(kept or words)


def says_nothing(text: str) -> bool:
    """Whether the text says in words that there is no answer: "None", "N/A", "I don't know"."""
    return (
        len(text) < 60
        and not _DIGIT.search(text)
        and fold(text).replace("/", " ").replace("-", " ") in _NOTHING
    )
