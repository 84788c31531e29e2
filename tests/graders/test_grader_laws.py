"""Laws that hold for every text and every answer, checked on random ones."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmcorl.graders import Grader
from mmcorl.problems import Problem

OPEN = Problem("p", "What is it?")
CHOICE = Problem("c", "Which?", choices=("5 cm", "5 m", r"\frac{1}{2}", "None of the above"), kind="choice")
PROBLEMS = (OPEN, CHOICE, Problem("t", "Who?", kind="text"), Problem("s", "Write.", kind="code"))

pieces = st.sampled_from(
    [
        r"\frac{",
        r"}",
        r"{",
        r"(",
        r")",
        r"[",
        r"]",
        r"^",
        r"_",
        r"1",
        r"2",
        r"0.5",
        r"x",
        r"\sqrt",
        r"\boxed{",
        r"<answer>",
        r"</answer>",
        r",",
        r"%",
        r"°",
        r"\text{",
        r"cm",
        r"m",
        r"and",
        r"or",
        r"\pm",
        r"=",
        r"<",
        r">=",
        r"∪",
        r"∈",
        r"\infty",
        r"!",
        r"999999999",
        r"e",
        r"i",
        r"\pi",
        r"\log",
        r"\sin",
        r"|",
        r"\{",
        r"\}",
        r"&",
        r"-",
        r"+",
        r"*",
        r"/",
        r":",
        r"...",
        r"½",
        r"²",
        r"√",
        r"A",
        r"B)",
        r"(C)",
        r"the",
        r"answer",
        r"is",
        r"E99999",
        r"'",
        r'"',
        r"**",
        r"\overline{",
        r"1,000",
        r"{0}",
        r"%s",
        r"None",
        r"\angle",
        r"twenty",
        r"<think>",
        r"</think>",
        r"```",
        r"$",
        r"\\",
        r"答案",
        r"3万",
    ]
)
messy = st.one_of(
    st.text(max_size=40),
    st.lists(pieces, max_size=12).map("".join),
    st.lists(pieces, max_size=12).map(" ".join),
)
fractions = st.fractions(max_denominator=99).filter(lambda f: abs(f) < 10**6).map(str)
readable = st.one_of(
    fractions,
    st.integers(-(10**9), 10**9).map(str),
    st.decimals(-1000, 1000, places=3).map(str),
    st.sampled_from(
        [r"\frac{1}{2}", "0.5", "50%", "x=5", "5 cm", "5 m", "5", r"2\sqrt{3}", r"\sqrt{12}", "(1,2)", "1,2", "2,1", "{1,2}",
         "[1,2)", "x>3", r"(3,\infty)", "x^2+1", r"\pm 3", "3,-3", "East", "1:2", "90°", r"\pi/2", "2^{10^{10}}", r"\sin x"]
    ),
)  # fmt: skip
dresses = st.sampled_from(
    ["{}", " {} ", "${}$", "\\({}\\)", "**{}**", "\\boxed{{{}}}", "$\\boxed{{{}}}$", "<answer>{}</answer>", "The answer is {}",
     "<answer> \\boxed{{{}}} </answer>", "\\[{}\\]", "{}.", "```\n{}\n```", "**Answer:** {}", "答案：{}", "<answer>\n**{}**\n</answer>", "<b>{}</b>", "{}</s>"]
)  # fmt: skip


@pytest.fixture(scope="module")
def grader():
    with Grader(timeout_s=5) as grader:
        yield grader


@given(messy)
@settings(max_examples=300, deadline=None)
def test_reading_is_total_and_same_is_reflexive(grader, text):
    for problem in PROBLEMS:
        for answer in (grader.answer(text, problem), grader.read(text, problem)):
            assert answer is None or (answer.value.strip() and grader.same(answer, answer))


@given(readable)
@settings(deadline=None)
def test_reading_a_canonical_value_gives_it_again(grader, text):
    answer = grader.read(text, OPEN)
    assert answer is not None
    assert grader.read(answer.value, OPEN) == answer


@given(readable, readable)
@settings(max_examples=300, deadline=None)
def test_same_is_symmetric(grader, a, b):
    first, second = grader.read(a, OPEN), grader.read(b, OPEN)
    assert first is not None and second is not None
    assert grader.same(first, second) == grader.same(second, first)


def spellings(value):
    """A few ways of writing a fraction."""
    top, bottom = value.numerator, value.denominator
    ways = [
        f"{top}/{bottom}",
        rf"\frac{{{top}}}{{{bottom}}}",
        f"x = {top}/{bottom}",
        f"{2 * top}/{2 * bottom}",
    ]
    if 10**6 % bottom == 0:
        ways.append(f"{float(value):.6f}")
    if bottom == 1 and abs(top) >= 1000:
        ways.append(f"{top:,}")
    return st.sampled_from(ways)


few = st.sampled_from([Fraction(n, d) for n in (-5, 1, 3, 1500) for d in (1, 2, 8)])
bare = st.one_of(
    few.flatmap(spellings),
    st.sampled_from(
        [
            r"\sqrt{8}",
            r"2\sqrt{2}",
            "x^2-1",
            "(x-1)(x+1)",
            "(1,2)",
            "[1,2)",
            r"1\le x<2",
            "1,2",
            "2,1",
            r"\{1,2\}",
            "5",
            "3:30",
        ]
    ),
)
marked = st.sampled_from(
    [
        "500 cm",
        "5 m",
        "0.005 km",
        "5 s",
        "5000 ms",
        "5%",
        "5 percent",
        "180°",
        "180 degrees",
        "5 N",
        "5 kg m/s^2",
    ]
)


@given(st.one_of(st.tuples(bare, bare, bare), st.tuples(marked, marked, marked)))
@settings(max_examples=300, deadline=None)
def test_same_is_transitive_among_bare_values_and_among_values_with_units(grader, texts):
    a, b, c = (grader.read(t, OPEN) for t in texts)
    assert a is not None and b is not None and c is not None
    assert not (grader.same(a, b) and grader.same(b, c)) or grader.same(a, c)


@given(
    few.flatmap(
        lambda v: st.tuples(*[st.sampled_from([f"{v} m", f"{v * 100} cm", f"{v / 1000} km", str(v)])] * 3)
    )
)
@settings(deadline=None)
def test_where_the_question_says_its_unit_lengths_and_bare_numbers_are_one_answer(grader, texts):
    problem = Problem("p", "How many meters long is it?")
    assert len({grader.read(t, problem) for t in texts}) == 1


@given(readable, dresses)
@settings(deadline=None)
def test_a_dress_changes_nothing(grader, text, dress):
    assert grader.read(dress.format(text), OPEN) == grader.read(text, OPEN)


@given(st.lists(st.one_of(st.none(), readable), max_size=10), st.randoms())
@settings(deadline=None)
def test_classes_partition_the_answers_and_do_not_depend_on_order(grader, texts, random):
    answers = [None if t is None else grader.read(t, OPEN) for t in texts]
    classes = grader.classes(answers)
    assert sorted(i for c in classes for i in c) == [i for i, a in enumerate(answers) if a is not None]
    assert [c[0] for c in classes] == sorted(c[0] for c in classes)
    for members in classes:
        for i in members:
            assert grader.correct(answers[i], answers[members[0]], OPEN)

    order = list(range(len(answers)))
    random.shuffle(order)
    shuffled = grader.classes([answers[i] for i in order])
    assert {frozenset(order[i] for i in c) for c in shuffled} == {frozenset(c) for c in classes}


@pytest.mark.parametrize(
    "piece",
    [
        "(",
        "{",
        r"\boxed{",
        "9",
        "<answer>",
        "the answer is ",
        r"\frac{",
        "1,000",
        "x^",
        "```",
        r"\boxed{1},",
        " ",
    ],
)
def test_a_megabyte_is_read(grader, piece):
    text = piece * (10**6 // len(piece))
    for problem in PROBLEMS[:3]:
        grader.answer(text, problem)
        assert grader.read(text, problem) is None or piece == "<answer>"
