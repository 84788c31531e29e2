"""Saying a problem in other words: what is asked of a model, and what its wording has to keep.

A wording is kept only if the numbers, formulas, names of points, options and places of images are those of the original:
then the original's answer is its answer too, and two agents may read one wording each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mmcorl.data.options import split_question
from mmcorl.graders.extract import without_thinking
from mmcorl.problems import IMAGE_MARKER, Problem

_PICTURE = "[picture {}]"
_PICTURE_MARK = re.compile(r"\[picture \d+\]", re.IGNORECASE)
_FORMULA = re.compile(r"\$\$(.+?)\$\$|\$(.+?)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?")
# "A" and "I" before a small letter are words.
_NAME = re.compile(r"(?<![\w\\])(?!(?:A|I)\s+[a-z])[A-Z]{1,6}\d?['′]?(?![a-z])")
_FENCE = re.compile(r"\A```\w*\n(.*?)\n?```\Z", re.DOTALL)
_LONGEST = 4  # times the original

_REQUEST = """Rewrite the problem below in other words. Change the sentences, not the task: keep its meaning, its answer, every
number, unit, formula, name of a point or variable, answer option and mark like [picture 1] exactly as they are. Do not solve
it and do not add anything. Reply with the rewritten problem alone.

Problem:
{question}"""


def request(problem: Problem) -> Problem:
    """What a model is asked so that it rewords a problem's question; it is shown no image and no options of a list."""
    return Problem(problem.id, _REQUEST.format(question=_with_pictures(problem.question)), kind="text")


def reworded(problem: Problem, reply: str) -> str:
    """The question in a model's reply, its picture marks made image markers again."""
    text = without_thinking(reply).strip()
    if fenced := _FENCE.match(text):
        text = fenced[1].strip()
    text = re.sub(r"\A(?:rewritten |reworded )?problem\s*:\s*", "", text, flags=re.IGNORECASE)
    return _PICTURE_MARK.sub(IMAGE_MARKER, text) if IMAGE_MARKER in problem.question else text


def losses(original: str, wording: str) -> Iterator[str]:
    """What a wording does not keep of a question, in words; nothing for one that may stand in its place."""
    if not wording:
        yield "empty"
    elif _folded(wording) == _folded(original):
        yield "unchanged"
    if len(wording) > _LONGEST * len(original) + 100:
        yield "too long"
    if wording.count(IMAGE_MARKER) != original.count(IMAGE_MARKER):
        yield "places of images"
    if _options(wording) != _options(original):
        yield "options"
    if _formulas(wording) != _formulas(original):
        yield "formulas"
    if _found(_NUMBER, wording) != _found(_NUMBER, original):
        yield "numbers"
    if _found(_NAME, wording) != _found(_NAME, original):
        yield "names of points"


def _with_pictures(question: str) -> str:
    pieces = question.split(IMAGE_MARKER)
    marked = (f"{_PICTURE.format(place)}{piece}" for place, piece in enumerate(pieces[1:], start=1))
    return pieces[0] + "".join(marked)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def _options(text: str) -> dict[str, str] | None:
    found = split_question(text)
    return None if found is None else {label: _folded(option) for label, option in found[1].items()}


def _formulas(text: str) -> set[str]:
    return {re.sub(r"\s+", "", next(filter(None, match))) for match in _FORMULA.findall(text)}


def _found(pattern: re.Pattern[str], text: str) -> set[str]:
    """Matches outside of formulas, which are compared as wholes."""
    return set(pattern.findall(_FORMULA.sub(" ", text)))
