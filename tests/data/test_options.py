from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmcorl.data.options import gold_label, listed_items, place_images, split_items, split_question


@pytest.mark.parametrize(
    "question",
    [
        "How large is x? ()\nChoices:\nA:40°\nB:60°\nC:120°",
        "How large is x? ()\nChoices:\nA.40°\nB.60°\nC.120°",
        "How large is x? ()\nChoice:\nA. 40°\nB. 60°\nC. 120°\n",
        "How large is x? ()\nOptions: (A) 40° (B) 60° (C) 120°",
        "How large is x? ()\nA. 40°\nB. 60°\nC. 120°",
        "How large is x? ()\n(A) 40°\n(B) 60°\n(C) 120°",
        "How large is x? () (A) 40° (B) 60° (C) 120°",
        "How large is x? () A. 40° B. 60° C. 120°",
        "How large is x? ()\nA、40°\nB、60°\nC、120°",
    ],
)
def test_options_in_a_question(question: str):
    assert split_question(question) == ("How large is x? ()", {"A": "40°", "B": "60°", "C": "120°"})


@pytest.mark.parametrize(
    "question",
    [
        "Find the length of AB.",
        "As shown, point A. B. lies on the line.",
        "Let A: be the event that it rains. How likely is it?",
        "Triangle A is larger than (B) by far.",
        "List the choices: which of them are prime?",
        "",
    ],
)
def test_questions_without_options(question: str):
    assert split_question(question) is None


def test_two_options_need_lines_or_a_heading():
    assert split_question("Is it even?\nA. yes\nB. no") == ("Is it even?", {"A": "yes", "B": "no"})
    assert split_question("Is it? Choices: (A) yes (B) no") == ("Is it?", {"A": "yes", "B": "no"})
    assert split_question("Is (A) above (B) here?") is None


def test_the_last_listing_counts():
    question = "Lines:\nA. first\nB. second\nWhich is longer?\nChoices:\nA:first\nB:second\nC:neither"
    asked, options = split_question(question) or ("", {})
    assert asked.endswith("Which is longer?")
    assert options == {"A": "first", "B": "second", "C": "neither"}


def test_an_option_may_be_empty_or_run_over_lines():
    assert split_question("Q?\nA: one\ntwo\nB:\nC: three") == ("Q?", {"A": "one\ntwo", "B": "", "C": "three"})


@pytest.mark.parametrize(
    ("text", "options"),
    [
        # The layouts of We-Math's `option` column, semicolons inside texts among them.
        ("A. 4 cm;B. 6 cm; C. 8 cm;D. No correct answer", ["4 cm", "6 cm", "8 cm", "No correct answer"]),
        ("A. ①; ③;B. ②; ③;C. ②; ④", ["①; ③", "②; ③", "②; ④"]),
        ("A. at BE;G.; B. at BC;C.; C. nowhere", ["at BE;G.", "at BC;C.", "nowhere"]),
        ("A. 45° B. 60° ;C. 120°", ["45°", "60°", "120°"]),
    ],
)
def test_options_in_one_string(text: str, options: list[str]):
    assert split_items(text) == dict(zip("ABCD", options, strict=False))


def test_left_out_letters_stay_left_out():
    options = split_items("A. Yes;B. Perhaps;C. No.; F. No correct answer")
    assert list(options) == ["A", "B", "C", "F"]
    assert gold_label("F", options) == "D"
    assert gold_label("(B)", options) == "B"
    assert gold_label("No.", options) == "No."


@pytest.mark.parametrize("text", ["", "4 cm; 6 cm", "B. 4; C. 5", "A. alone"])
def test_what_holds_no_options(text: str):
    assert split_items(text) == {}


def test_printed_lists():
    assert listed_items("""['3', "it's", 'a\\\\b', 'x\\xa0y']""") == ["3", "it's", "a\\b", "x\xa0y"]
    assert listed_items('["$\\\\frac{1}{2}$", "b"]') == ["$\\frac{1}{2}$", "b"]
    assert listed_items("['a', 'b',]") == ["a", "b"]
    assert listed_items("[]") == []


@pytest.mark.parametrize(
    "text", ["", "3", "[1, 2]", "['a' 'b']", "['a', open('x')]", "['a", "[['a']]", "{'a'}"]
)
def test_other_texts_are_no_lists(text: str):
    assert listed_items(text) is None


@given(st.lists(st.text(max_size=12), max_size=5))
def test_any_list_of_texts_is_read_back(items: list[str]):
    assert listed_items(repr(items)) == items
    assert listed_items(json.dumps(items)) == items


def test_images_keep_their_first_marker():
    assert place_images(["See <image1> then <image 2>."], 2) == (["See <image> then <image>."], [0, 1])
    assert place_images(["<image 2> or <image 1>, <image 2>"], 2) == (["<image> or <image>, "], [1, 0])
    assert place_images(["<image> and <image>"], 2) == (["<image> and <image>"], [0, 1])


def test_markers_of_joined_pictures_go():
    assert place_images(["<image1>\nand\n<image2>"], 1) == (["<image>\nand\n"], [0])
    assert place_images(["crowns: <image3>"], 1) == (["crowns: "], [0])


def test_images_without_a_marker_come_first():
    assert place_images(["Which?", "<image 2>", "<image 3>"], 3) == (
        ["Which?", "<image>", "<image>"],
        [0, 1, 2],
    )


@given(st.text(alphabet="<image12> ", max_size=80), st.integers(0, 3))
def test_every_image_is_shown_once(text: str, n_images: int):
    placed, order = place_images([text], n_images)
    assert sorted(order) == list(range(n_images))
    assert placed[0].count("<image>") <= n_images
