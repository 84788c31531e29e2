"""Grader: reads answers out of text and decides which of them are the same."""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import TracebackType

from mmcorl.graders import choices, comparison, conventions, folding, math, open_answers, scalars
from mmcorl.graders.answers import Answer
from mmcorl.graders.code import ProgramJudge
from mmcorl.graders.conventions import STRICT, Convention
from mmcorl.graders.expectation import expected
from mmcorl.graders.extract import Extraction, Statement, code_block, statements, undress
from mmcorl.graders.latex import restored
from mmcorl.graders.pool import Pool
from mmcorl.graders.values import Raw
from mmcorl.problems import Completion, Problem
from mmcorl.sandbox import Limits

MAX_ANSWER = 10_000  # characters; nothing longer is an answer
MAX_PHRASE_WORDS = 12  # of an answer in words within running text
_SHORT = 24  # characters of words that may be meant for the nearest option, however short all options are
_MAX_ASKED = 400  # characters of a formula that the symbolic workers are given
_MAX_DEPTH = 12  # of its brackets within brackets
_MAX_WORDS = 3  # of running text in it
_RATIONAL = re.compile(r"-?\d{1,7}(?:/\d{1,7})?", re.ASCII)
_NOT_FORMULA = re.compile(
    r"""["';@#`]|__|\blambda\b|\d{50}|\d{5,}!|\^\s*\{?[^{}^]{0,40}\^|\^\s*\{?\s*\d{5}"""
)


class Grader:
    """Reads completions and compares answers; one for a run, safe to use from several threads.

    Most answers are compared exactly or to many digits in the calling thread. Formulas beyond that are compared by
    sympy in worker processes, started when the first such formula is read; `close` (or leaving the `with` block) ends them.

    Args:
        extraction: Which ways of stating an answer count in a completion.
        timeout_s: Seconds that the symbolic comparison of two answers may take, and those with all options of a
            problem together; then they are not the same.
        workers: Most worker processes.
        cache: Symbolic comparisons remembered.
        program_limits: What a program that answers a code problem may use; None for the defaults.
        program_workers: Programs run at the same time; None for one a core.
    """

    def __init__(
        self,
        extraction: Extraction | None = None,
        timeout_s: float = 0.8,
        workers: int = 2,
        cache: int = 65_536,
        program_limits: Limits | None = None,
        program_workers: int | None = None,
    ) -> None:
        self.extraction = extraction or Extraction()
        self._pool = Pool(workers)
        self._timeout_s = timeout_s
        self._verdicts: OrderedDict[tuple[str, str], bool | None] = OrderedDict()
        self._cache = cache
        self._programs = ProgramJudge(program_limits, program_workers)
        self._lock = threading.Lock()

    def __enter__(self) -> Grader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def warm(self, problems: Sequence[Problem] | None = None) -> None:
        """Start the worker processes and wait until they are ready, a second or so, so that no comparison has to.

        With `problems`, only what answers to these are likely to need: the symbolic workers where a formula stands in
        a question or an option, the sandbox where programs are run. Raises MmcorlError where this machine cannot run
        programs safely.
        """
        if problems is None or any(p.kind != "code" and _speaks_formulas(p) for p in problems):
            self._pool.warm()
        if any(p.program for p in problems or ()):
            self._programs.warm()

    def close(self) -> None:
        """End the worker processes."""
        self._pool.close()
        self._programs.close()

    @property
    def timeouts(self) -> int:
        """Symbolic comparisons given up so far, each of them judged "not the same"."""
        return self._pool.timeouts

    def answer(
        self, text: str, problem: Problem, convention: Convention = STRICT, finished: bool = True
    ) -> Answer | None:
        """What a completion concluded, or None if it concluded nothing that can be read. Never raises.

        Of one that was not `finished`, because it ran out of tokens, only what was closed counts. A convention with `nearest_choice` takes words that name no option for the option that is spelled most alike.
        """
        if problem.kind == "code":
            return self._programs.answers([(code_block(text), problem)])[0]
        marked: list[str] = []
        for statement, answer in self.readings(text, problem, finished):
            if answer is not None:
                return answer
            marked += [statement.text] if statement.how in ("box", "tag", "phrase", "bare") else []
        return _nearest(marked[0], problem) if marked and convention.nearest_choice else None

    def readings(
        self, text: str, problem: Problem, finished: bool = True
    ) -> Iterator[tuple[Statement, Answer | None]]:
        """The places where a completion may state its answer, in order of preference, with the answer at each.

        `answer` takes the first that is not None. Of a program there are none.
        """
        multiple_choice = problem.kind == "choice" or problem.choices is not None
        confirm = self._until_out_of_time()
        extraction = self.extraction if finished else replace(self.extraction, unclosed=False)
        for statement in statements(text, extraction) if problem.kind != "code" else ():
            if multiple_choice or statement.how not in ("last_line", "first_line"):
                answer = self._read(statement.text, problem, confirm)
                yield statement, answer if answer and _acceptable(answer, statement, problem) else None

    def answers(self, asked: Sequence[tuple[Completion, Problem]]) -> list[Answer | None]:
        """`answer` for many completions, each with its problem; programs among them are run at the same time."""
        ran = iter(self._programs.answers([(code_block(c.text), p) for c, p in asked if p.kind == "code"]))
        return [
            next(ran) if p.kind == "code" else self.answer(c.text, p, finished=c.finished) for c, p in asked
        ]

    def read(self, text: str, problem: Problem, convention: Convention = STRICT) -> Answer | None:
        """A bare answer, such as a gold: a letter, an option's text or a value, in any wrapping. Never raises."""
        if problem.kind == "code":
            block = code_block(text) or text.strip("\n")
            return Answer("code", block) if block.strip() else None
        answer = self._read(text, problem, self._until_out_of_time())
        return _nearest(text, problem) if answer is None and convention.nearest_choice else answer

    def same(self, a: Answer, b: Answer) -> bool:
        """Whether two answers to one problem say the same. Reflexive and symmetric.

        Also transitive among answers with a unit and among answers without one. A bare number leaves the unit to the
        question, so it is the same as that number of any unit; where the question names its unit, `read` has already
        turned every answer into a bare number of it.
        """
        if a == b:
            return True
        if a.kind != b.kind or a.kind != "math":
            return False
        if _RATIONAL.fullmatch(a.value) and _RATIONAL.fullmatch(b.value):
            return False  # canonical, and too short to be rounded doubles
        verdict = comparison.equal(math.read(a.value), math.read(b.value))
        return bool(self._confirm(a.value, b.value, self._timeout_s)) if verdict is None else verdict

    def correct(
        self, answer: Answer | None, gold: Answer | None, problem: Problem, convention: Convention = STRICT
    ) -> bool:
        """Whether an answer counts as the gold one: if they are the same, or by the benchmark's convention.

        An abstention is never correct, nor is anything without a gold.
        """
        if answer is None or gold is None:
            return False
        if problem.kind == "code":
            return self._programs.correct(answer, gold, problem)
        if answer.kind == gold.kind == "math" and conventions.accepts(
            convention, math.read(answer.value), math.read(gold.value)
        ):
            return True
        return self.same(answer, gold)

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

    def _read(self, text: str, problem: Problem, confirm: choices.Match) -> Answer | None:
        text = undress(text) if len(text) <= 10 * MAX_ANSWER else ""
        if not text or len(text) > MAX_ANSWER or folding.says_nothing(text):
            return None
        texts = choices.options(problem)
        if texts is not None or problem.kind == "choice":
            letter = choices.read(text, texts, _match, confirm)
            return Answer("choice", letter) if letter else None
        if problem.kind == "text":
            return open_answers.words(text)
        answer = open_answers.read(text, expected(problem.question))
        if answer is not None and answer.kind == "math" and _needs_workers(answer.value):
            self._pool.start()  # ready by the time that it is asked
        return answer

    def _until_out_of_time(self) -> choices.Match:
        """The slow comparison of texts for one completion, all of which together have the time of one."""
        deadline = float("inf")

        def confirm(a: str, b: str) -> bool | None:
            nonlocal deadline
            first, second = open_answers.read(a), open_answers.read(b)
            if first is None or second is None or {first.kind, second.kind} != {"math"}:
                return False
            deadline = min(deadline, time.monotonic() + self._timeout_s)
            left = deadline - time.monotonic()
            return self._confirm(first.value, second.value, left) if left > 0 else None

        return confirm

    def _confirm(self, a: str, b: str, seconds: float) -> bool | None:
        """The symbolic workers' verdict, remembered, None where they gave up; symmetric, as the pair is put in order."""
        pair = (a, b) if a <= b else (b, a)
        if "\\" not in a + b or not all(map(_is_formula, pair)):
            return False
        with self._lock:
            if pair in self._verdicts:
                self._verdicts.move_to_end(pair)
                return self._verdicts[pair]
        verdict = self._pool.same(restored(pair[0]), restored(pair[1]), seconds)
        with self._lock:
            self._verdicts[pair] = verdict
            if len(self._verdicts) > self._cache:
                self._verdicts.popitem(last=False)
        return verdict


def _nearest(text: str, problem: Problem) -> Answer | None:
    texts = choices.options(problem)
    said = undress(text)
    if not texts or not re.search(r"\w", said) or len(said) > max(_SHORT, 2 * max(map(len, texts))):
        return None  # of a whole sentence the distance tells the length alone
    return Answer("choice", conventions.nearest(said, texts))


def _speaks_formulas(problem: Problem) -> bool:
    return any("\\" in text for text in (problem.question, *(problem.choices or ())))


def _needs_workers(text: str) -> bool:
    return "\\" in text and isinstance(math.read(text), Raw) and _is_formula(text)


def _is_formula(text: str) -> bool:
    """Whether text is worth the symbolic workers' time: short, no running words, no towers of powers."""
    short = len(text) <= _MAX_ASKED and scalars.depth(text) <= _MAX_DEPTH
    return short and math.running_words(text) < _MAX_WORDS and not _NOT_FORMULA.search(text)


def _acceptable(answer: Answer, statement: Statement, problem: Problem) -> bool:
    """Words are an answer where they were marked as one; in running text only a few of them are."""
    if answer.kind != "text" or statement.how in ("box", "tag"):
        return True
    return (problem.kind == "text" and statement.how == "bare") or (
        statement.how == "phrase" and len(answer.value.split()) <= MAX_PHRASE_WORDS
    )


def _match(a: str, b: str) -> bool | None:
    """The cheap comparison of two open answers, for mapping an option's value to its letter."""
    first, second = open_answers.read(a), open_answers.read(b)
    if first is None or second is None or first.kind != second.kind:
        return False
    return first == second or (
        first.kind == "math" and comparison.equal(math.read(first.value), math.read(second.value))
    )
