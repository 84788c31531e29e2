"""Pairs that are or are not the same answer, by kind; each line is T or F, a prediction and a gold."""

import pytest

from mmcorl.graders import Grader
from mmcorl.problems import Problem

OPEN = Problem("p", "What is it?")

COMPLETIONS = r"""
T ¦ \framebox{12} ¦ 12
T ¦ x=\boxed{3}, y=\boxed{4} ¦ (3,4)
T ¦ so it is -\boxed{256} ¦ -256
F ¦ $\boxed{12$ ¦ 12
T ¦ <answer>Therefore, the total area is 12 square units.</answer> ¦ 12
F ¦ <answer>The area is not 12</answer> ¦ 12
T ¦ so we get⏎12</answer> ¦ 12
T ¦ <answer>```12```</answer> ¦ 12
T ¦ <answer><b>12</b></answer> ¦ 12
T ¦ <final_answer>12</final_answer> ¦ 12
T ¦ <|begin_of_thought|>\boxed{3}<|end_of_thought|> Answer: 12<|im_end|> ¦ 12
T ¦ ### Answer⏎12 ¦ 12
T ¦ **Final Answer**⏎⏎12 ¦ 12
T ¦ {"answer": "12", "confidence": 0.9} ¦ 12
T ¦ ```json⏎{"reasoning": "3*4", "answer": "12"}⏎``` ¦ 12
T ¦ {"final_answer": "\\frac{1}{2}"} ¦ 0.5
T ¦ {'answer': 12} ¦ 12
T ¦ 答：12厘米 ¦ 12
T ¦ A: 12 ¦ 12
T ¦ The volume is 12 cubic units. ¦ 12
F ¦ The volume is 12 where the side is 3 and ¦ 12
F ¦ The answer is not 12. ¦ 12
"""
NUMBERS = r"""
T ¦ 0.333... ¦ 1/3
T ¦ 0.1666\ldots ¦ 1/6
T ¦ 1.2\overline{34} ¦ 1222/990
F ¦ 0.333 ¦ 1/3
T ¦ 1.234,56 ¦ 1234.56
T ¦ 1 234,56 ¦ 1234.56
T ¦ 12\text{,}345 ¦ 12345
T ¦ 12'345 ¦ 12345
T ¦ 1.2 x 10^5 ¦ 120000
T ¦ -3\frac{1}{2} ¦ -3.5
T ¦ 3-1/2 ¦ 2.5
T ¦ five halves ¦ 5/2
T ¦ three-quarters ¦ 3/4
T ¦ three and a half ¦ 3.5
T ¦ one hundred twenty-three ¦ 123
T ¦ two thousand ¦ 2000
T ¦ minus five ¦ -5
T ¦ a dozen ¦ 12
T ¦ seven apples ¦ 7
F ¦ seven apples ¦ 8
T ¦ 二十三 ¦ 23
T ¦ 三分之一 ¦ 1/3
T ¦ 百分之二十五 ¦ 25%
F ¦ 1 2 ¦ 12
"""
UNITS = r"""
T ¦ 30^o ¦ 30°
T ¦ 12 sq. cm ¦ 12 cm^2
T ¦ 12 m s^{-1} ¦ 12 m/s
T ¦ 12 \frac{m}{s} ¦ 12 m/s
T ¦ 12 N·m ¦ 12 J
T ¦ 12 kg·m/s^2 ¦ 12 N
T ¦ 12 J/(kg·K) ¦ 12
T ¦ 12 kΩ ¦ 12000 ohms
T ¦ 12 μm ¦ 0.012 mm
T ¦ 12 nC ¦ 12
T ¦ 12千米/时 ¦ 12 km/h
F ¦ 12 m/s ¦ 12 km/h
F ¦ 12 N ¦ 12 J
T ¦ 5 ft 6 in ¦ 66 inches
T ¦ 5'6" ¦ 5.5 feet
T ¦ 2 hours 30 minutes ¦ 150 minutes
T ¦ 2 hours and 30 minutes ¦ 2.5 hours
F ¦ 2 hours 30 minutes ¦ 2.3 hours
T ¦ 3:30 PM ¦ 3:30 p.m.
T ¦ 15:30 ¦ 3:30 pm
T ¦ 3:30 PM ¦ 3:30
T ¦ 12:00 am ¦ 0:00
F ¦ 3:30 PM ¦ 3:30 AM
T ¦ 3 o'clock ¦ 3:00
"""
STRUCTURES = r"""
T ¦ \text{Area} = 12 ¦ 12
T ¦ x ∈ {2, 3} ¦ 2,3
T ¦ 1或2 ¦ 1, 2
T ¦ \langle 1,2,3 \rangle ¦ (1,2,3)
F ¦ \langle 1,2,3 \rangle ¦ (1,3,2)
T ¦ \{(1,2)\} ¦ (1,2)
T ¦ no solutions ¦ \emptyset
T ¦ all real numbers ¦ \mathbb{R}
T ¦ (-inf, 3] ¦ (-\infty,3]
T ¦ (-\infty,0)\cup(0,\infty) ¦ x \neq 0
T ¦ \mathbb{R} \setminus \{0, 1\} ¦ (-\infty,0)\cup(0,1)\cup(1,\infty)
F ¦ x \ne 1 ¦ x \ne 0
T ¦ ]2,5] ¦ (2,5]
F ¦ ]2,5] ¦ [2,5]
T ¦ [0, 2\pi) ¦ 0 \le \theta < 2\pi
T ¦ [[1,2],[3,4]] ¦ \begin{pmatrix}1&2\\3&4\end{pmatrix}
T ¦ 2\begin{pmatrix} 1 \\ 2 \end{pmatrix} ¦ \begin{pmatrix}2\\4\end{pmatrix}
T ¦ \left(\begin{array}{cc} 1 & 2 \end{array}\right) ¦ \begin{pmatrix}1&2\end{pmatrix}
T ¦ \begin{pmatrix} 1 \\ 2 \end{pmatrix} ¦ (1,2)
F ¦ \begin{pmatrix} 1 \\ 2 \end{pmatrix} ¦ \begin{pmatrix} 1 & 2 \end{pmatrix}
T ¦ \tan^{-1}(1) ¦ \frac{\pi}{4}
T ¦ \pi r^2 ¦ πr²
T ¦ \vec{a}+\vec{b} ¦ \vec b+\vec a
T ¦ k\pi + \frac{\pi}{2} ¦ \frac{\pi}{2}+k\pi, k \in \mathbb{Z}
F ¦ (x, 2) ¦ [1, 2)
"""
SLIPS = r"""
T ¦ \frac{3}{4}} ¦ 0.75
T ¦ \{1,2} ¦ \{1,2\}
T ¦ 12</s> ¦ 12
T ¦ 45^\\circ ¦ 45
T ¦ Alice and Bob ¦ Alice, Bob
F ¦ Alice and Bob ¦ Alice
"""


@pytest.fixture(scope="module")
def grader():
    with Grader(timeout_s=10) as grader:
        yield grader


def check(grader, line, reading):
    expected, prediction, gold = line.replace("⏎", "\n").split(" ¦ ")
    answer, truth = reading(prediction, OPEN), grader.read(gold, OPEN)
    assert truth is not None
    assert grader.correct(answer, truth, OPEN) == grader.correct(truth, answer, OPEN) == (expected == "T")


@pytest.mark.parametrize("line", COMPLETIONS.strip().splitlines())
def test_completions(grader, line):
    check(grader, line, grader.answer)


@pytest.mark.parametrize(
    "line", [line for block in (NUMBERS, UNITS, STRUCTURES, SLIPS) for line in block.strip().splitlines()]
)
def test_answers(grader, line):
    check(grader, line, grader.read)


SEGMENTS = ("AB", "BC", "AC", "No correct answer")
POINTS = ("C", "A", "D", "B")
CHANGES = ("Increases", "Decreases", "Stays the same", "It cannot be determined")
ANGLES = ("20°", "30°", "40°", "50°")
BODIES = ("Sun", "It varies", "They are equal in size", "Moon")
SURDS = ("3", r"\sqrt{3}", r"\frac{1}{2}", "1, 2")


@pytest.mark.parametrize(
    ("choices", "text", "letter"),
    [
        (SEGMENTS, "segment BC", "B"),
        (SEGMENTS, r"\overline{BC}", "B"),
        (SEGMENTS, "BD", None),
        (POINTS, "B. A", "B"),
        (POINTS, "Option D: B", "D"),
        (POINTS, "A", "A"),
        (("(c)", "(a)", "(b)"), "(b)", "C"),
        (("(c)", "(a)", "(b)"), "B", "B"),
        (CHANGES, "Cannot be determined", "D"),
        (CHANGES, "It does not increase", None),
        (ANGLES, "the angle is 40°", "C"),
        (ANGLES, "It's C.", "C"),
        (("yes", "no"), "A: no", "B"),
        (("yes", "no"), "C. No, it is smaller", "B"),
        (BODIES, "The sun is larger than the moon.", None),
        (("odd", "even"), "The function is odd.", "A"),
        (SURDS, r"\sqrt{3}", "B"),
        (SURDS, "3", "A"),
        (SURDS, r"\frac{1}{2}", "C"),
        (("10dm²", "25dm²"), "25 dm²", "B"),
        (("RFT U13B", "RFT k=25"), "The best model is RFT U13B.", "A"),
    ],
)
def test_choices(grader, choices, text, letter):
    answer = grader.read(text, Problem("p", "Which?", choices=choices))
    assert (answer and answer.value) == letter


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("(C) 40°\n\nThe three angles sum to 180°, so this one is smaller.", "C"),
        ("The most likely one is (C) 40°, which agrees with the figure.", "C"),
        ("The most likely ones are (C) 40° and (D) 50°.", None),
        ("The answer is (C). Option (A): 20° is too small. Option (B): 30° is too.", "C"),
        ("Choices:\n(A) 20°\n(B) 30°\n(C) 40°\n(D) 50°", None),
        ("The answer is (C) 40°.\nChoices:\n(A) 20°\n(B) 30°", "C"),
        ("Option (A) is too small. Option (B) is", None),
    ],
)
def test_choices_in_completions(grader, text, letter):
    answer = grader.answer(text, Problem("p", "Which?", choices=ANGLES))
    assert (answer and answer.value) == letter


@pytest.mark.parametrize(
    "question",
    [
        "求角的度数．A．20°；B．30°；C．40°；D．50°",
        r"Find x. $(\mathrm{A})\ 20^\circ \qquad (\mathrm{B})\ 30^\circ \qquad (\mathrm{C})\ 40^\circ$",
        "Find x. <image1>\nOptions: A) 20° B) 30° C) 40° D) 50° E) 60° F) 70°",
    ],
)
def test_layouts_of_inlined_options(grader, question):
    problem = Problem("p", question, kind="choice")
    for text in ("C", "40°", "(C) 40°"):
        answer = grader.read(text, problem)
        assert answer is not None and answer.value == "C"
