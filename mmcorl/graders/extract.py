"""Where a completion states its answer: tags, boxes, phrases; and the wrapping taken off what is found there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

MAX_BOXES = 100  # that make one list
TAIL = 20_000  # characters from the end in which phrases and numbers are looked for


@dataclass(frozen=True)
class Extraction:
    """Which ways of stating an answer count. They are tried in this order; the last statement of its kind wins."""

    answer_tag: bool = True
    """`<answer>...</answer>`."""
    boxed: bool = True
    """`\\boxed{...}`, also inside the tag."""
    phrase: bool = True
    """"The answer is ...", "Answer: ...", `#### ...`, "答案是...", `{"answer": ...}`."""
    bare: bool = True
    """A completion that is nothing but an answer; of multiple choice, also a last line that is."""
    last_number: bool = False
    """The last number of the text. Off in training: a completion that was cut off would vote with it."""


How = Literal["tag", "box", "phrase", "bare", "last_line", "last_number"]


@dataclass(frozen=True)
class Statement:
    """A place where a completion may have stated its answer, most binding first."""

    text: str
    how: How


_THINKING = re.compile(r"</(?:think|thinking|thought|reasoning)>|◁/think▷", re.IGNORECASE)
_THINKING_OPEN = re.compile(r"<(?:think|thinking|thought|reasoning)>|◁think▷", re.IGNORECASE)
_TAG = re.compile(r"<\s*(/?)\s*answer\s*>", re.IGNORECASE)
_BRACE = re.compile(r"\\[{}\\]|[{}]")
_BOX = re.compile(r"\\?\b(?:boxed|fbox)\s*\{|\\(?:boxed|fbox)\s*(-?\d[\d.,/]*\d|-?\d|[A-Za-z]\b)")
_MINUS = re.compile(r"(?:^|[=$(:]|\\[\[(])\s*[-−]\s*$")  # a sign before the box, no subtraction
_BETWEEN_BOXES = re.compile(r"(?:[\s,;$]|\\[,;()\[\] ]|\band\b|\bor\b){1,20}")
_PHRASE = re.compile(
    r"""(?:\b(?:final\s+|correct\s+|right\s+|best\s+)*(?:answer|option|choice)s?
            (?:\s+(?:to|for|of)\s+[^.:\n]{1,80}?)?
            [*_"'\s]{0,4}(?:\s+(?:choice|option))?[*_"'\s]{0,4}
            (?:\b(?:is|are|was|would\s+be|will\s+be|must\s+be|should\s+be)\b\s*:?|[:：=])
        |\b(?:answer|option|choice)\s+(?=\([A-Z]\))
        |\#{4}
        |(?:最终)?答案\s*(?:应该)?(?:[是为选]|[:：])+
        |(?:故|应|因此)?选(?:择|项)?\s*[:：]?\s*(?=[(（]?[A-Za-z][)）]?(?![A-Za-z]))
        )[\s:：*_"]{0,6}""",
    re.IGNORECASE | re.VERBOSE,
)
_SENTENCE_END = re.compile(r"[.。!?！？](?=\s|$|[\"'*])|\n|。|<|(?<=[^\\])\}\s*$")
_AFTERTHOUGHT = re.compile(
    r",?\s+(?:because|since|which|where|as|so|given|when|due|but|not)\s|[;；]", re.IGNORECASE
)
_NUMBER = re.compile(
    r"""-?\\?\$?-?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\s?/\s?\d+|\d+(?:\.\d+)?|\.\d+)(?:\\?%)?
        |-?\\[dt]?frac\s*\{[^{}]{1,20}\}\s*\{[^{}]{1,20}\}""",
    re.VERBOSE,
)


def statements(text: str, extraction: Extraction) -> Iterator[Statement]:
    """The places of a completion that may hold its answer, in order of preference.

    The thinking part is ignored. A box that never closes ends the search: the completion was cut off in its answer.
    Linear in the length of the text.
    """
    text = without_thinking(text)
    if extraction.answer_tag and (tagged := last_tag(text)) is not None:
        if extraction.boxed and (inner := last_box(tagged)):
            yield Statement(inner, "box")
        yield Statement(tagged, "tag")
        if extraction.phrase:
            yield from (Statement(p, "phrase") for p in phrases(tagged))
    if extraction.boxed and (boxed := last_box(text)) is not None:
        if not boxed:
            return
        yield Statement(boxed, "box")
    if extraction.phrase:
        yield from (Statement(p, "phrase") for p in phrases(text))
    if extraction.bare:
        *above, last = text.strip()[-TAIL:].rsplit("\n", 1)
        if len(last) < 300:
            yield Statement(last, "last_line" if above else "bare")
    if extraction.last_number:
        numbers = _NUMBER.findall(text[-TAIL:])
        if numbers:
            yield Statement(numbers[-1], "last_number")


def without_thinking(text: str) -> str:
    """What follows the thinking part; nothing of a completion that never stopped thinking."""
    closings = list(_THINKING.finditer(text))
    if closings:
        text = text[closings[-1].end() :]
    opening = _THINKING_OPEN.search(text)
    return text[: opening.start()] if opening else text


def last_tag(text: str) -> str | None:
    """The content of the last answer tag that has one; a tag may be left unclosed. None without such a tag."""
    marks = list(_TAG.finditer(text))
    for index in range(len(marks) - 1, -1, -1):
        if marks[index][1]:
            continue
        end = marks[index + 1].start() if index + 1 < len(marks) else len(text)
        content = text[marks[index].end() : end].strip()
        if content:
            return content
    return None


def last_box(text: str) -> str | None:
    """The content of the last box; boxes side by side, as in "3 and 5", make one list.

    None without a box; an empty string if the last box is never closed.
    """
    boxes = list(_BOX.finditer(text))
    if not boxes:
        return None
    closing = _closing_braces(text)
    found: list[tuple[int, int, str]] = []  # start, end, content
    for box in boxes:
        if found and box.start() < found[-1][1]:
            continue  # a box within a box
        if box[1] is not None:
            found.append((box.start(), box.end(), box[1]))
        elif (end := closing.get(box.end() - 1)) is not None:
            sign = "-" if _MINUS.search(text, max(0, box.start() - 12), box.start()) else ""
            found.append((box.start(), end + 1, sign + text[box.end() : end]))
        else:
            found.append((box.start(), box.end(), ""))
    found = found[-MAX_BOXES:]
    contents = [found[-1][2]]
    for (_, end, content), (start, _, _) in zip(found[-2::-1], found[:0:-1], strict=False):
        between = text[end:start]
        if not (between.strip(" $\\()") and _BETWEEN_BOXES.fullmatch(between)):
            break
        contents.insert(0, content)
    return "" if "" in contents else ", ".join(contents)


def _closing_braces(text: str) -> dict[int, int]:
    """Position of each opening brace -> position of the brace that closes it."""
    closing: dict[int, int] = {}
    stack: list[int] = []
    for match in _BRACE.finditer(text):
        if match[0] == "{":
            stack.append(match.start())
        elif match[0] == "}" and stack:
            closing[stack.pop()] = match.start()
    return closing


def phrases(text: str) -> Iterator[str]:
    """What the last few "the answer is ..." say, latest first: without its afterthought, then whole."""
    tail = text[-TAIL:]
    for match in list(_PHRASE.finditer(tail))[:-4:-1]:
        said = tail[match.end() : match.end() + 300].lstrip()
        end = _SENTENCE_END.search(said)
        said = said[: end.start()] if end else said
        shorter = _AFTERTHOUGHT.split(said, maxsplit=1)[0]
        yield from (s for s in dict.fromkeys(part.strip(' "') for part in (shorter, said)) if s)


_LEAD = re.compile(
    r"""(?:\\text\s*\{)?\s*(?:so|thus|hence|therefore|then)?,?\s*(?:the\s+|my\s+)?(?:final\s+|correct\s+)*
            answer\s*(?:is|=|[:：])\s*\}?\s*
        |(?:最终)?答案\s*(?:[是为]|[:：])+\s*""",
    re.IGNORECASE | re.VERBOSE,
)
_MARKED_UP = re.compile(r"[*_`\"“”]+[^*_`\"“”]+[*_`\"“”]+[.。]?")
_FENCE = re.compile(r"```[\w+-]*\s*\n?(.*?)```", re.DOTALL)


def undress(text: str) -> str:
    """A bare answer without tags, boxes, fences, markup and introductions around it."""
    text = text.strip().strip("\u200b\ufeff\x00").strip()
    if len(text) < 100_000:
        if (tagged := last_tag(text)) is not None:
            text = tagged
        if boxed := last_box(text):
            text = boxed
    if (fence := _FENCE.fullmatch(text)) is not None:
        text = fence[1].strip()
    previous = None
    while previous != text:
        previous = text
        text = _LEAD.sub("", text, count=1).strip() if _LEAD.match(text) else text.strip()
        if _MARKED_UP.fullmatch(text):
            text = text.strip('*_`"“”')
        for opener, closer in (("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]")):
            inner = text.removeprefix(opener).removesuffix(closer)
            if len(inner) == len(text) - len(opener) - len(closer) > 0 and opener not in inner:
                text = inner
    return text


def code_block(text: str) -> str | None:
    """The last fenced block of a completion; None without one."""
    blocks = _FENCE.findall(text)
    return blocks[-1].strip("\n") or None if blocks else None
