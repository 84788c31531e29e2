import pytest

from mmcorl.graders import Grader
from mmcorl.problems import Problem

OPEN = Problem("p", "What is it?")


@pytest.fixture(scope="module")
def grader():
    with Grader() as grader:
        yield grader


def verdict(grader, a, b):
    first, second = grader.read(a, OPEN), grader.read(b, OPEN)
    there, back = grader.correct(first, second, OPEN), grader.correct(second, first, OPEN)
    assert there == back
    return there


SAME = """
0.375 | \\frac{3}{8}
\\frac12 | .5
-0 | 0
+42 | 42
1,000,000 | 10^6
1{,}000 | 1000
11,\\! 222,\\! 333 | 11222333
10 000 | 10000
1.234.567 | 1234567
(100,200) | (100, 200)
52 | 52_8
12.5\\% | 0.125
50% | 50
15 \\mathrm{~cm} | 15
15cm^2 | 15 cm²
648\\mbox{ inches}^2 | 648
180 minutes | 3 hours
72 km/h | 20 m/s
12平方厘米 | 12 cm^2
3万 | 30000
$1,234.50 | 1234.5
60^{\\circ} | 60
90° | \\frac{\\pi}{2}
17 \\text{ apples} | 17
14^{\\text{th}} | 14
1.5 million | 1500000
twenty-one | 21
2\\frac14 | \\frac94
1 3/8 inches | 1.375
½ | 0.5
2½ | 2.5
0.1\\overline{6} | \\frac16
6.02E23 | 6.02 \\times 10^{23}
x = 5 | 5
5 = x | x=5
2 \\cdot 7 + 3 = 17 | 17
y=2x+1 | 1+2x
2x+2y=6 | x+y=3
x=3, y=4 | (3,4)
a=1 \\text{ or } a=-2 | -2, 1
\\pm 3 | 3,-3
2\\pm\\sqrt{7} | 2+\\sqrt7, 2-\\sqrt7
x>3 | 3<x
2x \\ge 6 | x \\geqslant 3
[1,4] | 1 \\le x \\le 4
3<x<7 | x>3 \\text{ and } x<7
x<2 \\text{ or } x>3 | (3,\\infty)\\cup(-\\infty,2)
\\{x \\mid x > 3\\} | (3,\\infty)
\\mathbb{R} | (-\\infty,\\infty)
\\{1,3,2\\} | \\{1,2,3\\}
\\{\\} | \\emptyset
1, 2 | \\{2, 1\\}
(1,2,3) | 1,2,3
\\begin{bmatrix}1\\\\0.5\\end{bmatrix} | \\begin{pmatrix}1\\\\1/2\\end{pmatrix}
2：3 | 2:3
4\\sqrt{2}\\pi | π√32
\\frac{x^2-1}{x-1} | x+1
\\log 3+\\log 2 | \\log 6
\\sin 30^\\circ | \\frac12
e^{i\\pi} | -1
\\sqrt{x^2} | |x|
0.1+0.2 | 0.3
4.795831523312719 | \\sqrt{23}
\\angle CBA | \\angle ABC
\\text{East} | east
\\text{Jan},\\text{Feb} | Jan, Feb
YES | yes.
\\frac{1}{2 | \\frac12
\\sqrt3 | \\sqrt{3}
\\\\frac{1}{2} | 1/2
{{5}} | 5
5) | 5
42。 | 42
８ | 8
2^{10^{10}} | 2^{10^{10}}
\\int_0^1 2x\\,dx | 1
\\sum_{k=1}^{3} k | 6
2:3 | 4:6
2:3 | \\frac23
4 | 8:2
1:2:3 | 3:6:9
2 \\text{ to } 3 | 2:3
3:30 pm | 3:30
15:30 | 3:30 pm
3 pm | 15:00
12:15 am | 0:15
12:15 pm | 12:15
5 = x | 5
x = 5 | 5 = x
(1, 2) | \\begin{pmatrix}1\\\\2\\end{pmatrix}
\\begin{vmatrix}1&2\\\\3&4\\end{vmatrix} | -2
\\begin{vmatrix}2&0&1\\\\1&1&0\\\\0&3&1\\end{vmatrix} | 5
2\\begin{pmatrix}1&0\\\\0&1\\end{pmatrix} | \\begin{pmatrix}2&0\\\\0&2\\end{pmatrix}
0.333333333333333 | 1/3
0.841470984807897 | \\sin 1
{1, 1/2} | {0.5, 1}
\\sin 1, 2 | 2, \\sin 1
3 and 1/2 | 3.5
<1, 2, 3> | (1,2,3)
\\pi r^2 h | h\\pi r^2
100 cents | 1 dollar
3/4 of the pie | 0.75
\\text{lcm}(4,6) | 12
\\frac{d}{dx}x^2 | 2x
|x|>1 | (-\\infty,-1)\\cup(1,\\infty)
x>1, x<3 | 1<x<3
2^{1/2}\\cdot 3 | \\sqrt{18}
x^2-y=0 | y=x^2
2^{x+1} | 2\\cdot2^x
"""
DIFFERENT = """
0.333333 | 1/3
50 | 0.5
22/7 | \\pi
5 m | 5 cm
3 days | 3 years
3t | 3
12,34 | 1234
1,000 | 1
(100,200) | 100200
[2,5] | [2,5)
3 | \\{1,2,3\\}
((1,2),3) | (1,(2,3))
[0,\\infty) | (0,\\infty)
k=-2 | 2
3 | \\pm 3
x\\ge 3 | x>3
y>2 | x>2
x=5 | y=5
\\frac{1}{2005!} | \\frac{1}{2007!}
x^{2}y+1 | x^2y-1
11:30 | 1:30
1,2,\\ldots,n | 1,3,5,\\ldots,2n-1
1, 2 | 1, 2, 2
(1,2) | (2,1)
\\frac{5}{0} | \\frac{3}{0}
0/0 | 0
9^9^9 | 5
1e400 | 1e401
99999999999999999999 | 99999999999999999998
\\binom{1000000}{500000} | 2
((9!)!)! | \\frac12
2.0000001 | 2
2.236 | \\sqrt5
True | 1
N | 5
E | 2.718281828459045
AB | A
A(2,4) | A(2,3)
eval("2+3") | 5
lambda: 5 | 5
5; import os | 5
5 if True else 0 | 5
<script>5</script> | 5
info | \\infty
x | \\sqrt{x^2}
\\int_0^1 2x\\,dx | 2
2:3 | 3:2
2:3 | 2:3:1
2:3 | 3/2
1:2:3 | 1:2:4
1:2:3 | 1/2
2:3 | (2,3)
3:30 pm | 3:30 am
3:30 pm | 4:30 pm
3:30 pm | 3:31
14:30 | 3:30 pm
27:30 | 3:30 pm
3:30 pm | 15
5 = x | 6
5 = x | 5 = y
x = y | x
\\begin{pmatrix}1\\\\2\\end{pmatrix} | (1,3)
\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix} | \\begin{pmatrix}1&2\\\\3&5\\end{pmatrix}
\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix} | \\begin{pmatrix}0&2\\\\3&4\\end{pmatrix}
\\begin{pmatrix}1&2\\end{pmatrix} | \\begin{pmatrix}1\\\\2\\end{pmatrix}
\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix} | 4
0.33333333333333 | 1/3
0.333333333333343 | 1/3
0.841470984807999 | \\sin 1
\\sin 1 | \\sin 2
{1, 2} | {1, 3}
{1, 2} | (1, 2)
1, 2 | 1, 3
\\sin 1, 2 | \\sin 2, 2
x^2-y=0 | y=2x^2
2x=y | y=3x
5 cents | 5 dollars
3, 1/2 | 3.5
x<1 \\text{ or } x>2 | x<1 \\text{ or } x>3
x<1 \\text{ or } x>2 | x<1
(1,\\infty) | (2,\\infty)
(1,\\infty) | 1
x>2 | y>2
\\ln x^2 | 2\\ln x
"""


@pytest.mark.parametrize("line", SAME.strip().splitlines())
def test_same(grader, line):
    a, _, b = line.partition(" | ")
    assert verdict(grader, a, b)


@pytest.mark.parametrize("line", DIFFERENT.strip().splitlines())
def test_different(grader, line):
    a, _, b = line.partition(" | ")
    assert not verdict(grader, a, b)


def test_numbers_longer_than_python_converts(grader):
    assert verdict(grader, "1" * 5000, "1" * 5000)
    assert not verdict(grader, "1" * 5000, "1" * 4999 + "2")
