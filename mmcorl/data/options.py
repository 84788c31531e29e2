"""Options that stand inside a text, and the places of images in it: pure functions of strings.

Public data sets write the options of a multiple-choice question in many ways: a line each under a heading
("Choices:\\nA:40°\\nB:60°"), in one string ("A. 4 cm;B. 6 cm"), in the question ("... is () A. 3 B. 4"), or as the
printed form of a list ("['3', '4']"). Here they become label -> text. Nothing looks at the gold answer: how a problem is
shown must not depend on it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from string import ascii_uppercase

from mmcorl.problems import IMAGE_MARKER

_HEADING = re.compile(
    r"(?:^|\n|(?<=[\s.?:。？]))[ \t]*(?:The\s+)?(?:answer\s+)?(?:choices?|options?|选项)\s*(?:are)?\s*[:：][ \t]*(?:\n|(?=\s*[(（]?A))",
    re.IGNORECASE,
)
_LABEL = r"[(（\[]?(?P<label>[A-Z])\s*[)）\].．、:：]"
_AT_LINE = re.compile(rf"(?:^|\n)[ \t]*{_LABEL}[ \t]*")
# A label that nothing follows is the end of an option's text ("... the area of triangle BE;G.; C. ...").
_AT_ITEM = re.compile(rf"(?:^|[;；\n])\s*{_LABEL}(?!\s*(?:[;；]|$))\s*")
_AT_WORD = re.compile(rf"(?:^|(?<=[;；\s]))\s*{_LABEL}(?!\s*(?:[;；]|$))\s+")
# In running text a label is in brackets on both sides, or a letter with a full stop and space after white space.
_IN_TEXT = re.compile(
    r"(?:^|(?<=[\s;；,，。．?？:：)）]))(?:[(（]\s*(?P<round>[A-Z])\s*[)）]|(?P<dot>[A-Z])\s*[.．、:：](?=\s))\s*"
)
_MARKER = re.compile(r"<image\s*(\d*)>")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_ITEM = re.compile(r"""\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\s*(,|$)""", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)


def split_question(question: str) -> tuple[str, dict[str, str]] | None:
    """A question with its options inside as (what is asked, label -> option text); None where it has none.

    Options are a run A, B, C, ... of at least two labels that start lines or follow a heading such as "Choices:", or of
    at least three in running text. A heading is left out of what is asked.
    """
    if headings := list(_HEADING.finditer(question)):
        listing = question[headings[-1].end() :]
        found = _run(listing, _AT_LINE, 2) or _run(listing, _IN_TEXT, 2)
        if found and not found[0]:
            return question[: headings[-1].start()].rstrip(), found[1]
    for pattern, least in ((_AT_LINE, 2), (_IN_TEXT, 3)):
        if found := _run(question, pattern, least):
            return found
    return None


def split_items(text: str) -> dict[str, str]:
    """Options in one string, parted by semicolons or line ends, as label -> text: "A. 4 cm;B. 6 cm; E. None of these".

    A part without a label of a later letter belongs to the option before it, so texts may hold semicolons. Letters may
    be left out. Empty where the text holds no labelled options.
    """
    marks = _chain(text, _AT_ITEM)
    if [mark["label"] for mark in marks] != list(ascii_uppercase[: len(marks)]):
        marks = max(marks, _chain(text, _AT_WORD), key=_worth)  # a semicolon was forgotten
    return _between(text, marks) if len(marks) > 1 else {}


def listed_items(text: str) -> list[str] | None:
    """The texts of a list in its printed form, of JSON or Python ("['3', \\"it's\\"]"); None for anything else.

    Only quoted texts and their escapes are understood; nothing is evaluated.
    """
    text = text.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return None
    try:
        items = json.loads(text)
        return items if all(isinstance(item, str) for item in items) else None
    except ValueError:
        pass
    body, items, end = text[1:-1], [], 0
    while end < len(body):
        item = _ITEM.match(body, end)
        if item is None:
            return None
        items.append(_ESCAPE.sub(_unescaped, item[1] if item[1] is not None else item[2]))
        end = item.end()
    return items


def gold_label(gold: str, options: Mapping[str, str]) -> str:
    """A gold label in the letters A, B, C, ... in which options are shown: the place of the label among `options`.

    Labels of a source may have gaps (A, B, C, F). A gold that is none of the labels, such as an option's text, is
    given back as it is.
    """
    bare = gold.strip().strip("()（）[].:：").strip()
    return ascii_uppercase[list(options).index(bare)] if bare in options else gold


def place_images(texts: Sequence[str], n_images: int) -> tuple[list[str], list[int]]:
    """Texts (a question, its options) with one `<image>` for each image, and the images' order of appearance.

    `<image 2>` or `<image2>` names an image, counted from 1; a plain `<image>` the next one. Only the first mention of
    an image keeps its marker, and mentions of images that there are not (data sets join several pictures into one
    file) lose it. Images that are never mentioned come first, as a prompt shows them.
    """
    seen: list[int] = []

    def place(mark: re.Match[str]) -> str:
        index = int(mark[1]) - 1 if mark[1] else len(seen)
        if index in seen or not 0 <= index < n_images:
            return ""
        seen.append(index)
        return IMAGE_MARKER

    placed = [_MARKER.sub(place, text) for text in texts]
    return placed, [index for index in range(n_images) if index not in seen] + seen


def _run(text: str, pattern: re.Pattern[str], least: int) -> tuple[str, dict[str, str]] | None:
    """The last run A, B, C, ... of at least `least` marks: what stands before it, and label -> text."""
    marks = [(next(filter(None, mark.groups())), mark) for mark in pattern.finditer(text)]
    run: list[re.Match[str]] = []
    best = run
    for label, mark in marks:
        if label == "A":
            run = [mark]
        elif run and label == ascii_uppercase[len(run) % 26]:
            run.append(mark)
        if len(run) >= least and run is not best:
            best = run
    if not best:
        return None
    ends = [mark.start() for mark in best[1:]] + [len(text)]
    texts = [text[mark.end() : end].strip(" \t\n;；,，") for mark, end in zip(best, ends, strict=True)]
    return text[: best[0].start()].rstrip(), dict(zip(ascii_uppercase, texts, strict=False))


def _chain(text: str, pattern: re.Pattern[str]) -> tuple[re.Match[str], ...]:
    """The best chain of labels in the order of the alphabet that begins with an A."""
    chains: dict[str, tuple[re.Match[str], ...]] = {}  # by the letter they end in
    for mark in pattern.finditer(text):
        label = mark["label"]
        before = max((chains[other] for other in chains if other < label), key=_worth, default=())
        if (before or label == "A") and _worth((*before, mark)) >= _worth(chains.get(label, ())):
            chains[label] = (*before, mark)
    return max(chains.values(), key=_worth, default=())


def _worth(chain: Sequence[re.Match[str]]) -> tuple[int, int]:
    """Longer chains of labels are better, and of those as long the ones that leave out fewer letters."""
    return len(chain), -ord(chain[-1]["label"]) if chain else 0


def _between(text: str, marks: Sequence[re.Match[str]]) -> dict[str, str]:
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    return {
        mark["label"]: text[mark.end() : end].strip(" \t\n;；") for mark, end in zip(marks, ends, strict=True)
    }


def _unescaped(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2] or escape[3]
    if code:
        return chr(int(code, 16)) if int(code, 16) < 0x110000 else escape[0]
    return _ESCAPES.get(escape[4], escape[4] if escape[4] in "\\'\"" else escape[0])
