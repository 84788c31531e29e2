import pytest

from mmcorl.graders import Answer, Grader
from mmcorl.graders.choices import options
from mmcorl.problems import Problem

ANGLES = ("20°", "30°", "40°", "50°")
ROOTS = ("3", r"3\sqrt{2}", r"\sqrt{2}", r"2\sqrt{3}")
LENGTHS = ("5 cm", "5 m", "50 m")
WORDS = ("larger than", "equal to", "smaller than", "None of the above")
TEN = ("12", "15", "18", "21", "24", "27", "30", "33", "36", "45")


@pytest.fixture(scope="module")
def grader():
    with Grader() as grader:
        yield grader


def letter(grader, text, choices):
    answer = grader.read(text, Problem("p", "Which one?", choices=choices, kind="choice"))
    return answer and answer.value


@pytest.mark.parametrize(
    "text",
    ["B", "b", "(B)", "(b)", "B.", "Ｂ", "（B）", "[B]", "<B>", "**B**", '"B"', "B\n", "option b", "Option B is correct",
     "The answer is B", "the correct answer is **B**", "answer: **b**", "B. 30°", "(B) 30°", "B: 30°", "B) 30", "B - 30°",
     "B 30°", r"\boxed{B}", r"\text{B}", r"\textbf{(B)}~30", "<answer>B</answer>", "选B", "答案：B", "故选：B", "30°", "30",
     r"30^\circ", "30 degrees", r"\angle ABC = 30^\circ", "x = 30", "60/2", "I think it is B", "rules out C, leaving B",
     "B. 40°", r"The answer is $\boxed{30^\circ}$"],
)  # fmt: skip
def test_ways_of_naming_b(grader, text):
    assert letter(grader, text, ANGLES) == "B"


@pytest.mark.parametrize(
    "text",
    ["", " ", "None", "null", "N/A", "I don't know", "Cannot be determined", "Dog", "Correct", "Answer", "Both are wrong",
     "ABCD", "A, B", "Both A and B", "A and B", "not B", "option (B) is incorrect", "E", "AB", "60", "A rectangle has four sides",
     "point D", "N 23.5° E", "100"],
)  # fmt: skip
def test_what_names_no_option(grader, text):
    assert letter(grader, text, ANGLES) is None


@pytest.mark.parametrize(
    ("text", "choices", "expected"),
    [
        (r"3\sqrt{2}", ROOTS, "B"),
        ("3√2", ROOTS, "B"),
        (r"\sqrt{18}", ROOTS, "B"),
        (r"\frac{6}{\sqrt{2}}", ROOTS, "B"),
        ("3", ROOTS, "A"),
        ("5 cm", LENGTHS, "A"),
        ("5 m", LENGTHS, "B"),
        ("500 cm", LENGTHS, "B"),
        ("5", LENGTHS, None),
        ("Smaller than.", WORDS, "C"),
        ("none of the above", WORDS, "D"),
        ("It is smaller than the other", WORDS, "C"),
        ("H", TEN, "H"),
        ("(j) 45", TEN, "J"),
        ("45", TEN, "J"),
        ("I think it is C", TEN, "C"),
        ("option g", TEN, "G"),
        ("Yes", ("Yes", "No"), "A"),
        ("no.", ("Yes", "No"), "B"),
        ("Yes, because the bar is longer", ("Yes", "No"), "A"),
        ("10", ("1", "10", "100", "1000"), "B"),
        ("3", ("1", "10", "100", "1000"), None),
        ("b", ("A. 300, 400", "B. 400, 300"), "B"),
        ("400, 300", ("A. 300, 400", "B. 400, 300"), "B"),
    ],
)
def test_values_and_texts(grader, text, choices, expected):
    assert letter(grader, text, choices) == expected


@pytest.mark.parametrize(
    "question",
    [
        "Find it. (A) 5 (B) 6 (C) 7 (D) 8",
        "Find it.\nA. 5\nB. 6\nC. 7\nD. 8",
        "Find it.\nChoices:\nA:5\nB:6\nC:7\nD:8",
        r"Find it. $\textbf{(A)}\ 5\qquad\textbf{(B)}\ 6\qquad\textbf{(C)}\ 7\qquad\textbf{(D)}\ 8$",
        "In triangle A. Find it: A、5 B、6 C、7 D、8",
    ],
)
def test_options_inlined_in_the_question(grader, question):
    problem = Problem("p", question, kind="choice")
    assert len(options(problem) or ()) == 4
    assert grader.read("7", problem) == Answer("choice", "C")
    assert grader.read("(c)", problem) == Answer("choice", "C")


def test_options_only_in_the_picture_leave_the_letter(grader):
    problem = Problem("p", "Which picture?", kind="choice")
    assert options(problem) is None
    assert grader.read("(D)", problem) == Answer("choice", "D")
    assert grader.read("7", problem) is None


@pytest.mark.parametrize(
    "text", ["<think>A or C</think>\n(B)", "30°", "Well.\n\nB", "So the answer is option (B).", r"\boxed{30}"]
)
def test_completions(grader, text):
    assert grader.answer(text, Problem("p", "q", choices=ANGLES, kind="choice")) == Answer("choice", "B")
