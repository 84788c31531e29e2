from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmcorl.graders import exact
from mmcorl.graders.latex import clean, tokens
from mmcorl.graders.parser import parse


def form(text):
    return exact.normal(parse(tokens(clean(text))))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("3/6", "1/2"),
        ("0.375", "3/8"),
        (r"\frac12", "1/2"),
        (r"\frac{-3}{8}", "-3/8"),
        ("2\\frac14", "9/4"),
        ("1 1/4", "5/4"),
        (r"2 \cdot \frac14", "1/2"),
        ("2^{10}", "1024"),
        ("8^{1/3}", "2"),
        (r"\sqrt{12}", "2*sqrt(3)"),
        (r"\frac{1}{\sqrt{2}}", "(1/2)*sqrt(2)"),
        (r"\frac{1}{1+\sqrt2}", "-1+sqrt(2)"),
        (r"\frac{1}{\sqrt2+\sqrt3+1}", "1/2+(1/4)*sqrt(2)-(1/4)*sqrt(6)"),
        (r"\sqrt{-4}", "2*i"),
        ("(1+i)^2", "2*i"),
        (r"\frac{1}{3+4i}", "3/25-(4/25)*i"),
        ("(x+1)^2", "x^2+2*x+1"),
        ("a/b", "a*b^(-1)"),
        ("5!", "120"),
        (r"\binom{5}{2}", "10"),
        ("C(5,2)", "10"),
        (r"\log_2 8", "3"),
        (r"\ln(e^3)", "3"),
        (r"\sqrt[3]{27/8}", "3/2"),
        ("2^3^2", "512"),
        ("-2^2", "-4"),
        ("6/2*3", "9"),
    ],
)
def test_normal_forms(text, shown):
    assert exact.show(form(text)) == shown


@pytest.mark.parametrize(
    "text",
    [
        "1/0",
        "0/0",
        "0^0",
        "9^9^9",
        "2^{10^{10}}",
        "10^{1000000}",
        r"\sin 1",
        "2000000!",
        "x^{1000}y^x",
        "((9!)!)!",
    ],
)
def test_what_has_no_form(text):
    with pytest.raises(exact.NoForm):
        form(text)


numbers = st.fractions(max_denominator=50).filter(lambda f: abs(f) < 1000)
terms = st.tuples(
    numbers, st.sampled_from(["1", r"\sqrt{2}", r"\sqrt{3}", r"\sqrt{6}", "x", "x^2", "i", r"\pi"])
)


@given(st.lists(terms, min_size=1, max_size=4))
def test_forms_are_written_so_that_they_read_back(parts):
    text = "+".join(f"({number})*{factor}" for number, factor in parts)
    assert form(exact.show(form(text))) == form(text)


@given(
    st.lists(
        st.tuples(numbers, st.sampled_from(["1", r"\sqrt{2}", r"\sqrt{3}", "i"])), min_size=1, max_size=3
    )
)
def test_inverse(parts):
    value = form("+".join(f"({number})*{factor}" for number, factor in parts))
    if value:
        assert exact.multiply(value, exact.inverse(value)) == {(1, ()): Fraction(1)}


@given(numbers, numbers)
def test_rational_arithmetic_is_that_of_fractions(a, b):
    assert exact.rational(form(f"({a})*({b})-({a})")) == a * b - a
