"""Parts of the real line and how they are written."""

import pytest

from mmcorl.graders import math
from mmcorl.graders.values import Raw, show


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("x>3", "x∈(3, ∞)"),
        ("3<x", "x∈(3, ∞)"),
        (r"x \ge 3", "x∈[3, ∞)"),
        ("x<-1/2", "x∈(-∞, -1/2)"),
        ("-2x<6", "x∈(-3, ∞)"),
        (r"-2x \le 6", "x∈[-3, ∞)"),
        ("5-x>2", "x∈(-∞, 3)"),
        ("2x+1<7", "x∈(-∞, 3)"),
        ("2x<0", "x∈(-∞, 0)"),
        ("1>x>-1", "x∈(-1, 1)"),
        (r"1\le x<4", "x∈[1, 4)"),
        ("x<1 or x>4", "x∈(-∞, 1)∪(4, ∞)"),
        ("x>4 or x<1", "x∈(-∞, 1)∪(4, ∞)"),
        ("x<3 or x<5", "x∈(-∞, 5)"),
        ("x>3 or x>5", "x∈(3, ∞)"),
        (r"(1,2)\cup[2,3)", "(1, 3)"),
        (r"(1,2]\cup(2,3)", "(1, 3)"),
        (r"(1,2)\cup(2,3)", "(1, 2)∪(2, 3)"),
        (r"[4,5]\cup[1,2]", "[1, 2]∪[4, 5]"),
        (r"[1,5]\cup[2,3]", "[1, 5]"),
        (r"(1,3)\cup(2,3]", "(1, 3]"),
        (r"(-\infty,1]\cup[1,\infty)", "(-∞, ∞)"),
        ("x>1 and x<5", "x∈(1, 5)"),
        (r"x\ge1 and x>1", "x∈(1, ∞)"),
        (r"x\le1 and x<1", "x∈(-∞, 1)"),
        ("x>1 and x>3", "x∈(3, ∞)"),
        ("x>1, x<5", "x∈(1, 5)"),
        (r"x\le 5, x\ge 5", "x∈[5, 5]"),
        ("x<1, x>5", "x∈(-∞, 1)∪(5, ∞)"),
        ("|x|<3", "x∈(-3, 3)"),
        ("3>|x|", "x∈(-3, 3)"),
        (r"|x-2|\ge5", "x∈(-∞, -3]∪[7, ∞)"),
        (r"|3-2x|\le1", "x∈[1, 2]"),
        ("x^2<9", "x∈(-3, 3)"),
        (r"x^2-5x+6\ge0", "x∈(-∞, 2]∪[3, ∞)"),
        ("6-x-x^2>0", "x∈(-3, 2)"),
        ("4x^2<1", "x∈(-1/2, 1/2)"),
        ("x^2<2", "x∈(-sqrt(2), sqrt(2))"),
        (r"x\ne4", "x∈(-∞, 4)∪(4, ∞)"),
        (r"\mathbb{R}\setminus\{2,1\}", "(-∞, 1)∪(1, 2)∪(2, ∞)"),
        (r"x\in(1,5]", "x∈(1, 5]"),
        (r"\{x : x>2\}", "(2, ∞)"),
        ("]2, 5]", "(2, 5]"),
    ],
)
def test_what_is_read(text, shown):
    assert show(math.read(text)) == shown
    assert show(math.read(shown)) == shown


@pytest.mark.parametrize(
    "text",
    ["x>3 and x<1", "|x|<-1", "x^2<-1", "x^2<0", "x+y<3", "x^3<8", "x>1 or y>2", r"\sin x<1", "|x|<y"],
)
def test_what_is_left_to_others(text):
    assert isinstance(math.read(text), Raw)


def test_inequalities_of_different_variables_are_a_list():
    assert show(math.read("x>1, y<3")) == "x∈(1, ∞), y∈(-∞, 3)"
