"""Grader: reads answers out of text and decides which of them are the same."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Sequence
from types import TracebackType

from mmcorl.graders import choices, comparison, folding, math
from mmcorl.graders.answers import Answer
from mmcorl.graders.extract import Extraction, Statement, code_block, statements, undress
from mmcorl.graders.latex import clean, restored
from mmcorl.graders.pool import Pool
from mmcorl.graders.values import Raw, show
from mmcorl.graders.words import from_words
from mmcorl.problems import Problem

MAX_ANSWER = 10_000  # characters; nothing longer is an answer
MAX_PHRASE_WORDS = 12  # of an answer in words within running text
_MAX_ASKED = 400  # characters of a formula that the symbolic workers are given
_NOT_FORMULA = re.compile(
    r"""["';@#`]|__|\blambda\b|\d{50}|\d{5,}!|\^\s*\{?[^{}^]{0,40}\^|\^\s*\{?\s*\d{5}"""
)


class Grader:
    """Reads completions and compares answers; one for a run, safe to use from several threads.

    Most answers are compared exactly or to many digits in the calling thread. Formulas beyond that are compared by
    sympy in worker processes, started when first needed; `close` (or leaving the `with` block) ends them.

    Args:
        extraction: Which ways of stating an answer count in a completion.
        timeout_s: Seconds that one symbolic comparison may take; then the two answers are not the same.
        workers: Most worker processes.
        cache: Symbolic comparisons remembered.
    """

    def __init__(
        self,
        extraction: Extraction | None = None,
        timeout_s: float = 2.0,
        workers: int = 2,
        cache: int = 65_536,
    ) -> None:
        self.extraction = extraction or Extraction()
        self._pool = Pool(workers, timeout_s)
        self._verdicts: OrderedDict[tuple[str, str], bool] = OrderedDict()
        self._cache = cache
        self._lock = threading.Lock()

    def __enter__(self) -> Grader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the worker processes."""
        self._pool.close()

    @property
    def timeouts(self) -> int:
        """Symbolic comparisons given up so far, each of them judged "not the same"."""
        return self._pool.timeouts

    def answer(self, text: str, problem: Problem) -> Answer | None:
        """What a completion concluded, or None if it concluded nothing that can be read. Never raises."""
        if problem.kind == "code":
            block = code_block(text)
            return Answer("code", block) if block else None
        for statement in statements(text, self.extraction):
            answer = self._read(statement.text, problem)
            if answer is not None and _acceptable(answer, statement, problem):
                return answer
        return None

    def read(self, text: str, problem: Problem) -> Answer | None:
        """A bare answer, such as a gold: a letter, an option's text or a value, in any wrapping. Never raises."""
        if problem.kind == "code":
            block = code_block(text) or text.strip("\n")
            return Answer("code", block) if block.strip() else None
        return self._read(text, problem)

    def same(self, a: Answer, b: Answer) -> bool:
        """Whether two answers to one problem say the same. Reflexive and symmetric."""
        if a == b:
            return True
        if a.kind != b.kind or a.kind != "math":
            return False
        verdict = comparison.equal(math.read(a.value), math.read(b.value))
        return self._confirm(a.value, b.value) if verdict is None else verdict

    def correct(self, answer: Answer | None, gold: Answer | None, problem: Problem) -> bool:
        """Whether an answer counts as the gold one. An abstention never does, nor does anything without a gold."""
        return answer is not None and gold is not None and self.same(answer, gold)

    def classes(self, answers: Sequence[Answer | None]) -> list[list[int]]:
        """Indices of equal answers, grouped, in order of first appearance; None is in no class.

        All members of a class are pairwise the same. The grouping depends only on which answers there are, not on
        their order: where an answer fits two classes ("5" beside "5 cm" and "5 m"), it joins the one whose values
        come first.
        """
        indices: dict[Answer, list[int]] = {}
        for index, answer in enumerate(answers):
            if answer is not None:
                indices.setdefault(answer, []).append(index)
        groups: list[list[Answer]] = []
        for answer in sorted(indices, key=lambda a: (a.kind, a.value)):
            home = next((g for g in groups if all(self.same(answer, other) for other in g)), None)
            if home is None:
                groups.append([answer])
            else:
                home.append(answer)
        return sorted(sorted(i for answer in group for i in indices[answer]) for group in groups)

    def _read(self, text: str, problem: Problem) -> Answer | None:
        text = undress(text) if len(text) <= 10 * MAX_ANSWER else ""
        if not text or len(text) > MAX_ANSWER or folding.says_nothing(text):
            return None
        texts = choices.options(problem)
        if texts is not None or problem.kind == "choice":
            letter = choices.read(text, texts, _match, self._confirm_text)
            return Answer("choice", letter) if letter else None
        return _folded(text) if problem.kind == "text" else _open(text)

    def _confirm_text(self, a: str, b: str) -> bool:
        first, second = _open(a), _open(b)
        return first is not None and second is not None and self.same(first, second)

    def _confirm(self, a: str, b: str) -> bool:
        """The symbolic workers' verdict, remembered; the pair is put in order first, which makes it symmetric."""
        pair = (a, b) if a <= b else (b, a)
        if "\\" not in a + b or not all(map(_is_formula, pair)):
            return False
        with self._lock:
            if pair in self._verdicts:
                self._verdicts.move_to_end(pair)
                return self._verdicts[pair]
        verdict = self._pool.same(*map(restored, pair))
        with self._lock:
            self._verdicts[pair] = verdict
            if len(self._verdicts) > self._cache:
                self._verdicts.popitem(last=False)
        return verdict


def _is_formula(text: str) -> bool:
    """Whether text is worth the symbolic workers' time: short, no running words, no towers of powers."""
    return len(text) <= _MAX_ASKED and _running_words(text) < 4 and not _NOT_FORMULA.search(text)


def _running_words(text: str) -> int:
    return len(re.findall(r"(?<![\\a-zA-Z{])[a-zA-Z]{3,}", text))


def _acceptable(answer: Answer, statement: Statement, problem: Problem) -> bool:
    """Words are an answer where they were marked as one; in running text only a few of them are."""
    if statement.how == "last_line":
        return answer.kind == "choice"
    if answer.kind != "text" or statement.how in ("box", "tag"):
        return True
    return (problem.kind == "text" and statement.how == "bare") or (
        statement.how == "phrase" and len(answer.value.split()) <= MAX_PHRASE_WORDS
    )


def _match(a: str, b: str) -> bool | None:
    """The cheap comparison of two open answers, for mapping an option's value to its letter."""
    first, second = _open(a), _open(b)
    if first is None or second is None or first.kind != second.kind:
        return False
    return first == second or (
        first.kind == "math" and comparison.equal(math.read(first.value), math.read(second.value))
    )


def _folded(text: str) -> Answer | None:
    value = folding.fold(text)
    return Answer("text", value) if re.search(r"\w", value) else None


_LABEL = re.compile(r"^\(?[A-J]\)[.:]?\s+(?=\S)|(?<=\w\w|\w°)\s+\([A-J]\)$")


def _without_label(text: str) -> str:
    """An open answer without the letter of an option before or after it, as in "B) AB = 5"."""
    return _LABEL.sub("", text, count=1)


_WORDS = re.compile(r"[^\W\d_]+(?:[\s,.'’-]+[^\W\d_]+)*")
_MEANING = re.compile(r"\w|∞|∅|\\emptyset|\\infty|\\varnothing|\\\{\s*\\\}|\{\s*\}|π")


def _open(text: str) -> Answer | None:
    """An answer to an open question: mathematics where it can be read as that, else words."""
    if folding.says_nothing(text) or not _MEANING.search(text):
        return None
    bare = re.sub(r"\\(?:text|textbf|mathrm|mbox)\s*\{([^{}]*)\}", r" \1 ", text).strip(" .$。")
    if _WORDS.fullmatch(bare) and from_words(bare) is None and not _is_symbols(bare):
        return _folded(bare)
    value = math.read(_without_label(text))
    if isinstance(value, Raw) and _is_prose(value.text):
        return _folded(text)
    shown = show(value)
    return Answer("math", shown) if _MEANING.search(shown) else None


def _is_symbols(word: str) -> bool:
    """Whether letters alone are mathematics: x, AB, pi, but not "no", "East" or "Yes"."""
    if word in ("pi", "π", "infinity", "inf", "oo"):
        return True
    return len(word) == 1 or (
        len(word) == 2 and (word.isupper() or word.islower()) and word.lower() not in ("no", "ok")
    )


def _is_prose(text: str) -> bool:
    """Whether text that is no readable mathematics consists of words rather than formulas."""
    if len(text) > math.MAX_TEXT:
        return False
    if re.search(r"\\(?!text\b)[a-zA-Z]+", text):
        return _running_words(text) >= 4
    return bool(re.search(r"[^\W\d_]{3}", clean(text)))
