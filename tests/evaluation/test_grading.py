"""A stored completion is graded by its benchmark's convention and the facts of its row."""

from __future__ import annotations

from mmcorl.evaluation.grading import Marker, convention_of
from mmcorl.evaluation.records import ProblemRecord
from mmcorl.graders import Answer, Grader


def test_the_facts_of_the_row_go_to_the_convention():
    row = ProblemRecord("1", "How long is it?", None, "math", "1.2", {"precision": 1.0, "unit": "cm", "answer_type": "float"})  # fmt: skip
    rule = convention_of("mathvista", row)
    assert (rule.precision, rule.unit, rule.answer_type) == (1, "cm", "float")
    with Grader() as grader:
        assert Marker(grader, row, "mathvista")("So it is \\boxed{1.23}.") == (
            Answer("math", "123/100"),
            True,
        )
        assert Marker(grader, row, "strict")("So it is \\boxed{1.23}.")[1]
        bare = ProblemRecord("1", "How long is it?", None, "math", "1.2")
        assert not Marker(grader, bare, "strict")("So it is \\boxed{1.23}.")[1]


def test_a_letter_a_value_and_silence():
    row = ProblemRecord("1", "How large is it?", ["30°", "40°"], "choice", "B")
    with Grader() as grader:
        mark = Marker(grader, row, "wemath")
        assert mark("The answer is 40 degrees.") == (Answer("choice", "B"), True)
        assert mark("Answer: A") == (Answer("choice", "A"), False)
        assert mark("I cannot see it.") == (None, False)


def test_nothing_is_right_without_a_gold():
    with Grader() as grader:
        mark = Marker(grader, ProblemRecord("1", "2 + 2?", None, "math", None), "strict")
        assert mark("\\boxed{4}") == (Answer("math", "4"), False)


def test_a_completion_that_ran_out_of_tokens_may_not_end_in_its_answer():
    with Grader() as grader:
        mark = Marker(grader, ProblemRecord("1", "2 + 2?", None, "math", "4"), "strict")
        assert mark("<answer>4") == (Answer("math", "4"), True)
        assert mark("<answer>4", finished=False) == (None, False)
        assert mark("<answer>4</answer> as", finished=False)[1]
