import pytest

from mmcorl.graders import Grader
from mmcorl.graders.expectation import expected
from mmcorl.problems import Problem


@pytest.fixture(scope="module")
def grader():
    with Grader() as grader:
        yield grader


@pytest.mark.parametrize(
    ("question", "dimensions"),
    [
        ("How many centimeters long is AB?", ["length"]),
        ("Find the area of the square in square cm.", ["length^2"]),
        ("What is the speed in km/h?", ["length*time^-1"]),
        ("Find the height (unit: cm).", ["length"]),
        ("则AB的长为( )厘米.", ["length"]),
        ("一共需要多少米", ["length"]),
        ("What percent of 20 is 5?", ["percent"]),
        ("Give the share as a percentage.", ["percent"]),
        ("What is the probability of heads?", ["percent"]),
        ("If ∠A = 30°, what is ∠B?", ["degree"]),
        ("How many degrees is the angle?", ["degree"]),
        ("What is the angle of 30° in radians?", []),
        ("What is 20% of 50?", []),
        ("How many apples are left in all?", []),
        ("What is it?", []),
    ],
)
def test_what_questions_ask_for(question, dimensions):
    assert sorted({u.dimension for u in expected(question)} - {""}) == dimensions


@pytest.mark.parametrize(
    ("question", "text", "value"),
    [
        ("How many centimeters long is AB?", "0.05 m", "5"),
        ("How many centimeters long is AB?", "5 cm", "5"),
        ("How many centimeters long is AB?", "AB = 500 mm", "A*B=50"),
        ("How many centimeters long is AB?", "5 kg", r"5 \text{kg}"),
        ("How many minutes does it take?", "1.5 hours", "90"),
        ("What percent of 20 is 5?", "25%", "25"),
        ("What percent of 20 is 5?", "25", "25"),
        ("What is the probability of heads?", "50%", "1/2"),
        ("If ∠A = 30°, what is ∠B?", "45°", "45"),
        ("What is the angle in radians?", "45°", "45°"),
        ("What is it?", "5 cm", r"5 \text{cm}"),
        ("In which cm does it end? Name both in cm.", "1 m, 2 m", "100, 200"),
    ],
)
def test_answers_are_read_in_the_unit_asked_for(grader, question, text, value):
    answer = grader.read(text, Problem("p", question))
    assert answer is not None and answer.value == value


def test_where_the_question_says_the_unit_nothing_is_left_to_guess(grader):
    percent = Problem("p", "What percent of 20 is 5?")
    assert not grader.same(grader.read("25%", percent), grader.read("1/4", percent))
    chance = Problem("p", "What is the probability of heads?")
    assert grader.same(grader.read("25%", chance), grader.read("1/4", chance))
    assert not grader.same(grader.read("25%", chance), grader.read("25", chance))
    angle = Problem("p", "How many degrees is the angle?")
    assert not grader.same(grader.read("90°", angle), grader.read(r"\frac{\pi}{2}", angle))
