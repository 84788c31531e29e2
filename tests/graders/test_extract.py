import pytest

from mmcorl.graders.extract import (
    Extraction,
    Statement,
    code_block,
    last_box,
    last_tag,
    statements,
    undress,
    without_thinking,
)


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
        (r"\framebox{8}", "8"),
        (r"{\boxed{8}}", "8"),
        (r"unboxed{8}", None),
        (r"\boxed{-8}", "-8"),
        (r"$x = - \boxed{8}$", "-8"),
        (r"\boxed{1}, then \boxed{2}, \boxed{3}", "2, 3"),
        (r"x = \boxed{1}, y = \boxed{2}", "1, 2"),
        (r"\boxed{a} ( \boxed{b}", "b"),
        (r"} \boxed{8} {", "8"),
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
        ("<answer>**C**", "**C**"),
        ("<answer>(1, 2]", "(1, 2]"),
        (r"<answer>\frac{1}{", ""),
        ("<answer>3 +", ""),
        ("<answer>(1, 2", ""),
        ("<answer>(1, 2</answer>", "(1, 2"),
        ("so it is\n12</answer>", "12"),
        ("12</answer><answer>13</answer>", "13"),
        ("9" * 400 + "</answer>", "9" * 300),
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
        ("Answers: 1, 2", "1, 2"),
        ("ANSWER: 8", "8"),
        ("**Answer:** 8", "8"),
        ("the answer is, therefore, 8.", "8"),
        ("The answer is 2/5, i.e. 0.4.", "2/5"),
        ("## Final Answer\n8", "8"),
        ("[Answer] 8", "8"),
        ("【答案】8", "8"),
        ("因此选 B", "B"),
        ("答：8", "8"),
        ('{"answer": 8, "sure": 5}', "8"),
        ('{"answer": "5"} or rather {"answer": "6"}', "6"),
        ("{'answer': '8'}", "8"),
        ('{"answer": "\\\\frac12"}', "\\frac12"),
        ("It is (B) a tower, and (B) stays.", "(B) a tower, and (B) stays"),
        ("I choose option (c) now", "(c) now"),
        ("It is (A) a tower or is (B) a house", None),
        ("A choice: none", "none"),
        ("Choices:\n(A) 5\n(B) 6", None),
        ("multianswer is 5", None),
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


def found(text, how, **settings):
    return [s.text for s in statements(text, Extraction(**settings)) if s.how == how]


def test_a_phrase_inside_a_tag_is_tried_after_the_whole_tag():
    assert list(statements("<answer>The answer is 5</answer>", Extraction(bare=False)))[:2] == [
        Statement("The answer is 5", "tag"),
        Statement("5", "phrase"),
    ]


def test_a_tag_that_breaks_off_ends_the_search():
    assert first(r"The answer is 5. <answer>\frac{1}{") is None


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("<answer>12", None),
        ("<answer>12</answer> and", "12"),
        ("<answer>12</answer> no, <answer>13", None),
        ("<answer>12</answer> so <answer>", "12"),
        (r"<answer>\boxed{12} or", "12"),
        (r"It is \boxed{12} so", "12"),
        (r"It is \boxed{12} so \boxed{1", None),
        ("The answer is 12", None),
        ("The answer is 3.", None),  # and then 14
        ("The answer is 12. Let me", "12"),
        ("The answer is 12\nLet me", "12"),
        ('{"answer": "12"}', "12"),
        ('{"answer": "12', None),
        ("12", None),
        ("B\nbecause", None),
    ],
)
def test_what_was_not_closed_is_no_answer_of_a_text_that_just_stopped(text, content):
    assert first(text, unclosed=False) == content


def test_the_last_and_first_lines_are_candidates_but_not_those_of_a_listing():
    assert found("so we know\nB", "last_line") == ["B"]
    assert found("B\nbecause it is longer", "first_line") == ["B"]
    assert found("Yes, they are.\nIndeed", "first_line") == ["Yes, they are."]
    assert found("We begin with a long sentence about things\nB", "first_line") == []
    assert found("We begin with a long sentence about things\nB", "first_line", last_number=True) != []
    assert found("(A) 5\n(B) 6", "last_line") == found("(A) 5\n(B) 6", "first_line") == []
    assert found("a. 5\nb. 6", "last_line") == []
    assert found("x\n(A) 5\n(B) 6", "last_line") == []
    assert found("(A) 5\n(C) 6", "last_line") == ["(C) 6"]
    assert found("(A) 5\n(C) 6", "first_line") == ["(A) 5"]
    assert found("5", "bare") == ["5"]
    assert found("```\n5\n6\n```", "bare") == ["```\n5\n6\n```"]
    assert found("5" * 300, "bare") == [] and found("5" * 299, "bare") == ["5" * 299]


def test_what_is_counted_comes_before_later_numbers_of_the_same_sentence():
    assert found("there are 3 bars below 40", "last_number", last_number=True) == ["3"]
    assert found("there are 3 bars. So 40", "last_number", last_number=True) == ["40"]
    assert found("no numbers", "last_number", last_number=True) == []
    assert found(r"half, or -\frac{1}{2}", "last_number", last_number=True) == [r"-\frac{1}{2}"]


def test_the_last_code_block_counts():
    assert code_block("```python\na = 1\n```\nor\n```\nb = 2\n```") == "b = 2"
    assert code_block("```\na\n``` and ```\n\n```") == "a"
    assert code_block("```python\n  a\n\n```") == "  a"
    assert code_block("no code") is None


@pytest.mark.parametrize(
    "dressed",
    ["5", " 5 ", "$5$", "$$5$$", r"\(5\)", r"\[5\]", "**5**", "`5`", '"5"', r"\boxed{5}", "<answer> 5 </answer>",
     "\u200b5\ufeff", "“5”", "**Answer:** 5", "So the final answer is $5$", "<b>5</b>", "<|im_end|>5", "```text\n5\n```",
     "```\n5\n```", "The answer is 5", "Answer: 5", r"$\boxed{5}$", "答案：5"],
)  # fmt: skip
def test_undress(dressed):
    assert undress(dressed) == "5"
