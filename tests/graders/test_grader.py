import subprocess
import sys

import pytest

from mmcorl.graders import Answer, Extraction, Grader
from mmcorl.problems import Completion, Problem

OPEN = Problem("p", "What is it?")
TEXT = Problem("p", "Who?", kind="text")
CODE = Problem("p", "Write it.", kind="code")


@pytest.fixture(scope="module")
def grader():
    with Grader() as grader:
        yield grader


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"<think>\boxed{3}</think> It is \boxed{\frac{6}{8}}.", "3/4"),
        ("<think>3+5</think><answer>8</answer>", "8"),
        (r"<answer>\boxed{8}</answer>", "8"),
        (r"\boxed{\text{Answer: } 8}", "8"),
        ("I will put it in \\boxed . Final answer: 8", "8"),
        ("42", "42"),
        (r"x = 3 so \boxed{x^2 = 9}", "x^2=9"),
        ("No closed form was found.", None),
        (r"\boxed{}", None),
        (r"\boxed{None}", None),
        (r"\boxed{ }", None),
        (r"\boxed{N/A}", None),
        (r"\boxed{5} then \boxed{7", None),
        ("<think>so it is \\boxed{7}", None),
        ("We try 3 cases and then 17", None),
        ("", None),
    ],
)
def test_answer(grader, text, value):
    answer = grader.answer(text, OPEN)
    assert (answer and answer.value) == value


def test_of_a_completion_that_ran_out_of_tokens_only_what_was_closed_counts(grader):
    texts = ("<answer>12", "The answer is 12", "<answer>12</answer> as", r"\boxed{12} as")
    asked = [(Completion(text, (), (), finished), OPEN) for text in texts for finished in (True, False)]
    twelve = Answer("math", "12")
    assert grader.answers(asked) == [twelve, None, twelve, None, twelve, twelve, twelve, twelve]


def test_last_number_is_a_setting():
    with Grader(Extraction(last_number=True)) as grader:
        assert grader.answer("We try 3 cases and then 17", OPEN) == Answer("math", "17")


def test_text_answers_are_folded(grader):
    assert grader.read("The  Eiffel-Tower!", TEXT) == grader.read("eiffel tower", TEXT)
    assert grader.read("Ｃafé", TEXT) == grader.read("the café.", TEXT)
    assert grader.read("...", TEXT) is None


def test_code_answers_are_the_last_block(grader):
    text = "First:\n```python\na = 1\n```\nBetter:\n```python\nb = 2\n```\ndone"
    assert grader.answer(text, CODE) == Answer("code", "b = 2")
    assert grader.answer("no code", CODE) is None
    assert grader.read("b = 2\n", CODE) == Answer("code", "b = 2")


def test_none_is_never_correct(grader):
    five = Answer("math", "5")
    assert grader.correct(five, five, OPEN)
    assert not grader.correct(None, five, OPEN)
    assert not grader.correct(five, None, OPEN)
    assert not grader.correct(None, None, OPEN)


def test_classes(grader):
    texts = ["7", r"\frac14", None, "0.25", "5", "1/4", "x=5", "None"]
    answers = [None if t is None else grader.read(t, OPEN) for t in texts]
    assert grader.classes(answers) == [[0], [1, 3, 5], [4, 6]]
    assert grader.classes([]) == []
    assert grader.classes([None, None]) == []


def test_a_bare_number_beside_two_units_joins_one_of_them_whatever_the_order(grader):
    answers = [grader.read(t, OPEN) for t in ("5", "5 m", "5 cm")]
    groups = {frozenset(frozenset(answers[i] for i in c) for c in grader.classes(answers))}
    groups.add(frozenset(frozenset(answers[::-1][i] for i in c) for c in grader.classes(answers[::-1])))
    assert len(groups) == 1
    assert len(groups.pop()) == 2


def test_a_timeout_is_counted_and_not_the_same():
    with Grader(timeout_s=0.5, workers=1) as grader:
        a, b = (Answer("math", rf"\int_0^{n} ((9!)!)! dx") for n in (1, 2))
        assert not grader.same(a, b)
        assert grader.timeouts == 1
        assert not grader.same(b, a)
        assert grader.timeouts == 1  # remembered


def test_graders_need_neither_torch_nor_transformers():
    code = (
        "import sys, mmcorl.graders, mmcorl.graders.worker;"
        "assert not {'torch', 'transformers', 'sympy'} & set(sys.modules), 'heavy imports'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
