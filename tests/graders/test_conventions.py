import pytest

from mmcorl.errors import MmcorlError
from mmcorl.graders import Convention, Grader, convention
from mmcorl.graders.conventions import CONVENTIONS, nearest
from mmcorl.problems import Problem

OPEN = Problem("p", "What is it?")


@pytest.fixture(scope="module")
def grader():
    with Grader() as grader:
        yield grader


def right(grader, answer, gold, rule):
    return grader.correct(grader.read(answer, OPEN), grader.read(gold, OPEN), OPEN, rule)


MATHVISTA_1 = convention("mathvista", precision=1, answer_type="float")
INTEGER = convention("mathvista", answer_type="integer")


@pytest.mark.parametrize(
    ("rule", "answer", "gold", "expected"),
    [
        (MATHVISTA_1, "1.249", "1.2", True),
        (MATHVISTA_1, "1.25", "1.2", True),  # halves to even
        (MATHVISTA_1, "1.15", "1.2", False),  # a float just below 1.15
        (MATHVISTA_1, "1.26", "1.2", False),
        (MATHVISTA_1, "1", "1.2", False),
        (MATHVISTA_1, "-3.14", "-3.1", True),
        (MATHVISTA_1, "x = 1.249 m", "1.2", True),
        (MATHVISTA_1, "yes", "1.2", False),
        (convention("mathvista", precision=2), "0.004", "0.00", True),
        (INTEGER, "7.9", "7", True),
        (INTEGER, "-7.9", "-7", True),
        (INTEGER, "8", "7", False),
        (INTEGER, "7 apples", "7", True),
        (INTEGER, "7.9", "7.5", False),
        (convention("mathvista", answer_type="list"), "1, 2", "[1, 2]", True),
        (convention("scibench"), "104.9", "100", True),
        (convention("scibench"), "106", "100", False),
        (convention("scibench"), "-100", "100", False),
        (convention("scibench"), r"\sqrt{2}", "1.414", True),
        (convention("scibench"), "(1.01, 2)", "(1, 2)", True),
        (convention("scibench"), "(1.01, 2)", "[1, 2]", False),
        (convention("scibench"), "(1, 2, 3)", "(1, 2)", False),
        (convention("scibench", unit="m"), "500 cm", "5", True),
        (convention("scibench", unit="m"), "5 s", "5 m", False),
        (convention("strict", unit="cm"), "0.5 m", "50", True),
        (convention("strict", unit="cm"), "0.5", "50", False),
        (convention("strict", precision=2), "0.333", "0.33", True),
        (convention("strict"), "0.333", "0.33", False),
        (Convention(absolute=0.5), "10.5", "10", True),
        (Convention(absolute=0.5), "10.6", "10", False),
        (Convention(unordered=True), "(2, 1)", "(1, 2)", True),
        (Convention(relative=0.05), r"\{2.01, 1\}", r"\{1, 2\}", True),
        (Convention(relative=0.05), "x", "y", False),
        (Convention(relative=0.05), "5 m", "5 cm", False),
        (Convention(relative=0.05), r"\frac{1}{0}", "1", False),
    ],
)
def test_rules(grader, rule, answer, gold, expected):
    assert right(grader, answer, gold, rule) is expected


@pytest.mark.parametrize("name", CONVENTIONS)
def test_every_convention_takes_the_gold_itself_and_no_abstention(grader, name):
    for text in ("5", "0.123456", r"\sqrt{2}", "(1, 2)", "no", "x>3"):
        assert right(grader, text, text, convention(name))
    gold = grader.read("5", OPEN)
    assert not grader.correct(None, gold, OPEN, convention(name))
    assert not grader.correct(gold, None, OPEN, convention(name))


def test_the_default_is_being_the_same(grader):
    assert convention("strict") == Convention()
    assert convention("strict").adds_nothing
    assert not right(grader, "7.9", "7", Convention())


def test_the_nearest_choice_is_taken_only_where_the_benchmark_does(grader):
    problem = Problem("p", "Which?", choices=("green", "red"))
    text = "The answer is greenish"
    assert grader.answer(text, problem) is None
    answer = grader.answer(text, problem, convention("mathvista"))
    assert answer is not None and answer.value == "A"
    assert grader.answer("", problem, convention("mathvista")) is None
    sentence = (
        "The answer is one of those that the picture does not show"  # as far from "red" as from "green"
    )
    assert grader.answer(sentence, problem, convention("mathvista")) is None
    assert nearest("smaler than", ("larger than", "smaller than", "equal")) == "B"
    assert nearest("", ("ab", "a")) == "B"


def test_mistakes_are_named():
    with pytest.raises(MmcorlError, match="there are: strict"):
        convention("mathvistas")
    with pytest.raises(MmcorlError, match="-1"):
        convention("strict", precision=-1)
