from __future__ import annotations

from typing import Any

import pytest

from mmcorl.data.bad_rows import LeftOut
from mmcorl.data.quirks import apply


def after(row: dict[str, Any], *quirks: tuple[str, ...]) -> dict[str, Any]:
    before = dict(row)
    changed = dict(apply(quirks, row))
    assert row == before
    return changed


@pytest.mark.parametrize(
    ("text", "gold"),
    [
        ("<think>so</think>\n\n<answer>D is the midpoint of AC</answer>", "D is the midpoint of AC"),
        ("<answer> 145° </answer>", "145°"),
        ("<answer>3</answer> no, <answer>4</answer>", "4"),
        ("<answer>2 < 3", "2 < 3"),
        ("Just 5", "Just 5"),
    ],
)
def test_answer_tag(text: str, gold: str):
    assert after({"solution": text}, ("answer_tag", "solution"))["solution"] == gold


def test_without_a_tag_another_column_counts():
    row = {"solution": "no tag", "original_answer": "prose"}
    assert after(row, ("answer_tag", "solution", "original_answer"))["solution"] == "prose"
    assert after({"solution": None}, ("answer_tag", "solution"))["solution"] is None


def test_golds_after_hashes_and_in_boxes():
    assert after({"a": "4 #### 5\n#### 1,234"}, ("after_hashes", "a"))["a"] == "1,234"
    assert (
        after({"s": r"Not $\boxed{1}$. So it must be $\boxed{\frac{1}{2}}$."}, ("boxed", "s"))["s"]
        == r"\frac{1}{2}"
    )
    assert after({"s": "no box"}, ("boxed", "s"))["s"] is None
    assert after({"s": r"\boxed{never {closed}"}, ("boxed", "s"))["s"] is None


def test_columns_of_other_names_and_nested_ones():
    row = {"b": None, "c": 0, "reward_model": {"ground_truth": "7"}}
    assert after(row, ("first_of", "a", "b", "c"))["a"] == 0
    assert after(row, ("inner", "answer", "reward_model", "ground_truth"))["answer"] == "7"
    assert after(row, ("inner", "answer", "reward_model", "style", "deep"))["answer"] is None


def test_the_question_in_a_chat():
    chat = [
        {"role": "system", "content": "Think."},
        {"role": "user", "content": "<image>How many?"},
    ]
    assert after({"prompt": chat}, ("said_by_user", "problem", "prompt"))["problem"] == "<image>How many?"
    parts = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "How many?"}]}]
    assert after({"prompt": parts}, ("said_by_user", "problem", "prompt"))["problem"] == "<image>How many?"
    assert after({"prompt": "plain"}, ("said_by_user", "problem", "prompt"))["problem"] == "plain"


def test_options():
    quirk = ("split_options", "q", "choices")
    assert after({"q": "Which?\nA. one\nB. two"}, quirk) == {"q": "Which?", "choices": ["one", "two"]}
    assert (
        after({"q": "Which?\nA. one\nB. two", "choices": ["1", "2"]}, quirk)["q"] == "Which?\nA. one\nB. two"
    )
    assert after({"q": "How many?"}, quirk) == {"q": "How many?"}


def test_image_markers():
    quirk = ("image_markers", "q", "images", "choices")
    row = {"q": "<image 2> is which?", "images": ["a", "b"], "choices": ["<image 1>", "none"]}
    assert after(row, quirk) == {
        "q": "<image> is which?",
        "images": ["b", "a"],
        "choices": ["<image>", "none"],
    }
    assert after({"q": "<image><image>Q", "images": "a"}, quirk) == {"q": "<image>Q", "images": ["a"]}
    assert after({"q": "<image>Q", "images": None}, quirk) == {"q": "Q", "images": []}


def test_rows_that_are_left_out():
    assert after({"level": 4}, ("only", "level", "3", "4")) == {"level": 4}
    with pytest.raises(LeftOut) as caught:
        after({"level": 2}, ("only", "level", "3", "4"))
    assert caught.value.reason == "left out by level"
    assert after({"pass_rate": 0.5}, ("between", "pass_rate", "0", "1"))
    for rate in (0.0, 1.0, None):
        with pytest.raises(LeftOut):
            after({"pass_rate": rate}, ("between", "pass_rate", "0", "1"))


def test_kinds():
    quirk = ("kind_where", "code", "tag", "code", "coding")
    assert after({"tag": "Coding"}, quirk)["kind"] == "code"
    assert "kind" not in after({"tag": "math"}, quirk)
