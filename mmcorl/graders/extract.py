"""Where a completion states its answer: tags, boxes, phrases; and the wrapping taken off what is found there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

MAX_BOXES = 100  # that make one list
MAX_UNOPENED = 300  # characters before a closing tag that was never opened
MAX_LINE = 300  # characters of a line that is nothing but an answer
READ = 200_000  # characters from the end in which anything is looked for
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
    """A completion that is nothing but an answer; of multiple choice, also a last or first line that is."""
    last_number: bool = False
    """The last number of the text; of multiple choice, also a sentence in its first line that names an option.

    Off in training: a completion that was cut off would vote with it.
    """
    unclosed: bool = True
    """Whether the end of the text ends a statement: an open tag (its end is a usual stop sequence), a phrase, a bare answer.

    Off for completions that ran out of tokens, whose text just stopped there: only a tag, a box or a sentence that was
    closed counts.
    """


How = Literal["tag", "box", "phrase", "bare", "last_line", "first_line", "last_number", "pred"]


@dataclass(frozen=True)
class Statement:
    """A place where a completion may have stated its answer; `pred` is a bare answer."""

    text: str
    how: How


_THINKING = re.compile(
    r"</(?:think|thinking|thought|reasoning)>|◁/think▷|<\|end_of_thought\|>", re.IGNORECASE
)
_THINKING_OPEN = re.compile(
    r"<(?:think|thinking|thought|reasoning)>|◁think▷|<\|begin_of_thought\|>", re.IGNORECASE
)
_SPECIAL = re.compile(
    r"<\|[a-zA-Z_]{1,30}\|>|</?s>|<(?:eos|pad|end_of_turn)>"
)  # left over from a chat template
_TAG = re.compile(r"<\s*(/?)\s*(?:final[_ ]?)?answer\s*>", re.IGNORECASE)
_UNFINISHED = re.compile(r"[-+/=^,({\[<>&\\]$")
_BRACE = re.compile(r"\\[{}\\]|[{}]")
_BOX = re.compile(  # as below, every alternative begins with a plain character
    r"""(?:\\boxed|\\fbox|\\framebox|\x08oxed|boxed(?<!\w.{5})|fbox(?<!\w.{4})|framebox(?<!\w.{8}))\s*\{
        |\\(?:boxed|fbox)\s*(-?\d[\d.,/]*\d|-?\d|[A-Za-z]\b)""",
    re.VERBOSE,
)
_MINUS = re.compile(r"(?:^|[=$(:]|\\[\[(]|\bis)\s*[-−]\s*\\?$")  # a sign before the box, no subtraction
_BETWEEN_BOXES = re.compile(r"(?:[\s,;$]|\\[,;()\[\] ]|\band\b|\bor\b|\b[a-zA-Z]\s*=){1,20}")
# Every alternative begins with plain characters, which makes the search quick; so cases are spelled out, and that no
# letter stands before the word (of six letters, all of them) is looked up behind it.
_PHRASE = re.compile(
    r"""(?:(?:answer|Answer|ANSWER|option|Option|OPTION|choice|Choice|CHOICE)(?<![a-zA-Z_\d].{6})(?i:(?<=r)s)?(?i:
                (?:\s+(?:to|for|of)\s+[^.:\n]{1,80}?)?
                [*_"'\s]{0,4}(?:\s+(?:choice|option))?[*_"'\s]{0,4}
                (?:\b(?:is|are|was|would\s+be|will\s+be|must\s+be|should\s+be)\b\s*:?|[:：=]|\s[-–—]\s))
            |\#\#\#\#
            |\[\s*(?i:answer|答案)\s*\]
            |【\s*(?i:answer|答案)\s*】
            |\n[\#*\s]{0,8}(?i:final\s+|correct\s+)?(?i:answer)[*_\s]{0,4}\n
            |\n答\s*[:：]
            |答案\s*(?:应该)?(?:[是为选]|[:：])+
            |选(?:择|项)?\s*[:：]?\s*(?=[(（]?[A-Za-z][)）]?(?![A-Za-z]))
        )[\s:：*_"]{0,6}(?i:,?\s*(?:therefore|thus|hence|then|simply|just|indeed)\b,?\s*)?""",
    re.VERBOSE,
)
_BRACKETED = re.compile(r"\(([A-Za-z])\)")
_IN_PASSING = re.compile(r"\b(?:(answer|option|choice)|is|are|be|matches)\s*:?\s+$", re.IGNORECASE)
_JSON = re.compile(
    r"""["'](?:final_?|correct_?)?answer["']\s*[:：]\s*(?:"((?:\\.|[^"\\]){0,300})"|'([^'\n]{0,300})'|([^,}\n]{1,300}))""",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.。!?！？](?=\s|$|[\"'*])|\n|。|<|(?<=[^\\])\}\s*$")
_AFTERTHOUGHT = re.compile(
    r",?\s+(?:because|since|which|where|as|so|given|when|due|but|not|i\.e\.?|that\ is,|or\ equivalently|or\ approximately)(?:\s|$)|[;；]|\s\((?=[a-z]{3,}\s)",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"""-?\\?\$?-?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\s?/\s?\d+|\d+(?:\.\d+)?|\.\d+)(?:\\?%)?
        |-?\\[dt]?frac\s*\{[^{}]{1,20}\}\s*\{[^{}]{1,20}\}""",
    re.VERBOSE,
)
_LABEL = re.compile(r"\W*([A-Za-z])[).:．、]")
_SHORT_ANSWER = re.compile(
    r"\W*(?:[A-Ja-j](?:[)\].:,*]|$)|(?:yes|no|true|false)\b|\S+(?:\s+\S+){0,4}\s*$)", re.IGNORECASE
)
_COUNTED = re.compile(
    r"""\bthere\s+(?:is|are|were)\s+(?:a\s+total\s+of\s+|exactly\s+|only\s+)?
        (\d{1,9}|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\s+[a-z][^.=\n]*[.\n]?""",
    re.IGNORECASE | re.VERBOSE,
)


def statements(text: str, extraction: Extraction) -> Iterator[Statement]:
    """The places of a completion that may hold its answer, in order of preference.

    The thinking part is ignored. A box that never closes, or a tag that stops in the middle of a formula, ends the
    search: the completion was cut off in its answer.
    Linear in the length of the text.
    """
    text = _SPECIAL.sub("", without_thinking(text)[-READ:])
    if extraction.answer_tag and (tagged := last_tag(text)) is not None:
        if not tagged:
            return
        if extraction.boxed and (inner := last_box(tagged)):
            yield Statement(inner, "box")
        if not extraction.unclosed and _stops_in_tag(text):
            return
        yield Statement(tagged, "tag")
        if extraction.phrase:
            yield from (Statement(p, "phrase") for p in phrases(tagged))
    if extraction.boxed and (boxed := last_box(text)) is not None:
        if not boxed:
            return
        yield Statement(boxed, "box")
    if not extraction.unclosed:
        text = _whole_sentences(text)
    if extraction.phrase:
        yield from (Statement(p, "phrase") for p in phrases(text))
    if extraction.bare and extraction.unclosed:
        if len(text) < MAX_LINE and _FENCE.fullmatch(text.strip()):
            yield Statement(text, "bare")
        *above, last = text.strip()[-TAIL:].rsplit("\n", 1)
        if len(last) < MAX_LINE:
            if not above:
                yield Statement(last, "bare")
            elif not _is_listing(above[0].rstrip().rsplit("\n", 1)[-1], last):
                yield Statement(last, "last_line")
        first, _, below = text[: 3 * MAX_LINE].lstrip().partition("\n")
        concludes = extraction.last_number or _SHORT_ANSWER.match(first)
        listing = _is_listing(first, below.lstrip().partition("\n")[0])
        if above and len(first) < MAX_LINE and concludes and not listing:
            yield Statement(first, "first_line")
    if extraction.last_number and (number := _last_number(text[-TAIL:])):
        yield Statement(number, "last_number")


def _is_listing(line: str, following: str) -> bool:
    """Whether two lines list options, as in "(A) 5" and "(B) 6"."""
    first, second = (_LABEL.match(text) for text in (line, following))
    return bool(first and second and ord(second[1].upper()) == ord(first[1].upper()) + 1)


def _last_number(text: str) -> str | None:
    """The last number of a text, or the one counted if its sentence begins to count: "there are 3 bars below 40"."""
    counted = list(_COUNTED.finditer(text))
    numbers = [m[0] for m in _NUMBER.finditer(text)]
    if counted and not re.search(r"\d", text[counted[-1].end() :]):
        return counted[-1][1]
    return numbers[-1] if numbers else None


def without_thinking(text: str) -> str:
    """What follows the thinking part; nothing of a completion that never stopped thinking."""
    if "<" not in text and "◁" not in text:
        return text
    closings = list(_THINKING.finditer(text))
    if closings:
        text = text[closings[-1].end() :]
    opening = _THINKING_OPEN.search(text)
    return text[: opening.start()] if opening else text


def last_tag(text: str) -> str | None:
    """The content of the last answer tag that has one; None without such a tag.

    A tag may be left unclosed, as its end is a usual stop sequence; but an empty string if its formula breaks off.
    """
    marks = list(_TAG.finditer(text))
    for index in range(len(marks) - 1, -1, -1):
        if marks[index][1]:
            continue
        end = marks[index + 1].start() if index + 1 < len(marks) else len(text)
        content = text[marks[index].end() : end].strip()
        if content:
            broken_off = index + 1 == len(marks) and _breaks_off(content)
            return "" if broken_off else content
    if marks and marks[0][1]:  # the opening tag was part of the prompt
        return text[: marks[0].start()].strip().rsplit("\n", 1)[-1][-MAX_UNOPENED:] or None
    return None


def _stops_in_tag(text: str) -> bool:
    """Whether a text ends with the content of an answer tag."""
    last = [*_TAG.finditer(text)][-1]
    return not last[1] and bool(text[last.end() :].strip())


def _whole_sentences(text: str) -> str:
    """The end of a text without the sentence, or the line, that something more could have gone on."""
    tail = text[-TAIL:]
    ends = [m.start() for m in _SENTENCE_END.finditer(tail) if m.end() < len(tail) or m[0].startswith("}")]
    return tail[: ends[-1] + 1] if ends else ""


def _breaks_off(text: str) -> bool:
    """Whether a formula stops before its end: after a sign that needs something to follow, or in its brackets."""
    opened, closed = (sum(map(text.count, signs)) for signs in ("([", ")]"))
    return bool(_UNFINISHED.search(text)) or opened > closed or text.count("{") > text.count("}")


def last_box(text: str) -> str | None:
    """The content of the last box; boxes side by side, as in "3 and 5", make one list.

    None without a box; an empty string if the last box is never closed.
    """
    boxes = list(_BOX.finditer(text)) if "box" in text or "\x08ox" in text else []
    if not boxes:
        return None
    closing = _closing_braces(text, boxes[0].start())
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


def _closing_braces(text: str, start: int) -> dict[int, int]:
    """Position of each opening brace from `start` on -> position of the brace that closes it."""
    closing: dict[int, int] = {}
    stack: list[int] = []
    for match in _BRACE.finditer(text, start):
        if match[0] == "{":
            stack.append(match.start())
        elif match[0] == "}" and stack:
            closing[stack.pop()] = match.start()
    return closing


def phrases(text: str) -> Iterator[str]:
    """What the last few "the answer is ..." say, latest first: without its afterthought, then whole."""
    tail = "\n" + text[-TAIL:]
    if '"' in tail or "'" in tail:
        for match in list(_JSON.finditer(tail))[:-2:-1]:
            yield (match[1] or match[2] or match[3] or "").replace("\\\\", "\\")
    for match in list(_PHRASE.finditer(tail))[:-4:-1]:
        yield from _said(tail, match.end())
    named = [m for m in _BRACKETED.finditer(tail) if _is_named(tail, m)]
    if named and len({m[1].upper() for m in named}) == 1:  # an answer if no other letter is named so
        yield from _said(tail, named[-1].start())


def _is_named(text: str, bracketed: re.Match[str]) -> bool:
    """Whether a letter in brackets is named as an option: "option (B)", "is (B) a tower"."""
    before = _IN_PASSING.search(text[max(0, bracketed.start() - 20) : bracketed.start()])
    return before is not None and (
        before[1] is not None
        or (bracketed[1].upper() <= "J" and re.match(r"\s+\w", text[bracketed.end() :]) is not None)
    )


def _said(text: str, start: int) -> Iterator[str]:
    said = text[start : start + MAX_LINE].lstrip()
    end = _SENTENCE_END.search(said)
    said = said[: end.start()] if end else said
    shorter = _AFTERTHOUGHT.split(said, maxsplit=1)[0]
    yield from (s for s in dict.fromkeys(part.strip(' "') for part in (shorter, said)) if s)


_LEAD = re.compile(
    r"""(?P<mark>[*_]{0,3})(?:\\text\s*\{)?\s*(?:so|thus|hence|therefore|then)?,?\s*(?:the\s+|my\s+)?
            (?:final\s+|correct\s+)*answer\s*(?:is|=|[:：])\s*\}?(?P=mark)\s*
        |(?:最终)?答案\s*(?:[是为]|[:：])+\s*""",
    re.IGNORECASE | re.VERBOSE,
)
_MARKED_UP = re.compile(r"[*_`\"“”]+[^*_`\"“”]+[*_`\"“”]+[.。]?")
_FENCE = re.compile(r"```(?:[\w+-]*[ \t]*\n)?(.*?)```", re.DOTALL)
_MARKUP = re.compile(r"<(b|i|em|strong|u|p|span|code)\s*>([^<]*)</\1\s*>", re.IGNORECASE)


def undress(text: str) -> str:
    """A bare answer without tags, boxes, fences, markup and introductions around it."""
    text = text.strip().strip("\u200b\ufeff\x00").strip()
    if "<" in text:
        text = _MARKUP.sub(r"\2", _SPECIAL.sub("", text)).strip()
    if len(text) < 100_000:
        if tagged := last_tag(text):
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
    blocks = [b.strip("\n") for b in blocks if b.strip()]
    return blocks[-1] if blocks else None
