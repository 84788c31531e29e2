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
        (r"\gcd(12, 18)", "6"),
        (r"\gcd(12, 18, 27)", "3"),
        (r"\operatorname{lcm}(4, 6)", "12"),
        (r"\min(3, -1, 2)", "-1"),
        (r"\max(3, -1, 1/2)", "3"),
        ("|-3/4|", "3/4"),
        ("2^{-3}", "1/8"),
        (r"(1/2)^{-2}", "4"),
        ("x^{-2}", "x^(-2)"),
        (r"(1+\sqrt2)^{-2}", "3-2*sqrt(2)"),
        (r"4^{-1/2}", "1/2"),
        (r"8^{2/3}", "4"),
        (r"2^2 \frac12", "2"),
        (r"2^{3/2}", "2*sqrt(2)"),
        (r"2^{-1/2}", "(1/2)*sqrt(2)"),
        (r"\log_2 \frac18", "-3"),
        (r"\log_{10} 0.01", "-2"),
        (r"\log_{3} 1", "0"),
        (r"\lg 1000", "3"),
        (r"\ln e", "1"),
        (r"\ln 1", "0"),
        (r"\ln \frac{1}{e^2}", "-2"),
        ("i^2", "-1"),
        ("i^3", "-i"),
        ("i^4", "1"),
        ("i^5", "i"),
        ("1/i", "-i"),
        (r"\frac{2}{1-i}", "1+i"),
        (r"\sqrt{-8}", "2*sqrt(2)*i"),
        ("(2i)^3", "-8*i"),
        (r"\sqrt{x}", "x^(1/2)"),
        (r"\sqrt{e^4}", "e^2"),
        (r"\sqrt{0}", "0"),
        (r"\frac{1}{\sqrt{1009}+1}", "-1/1008+(1/1008)*sqrt(1009)"),
        (r"\sqrt{6}\cdot\sqrt{10}", "2*sqrt(15)"),
        (r"\sqrt{1/3}", "(1/3)*sqrt(3)"),
        (r"\sqrt{10^{40}}", "1" + "0" * 20),
        (r"\sqrt{3063}", "sqrt(3063)"),
        (r"\sqrt{2036162}", "1009*sqrt(2)"),
        ("x_1+x_{12}", "x_{1}+x_{12}"),
        ("f'+f''", "f'+f''"),
        ("x_1'", "x_{1}'"),
        (r"\alpha_2\beta", r"\alpha_{2}*\beta"),
        ("y x", "x*y"),
        ("3x^2-x+1-x^3", "-x^3+3*x^2-x+1"),
        ("x-x", "0"),
        ("0*x", "0"),
        ("1200!/1199!", "1200"),
        ("(1+x)^{40}-(1+x)^{40}", "0"),
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
        "1201!",
        "(1+x)^{41}",
        "(-3)!",
        r"\binom{5}{-1}",
        r"\gcd(1/2, 3)",
        r"\log_1 5",
        r"\log_2 0",
        r"\log_2 3",
        r"\log_{1/2} 8",
        r"\ln 2",
        r"\ln(2e)",
        r"\sqrt{x^2}",
        r"\sqrt{2x}",
        r"\sqrt{xy}",
        r"\sqrt{i}",
        r"\sqrt{1+\sqrt2}",
        r"\sqrt{\sqrt3}",
        r"\sqrt[3]{2}",
        "0^{-1}",
        "0^{-1/2}",
        "2^{x}",
        "1/(x+1)",
        "1/(x-x)",
        "2^{20000}",
        r"\sqrt{2^{1001}+1}",
        "|x|",
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
