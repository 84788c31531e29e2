import pytest

from mmcorl.graders.extract import Extraction, last_box, last_tag, statements, undress, without_thinking


def first(text, **settings):
    return next((s.text.strip() for s in statements(text, Extraction(**settings))), None)


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (r"so \boxed{7}", "7"),
        (r"first \boxed{5}, then \boxed{7}", "7"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed {7}", "7"),
        (r"\boxed{\boxed{8}}", r"\boxed{8}"),
        ("hence boxed{8}", "8"),
        (r"\fbox{8}", "8"),
        (r"$\boxed 8$", "8"),
        (r"\boxed{\{1,2\}}", r"\{1,2\}"),
        (r"roots $\boxed{3}$ and $\boxed{5}$", "3, 5"),
        (r"\boxed{3}, \boxed{5}", "3, 5"),
        (r"\boxed{8}\boxed{9}", "9"),
        (r"a = -\boxed{256}", "-256"),
        (r"5-\boxed{2}", "2"),
        (r"\boxed{5} and so \boxed{7", ""),
        (r"I shall \boxed . it", None),
        ("nothing here", None),
    ],
)
def test_last_box(text, content):
    assert last_box(text) == content


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("<answer>8</answer>", "8"),
        ("<ANSWER> 8 </Answer>", "8"),
        ("<answer>7</answer> no, <answer>8</answer>", "8"),
        ("<answer>8<answer>", "8"),
        ("<answer>8", "8"),
        ("<answer></answer>", None),
        ("8", None),
    ],
)
def test_last_tag(text, content):
    assert last_tag(text) == content


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("<think>5</think> 7", " 7"),
        ("5</think> 7", " 7"),
        ("<think>5", ""),
        ("<think>a</think>b<think>c</think>d", "d"),
        ("7", "7"),
    ],
)
def test_thinking_is_ignored(text, rest):
    assert without_thinking(text) == rest


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("The answer is 8.", "8"),
        ("The final answer is $8$. I hope it is correct.", "$8$"),
        ("The answer is 3.5 because 7/2 = 3.5.", "3.5"),
        ("The answer is B. Note that A is a distractor.", "B"),
        ("Answer: 8\nThank you", "8"),
        ("work\n#### 8", "8"),
        ("综上，答案：8。", "8"),
        ("答案是 8", "8"),
        ("故选：C.", "C"),
        ('{"reason": "x", "answer": "8"}', "8"),
        ("The answer is 5. Wait. The answer is 6.", "6"),
        ("The correct option is (B).", "(B)"),
        ("The answer to 3+5 is: 8", "8"),
    ],
)
def test_phrases(text, said):
    assert first(text, bare=False) == said


def test_box_inside_a_tag_wins_over_the_prose_around_it():
    assert first(r"<answer>The area is \boxed{5}.</answer>") == "5"


def test_a_box_that_never_closes_ends_the_search():
    assert first(r"The answer is 5. \boxed{7") is None


def test_every_way_can_be_switched_off():
    assert first("<answer>5</answer>", answer_tag=False, bare=False) is None
    assert first(r"\boxed{5}", boxed=False, bare=False) is None
    assert first("The answer is 5", phrase=False, bare=False) is None
    assert first("5", bare=False) is None


def test_the_last_number_counts_only_when_asked_for():
    text = "We try 3 cases and then 17\nand then"
    assert first(text, bare=False) is None
    assert first(text, bare=False, last_number=True) == "17"
    assert first("That makes $70,000 in all.", bare=False, last_number=True) == "$70,000"


@pytest.mark.parametrize(
    "dressed",
    ["5", " 5 ", "$5$", "$$5$$", r"\(5\)", r"\[5\]", "**5**", "`5`", '"5"', r"\boxed{5}", "<answer> 5 </answer>",
     "```\n5\n```", "The answer is 5", "Answer: 5", r"$\boxed{5}$", "答案：5"],
)  # fmt: skip
def test_undress(dressed):
    assert undress(dressed) == "5"
