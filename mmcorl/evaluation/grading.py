"""The verdict on one completion: the same for a running evaluation and for stored completions."""

from __future__ import annotations

from typing import Any

from mmcorl.evaluation.records import ProblemRecord
from mmcorl.graders import Answer, Convention, Grader, convention


def convention_of(name: str, problem: ProblemRecord) -> Convention:
    """A benchmark's grading convention, with the `precision`, `unit` and `answer_type` of the row where it has them."""
    facts: dict[str, Any] = problem.fields
    precision = facts.get("precision")
    return convention(
        name,
        precision=None if precision is None else int(precision),  # data sets keep it as a float
        unit=facts.get("unit"),
        answer_type=facts.get("answer_type"),
    )


class Marker:
    """Grades completions of one problem; its gold is read once."""

    def __init__(self, grader: Grader, problem: ProblemRecord, convention_name: str) -> None:
        self._grader, self._problem = grader, problem.problem()
        self._rule = convention_of(convention_name, problem)
        self._gold = None if problem.gold is None else grader.read(problem.gold, self._problem, self._rule)

    def __call__(self, completion: str, finished: bool = True) -> tuple[Answer | None, bool]:
        """What the completion concluded, and whether that is right; see `Grader.answer`."""
        answer = self._grader.answer(completion, self._problem, self._rule, finished)
        return answer, self._grader.correct(answer, self._gold, self._problem, self._rule)
