"""Multiple choice: the options of a problem, and which of them an answer names by letter or by value."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from string import ascii_uppercase

from mmcorl.graders.folding import fold
from mmcorl.graders.latex import spell_scripts
from mmcorl.problems import Problem

UNKNOWN_OPTIONS = 10  # letters allowed where the options are only in the picture

Match = Callable[[str, str], bool | None]
"""Whether an answer's text has the value of an option's text; None if only slow algebra can tell."""

_LABEL = r"[(（\[【]?\s*{}\s*[)）\]】.、:：．]\s*"
_INLINE = re.compile(r"(?:^|(?<=[\s;；,，。．?？:：)）]))[(（]?([A-Z])\s*[)）.、:：．]")
_BOLD_LABEL = re.compile(
    r"\(?\\(?:textbf|text|mathrm|mathbf|bf)\s*\{?\s*\(?([A-Z])\)?\.?\s*\}\s*\)?\s*(?:\\[,; ~]|~)*"
)


def options(problem: Problem) -> tuple[str, ...] | None:
    """The option texts without their letters, from the problem's choices or its question; None if it has none."""
    if problem.choices:
        return _unlabelled(tuple(map(str, problem.choices)))
    return _inlined(problem.question) if problem.kind == "choice" else None


@lru_cache(maxsize=1024)
def _unlabelled(choices: tuple[str, ...]) -> tuple[str, ...]:
    labels = [re.match(_LABEL.format(letter), c) for letter, c in zip(ascii_uppercase, choices, strict=False)]
    if len(labels) == len(choices) and all(labels):
        return tuple(c[label.end() :].strip() for c, label in zip(choices, labels, strict=True) if label)
    return choices


@lru_cache(maxsize=1024)
def _inlined(question: str) -> tuple[str, ...] | None:
    """The longest run A, B, C, ... of labels in a question; the later one of two as long."""
    question = _BOLD_LABEL.sub(r" (\1) ", question)
    marks = list(_INLINE.finditer(question))
    best: list[re.Match[str]] = []
    for start, mark in enumerate(marks):
        if mark[1] != "A":
            continue
        run = [mark]
        for following in marks[start + 1 :]:
            if len(run) < len(ascii_uppercase) and following[1] == ascii_uppercase[len(run)]:
                run.append(following)
        if len(run) >= max(2, len(best)):
            best = run
    if not best:
        return None
    ends = [m.start() for m in best[1:]] + [len(question)]
    return tuple(question[m.end() : end].strip(" \n\t;；,$") for m, end in zip(best, ends, strict=True))


_LEAD = re.compile(
    r"""(?:(?:so|thus|hence|therefore),?\s+)?
        (?:it(?:['’]s|\s+is|\s+must\ be)\s+(?=[(\[]?[A-Z][)\]]?(?:[\s.,]|$))
        |i\s+(?:choose|pick|select)\s+
        |(?:the\s+)?(?:(?:final|correct|right|best)\s+)*(?:answer|option|choice)s?(?:\s+(?:option|choice))?
            (?:\s+(?:is|must\ be|should\ be))?\s*[:：]?\s*(?:(?:option|choice)\s+)?
        |(?:最终)?答案\s*(?:选|[是为:：])*\s*
        |(?:故|应)?选(?:项|择)?\s*[:：]?\s*)""",
    re.IGNORECASE | re.VERBOSE,
)
_MARKED = re.compile(r"[(\[<{【（]*\s*([A-Za-z])\s*[)\]>}】）]*\s*[.,:;。]*")
_LABELLED = re.compile(
    r"""(?:[(\[【（]\s*([A-Za-z])\s*[)\]】）]\s*[.:：]?
        |([A-Za-z])\s*[.):：、．](?!\d)
        |([A-Z])\s+[-–—]\s)\s*(?P<rest>.+)""",
    re.DOTALL | re.VERBOSE,
)
_NAMED = re.compile(r"[(\[]?([A-Z])[)\]]?(?![A-Za-z(_^'=])(?P<rest>.*)", re.DOTALL)
_ANOTHER = re.compile(r"\s*(?:and|or|,|&|/|和|或)?\s*[(\[]?[A-Z][)\]]?(?:[\s.,)]|$)(?!\s*[a-z])")
_AND_ANOTHER = re.compile(r"(?:\band\b|\bor\b|,|&)\s*\([A-J]\)")
_NEGATED = re.compile(
    r"""\b(?:not|isn't|never|except|neither|rules?\ out|ruled\ out|eliminates?|exclud\w+|incorrect|wrong)\s+
        (?:be\s+)?(?:the\s+)?(?:option\s+|choice\s+|answer\s+)?[(\[]?$""",
    re.IGNORECASE | re.VERBOSE,
)
_DENIED = re.compile(  # "is correct" and the like do not count against a letter, other judgements do
    r"\s*(?:is|was|are)(?:n't\b|$|\s+(?!the\b|correct\b|right\b|best\b|true\b|because\b|clearly\b|indeed\b))",
    re.IGNORECASE,
)
_REJECTED = re.compile(
    r"\)?\s+(?:is|was|are|can|does|must|would)(?:n't|\s+(?:not|never|incorrect|wrong|false|ruled|eliminated|excluded))\b",
    re.IGNORECASE,
)
_GEOMETRY = re.compile(
    r"""(?:\b(?:points?|angles?|vertex|vertices|sides?|segments?|lines?|circles?|triangles?|planes?|north|figure
            |set|event|type|group|matrix)\s+
        |[∠△⊙°]\s*
        |\\(?:angle|triangle)\s*)$""",
    re.IGNORECASE | re.VERBOSE,
)


def read(text: str, texts: tuple[str, ...] | None, match: Match, confirm: Match) -> str | None:
    """The letter of the option that the text names, or None if it names none or several.

    `text` is an answer without its wrapping. `texts` are the options, None if unknown. `match` compares values
    cheaply; `confirm`, which may be slow, is asked only where `match` cannot tell and nothing else fits.
    """
    text = _plain(text)
    if not text or len(text) > 2000:
        return None
    letters = ascii_uppercase[: len(texts) if texts is not None else UNKNOWN_OPTIONS]
    shown = texts or ()
    if not re.fullmatch(r"\W*[A-Z]\W*", text) and shown.count(text) == 1 and len(text) < 5:
        return ascii_uppercase[shown.index(text)]  # "(b)", where that is what an option says
    lead = _LEAD.match(text)
    body = text[lead.end() :] if lead else text
    if not body:
        return None
    if (marked := _MARKED.fullmatch(body)) and marked[1].upper() in letters:
        return marked[1].upper()
    if labelled := _LABELLED.fullmatch(body):
        letter = (labelled[1] or labelled[2] or labelled[3]).upper()
        if letter not in letters or (body[:2] in ("A:", "A：") and _is_option(labelled["rest"], shown)):
            body = labelled["rest"]  # "A: no", where A stands for "answer"
        else:
            if shown and fold(labelled["rest"]) == fold(shown[letters.index(letter)]):
                return letter  # "B. A", where the options are names of points
            several = _ANOTHER.match(labelled["rest"]) or _AND_ANOTHER.search(labelled["rest"])
            return None if several or _DENIED.match(labelled["rest"]) else letter
    if named := _NAMED.fullmatch(body):
        letter, rest = named[1], named["rest"].strip(" .,:;")
        index = letters.find(letter)
        if index >= 0 and index < len(shown) and rest and _same_text(rest, shown[index], match):
            return letter
        denied = _ANOTHER.match(named["rest"]) or _DENIED.match(named["rest"])
        if index >= 0 and lead and named["rest"][:1] in " ,.;:" and not denied:
            return letter
    return _by_value(body, shown, match, confirm) or _by_sentence(text, letters) or _by_mention(text, shown)


def _plain(text: str) -> str:
    text = unicodedata.normalize(
        "NFKC",
        spell_scripts(re.sub(r"\\(?:textbf|textit|text|mathrm|mathbf|mathit|bf|boxed)\s*(?=\{)", "", text)),
    )
    text = re.sub(r"\{\s*(\(?[A-Za-z]\)?[.:]?)\s*\}", r"\1", text).replace("~", " ")
    if not re.search(r"[\\^]", text):  # no formula, so stars and underscores are markup
        text = re.sub(r"[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{2,3}|[\"“”]", "", text)
    return text.strip().strip("$").strip()


_LOWERED = re.compile(r"\b(?:option|choice)\s+\(?([a-z])\b", re.IGNORECASE)
_NOUN = re.compile(
    r"(?:the\s+)?(?:(?:line|segment|side|angle|point|triangle|ray|edge|circle)s?\s+)+(?=[A-Z])|\\(?:angle|overline|triangle)\b",
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def _folded(text: str) -> str:
    """Folded text in which the name of a segment or point stands without its noun; formulas are left alone."""
    bare = _NOUN.sub(" ", text)
    if re.search(r"[\\^√]", re.sub(r"\\(?:text|textbf|mathrm|mbox)\b", "", bare)):
        return "".join(text.split())
    return fold(bare if re.fullmatch(r"[\s{}$]*[A-Z]{1,4}[\s{}$.]*", bare) else text)


def _is_option(text: str, texts: tuple[str, ...]) -> bool:
    return fold(text) in map(fold, texts)


def _same_text(answer: str, option: str, match: Match) -> bool:
    return _folded(answer) == _folded(option) or match(answer, option) is True


def _by_value(text: str, texts: tuple[str, ...], match: Match, confirm: Match) -> str | None:
    """The one option whose text or mathematical value is the answer's."""
    folded = _folded(text)
    exact = [
        letter for letter, t in zip(ascii_uppercase, texts, strict=False) if _folded(t) == folded and folded
    ]
    if len(exact) == 1:
        return exact[0]
    verdicts = [match(text, t) for t in texts]
    if True not in verdicts and not re.search(r"[a-z]{3} [a-z]{3}", text):  # a formula, no sentence
        verdicts = [confirm(text, t) if v is None else v for t, v in zip(texts, verdicts, strict=True)]
    equal = [letter for letter, v in zip(ascii_uppercase, verdicts, strict=False) if v is True]
    if len(equal) == 1:
        return equal[0]
    begun = [
        (len(f), letter)
        for letter, t in zip(ascii_uppercase, texts, strict=False)
        if (f := fold(t))
        and f.replace(" ", "").isalpha()
        and re.match(re.escape(t.strip()) + r"\s*(?:[,.;:(]|because|since|as\b)", text, re.IGNORECASE)
    ]
    return max(begun)[1] if begun and not equal else None


def _by_sentence(text: str, letters: str) -> str | None:
    """The one letter that a short sentence names as an option; pronouns, articles and names of points are none."""
    if len(text) > 300:
        return None
    if len(text.split()) < 3 and not re.search(r"[\u4e00-\u9fff]", text):
        return None
    named: set[str] = set()
    for found in re.finditer(r"(?<![A-Za-z0-9\\°'^_-])([A-Z])(?![A-Za-z0-9'°^_(]|\s*=)", text):
        letter, before, after = found[1], text[: found.start()], text[found.end() :]
        denied = _NEGATED.search(before) or _REJECTED.match(after)
        if letter not in letters or denied or _GEOMETRY.search(before.rstrip("(")):
            continue
        article = letter == "A" and re.match(r"\s+(?!(?:is|was|because|since|and|or)\b)[a-z]", after)
        pronoun = letter == "I" and re.match(r"\s", after)
        if not article and not pronoun:
            named.add(letter)
    named |= {found[1].upper() for found in _LOWERED.finditer(text) if found[1].upper() in letters}
    return named.pop() if len(named) == 1 else None


_DENIAL = re.compile(r" (?:not|no|never|neither|except|cannot|n't|t) ")


def _by_mention(text: str, texts: tuple[str, ...]) -> str | None:
    """The one option whose words occur in a short sentence that denies nothing else, or the one it is a part of."""
    sentence = f" {fold(text)} "
    if len(text) > 300:
        return None
    if all(re.fullmatch(r"[A-Z]{2,4}", t) for t in texts):  # names of segments and angles
        names = [
            letter for letter, t in zip(ascii_uppercase, texts, strict=False) if re.search(rf"\b{t}\b", text)
        ]
        return names[0] if len(names) == 1 else None
    folded = [(fold(t), letter) for letter, t in zip(ascii_uppercase, texts, strict=False)]
    mentioned = [(f, letter) for f, letter in folded if len(f) >= 2 and _mentions(sentence, f)]
    longest = [(f, letter) for f, letter in mentioned if not any(f != g and f in g for g, _ in mentioned)]
    wordy = re.compile(r"(?=.*[^\W\d_]{3}).*")
    if len(longest) == 1 and wordy.fullmatch(longest[0][0]):
        return None if _DENIAL.search(sentence.replace(longest[0][0], "")) else longest[0][1]
    part_of = [
        letter
        for f, letter in folded
        if wordy.match(sentence) and sentence.count(" ") >= 3 and sentence in f" {f} "
    ]
    return part_of[0] if len(part_of) == 1 and not mentioned else None


def _mentions(sentence: str, words: str) -> bool:
    """Whether a folded sentence has the words, or their singular."""
    return f" {words} " in sentence or (len(words) > 4 and words[-1] == "s" and f" {words[:-1]} " in sentence)
