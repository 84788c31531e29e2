import pytest

from mmcorl.errors import MmcorlError
from mmcorl.graders import Grader
from mmcorl.graders.conventions import convention
from mmcorl.graders.judging import explain, judge, parse


@pytest.fixture(scope="module")
def grader():
    with Grader() as grader:
        yield grader


def test_a_line_is_a_bare_answer_or_a_whole_completion():
    assert parse(b'{"gold": 5, "pred": 5.0}').text == "5.0"
    assert parse(b'{"gold": "5", "response": "so 5"}').whole
    assert parse(b'{"gold": "B", "pred": "b", "choices": ["1", "2"]}').problem.kind == "choice"
    assert parse(b'{"gold": "B", "pred": "b", "answer_type": "float"}').problem.kind == "math"
    for wrong in (
        b"{",
        b"5",
        b'{"gold": "5"}',
        b'{"pred": "5"}',
        b'{"gold": "5", "pred": "5", "precision": -1}',
    ):
        with pytest.raises(MmcorlError):
            parse(wrong)


def test_the_first_place_with_an_answer_decides(grader):
    verdict = judge(parse(rb'{"gold": "7", "response": "\\boxed{\\,} The answer is 5. \\boxed{7}"}'), grader)
    assert (verdict.right, verdict.why) == (True, "box; the same canonical form")
    verdict = judge(
        parse(b'{"gold": "5", "response": "<answer>the answer</answer> The answer is 5."}'), grader
    )
    assert (verdict.right, verdict.why) == (True, "phrase; the same canonical form")


def test_the_nearest_option_is_taken_by_conventions_that_do(grader):
    line = parse(b'{"gold": "red", "response": "The answer is rad.", "choices": ["red", "green"]}')
    assert judge(line, grader).right is None
    assert judge(line, grader, convention("mathvista")).right is True


def test_an_explanation_shows_places_in_order(grader):
    line = parse(rb'{"gold": "7", "response": "The answer is 5. So \\boxed{7}, done"}')
    places = [step for step in explain(line, grader) if step.startswith("  ")]
    assert [place.split()[0] for place in places] == ["box", "phrase", "bare"]
    assert places[0].endswith("[taken]") and places[1].endswith("[not needed]")
