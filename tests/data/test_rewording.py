from __future__ import annotations

import pytest

from mmcorl.data.rewording import losses, request, reworded
from mmcorl.problems import Problem

ORIGINAL = "In triangle ABC, AB = 12 and $\\angle C=30^\\circ$. A train runs 3.5 km. Find the length of AC."


@pytest.mark.parametrize(
    "wording",
    [
        "How long is AC in triangle ABC if AB = 12, $\\angle C = 30^\\circ$, and the train covers 3.5 km?",
        "Take ABC, a triangle with AB = 12 and \\(\\angle C=30^\\circ\\); 3.5 km are run by some train. What is AC?",
    ],
)
def test_wordings_that_keep_everything(wording: str):
    assert list(losses(ORIGINAL, wording)) == []


@pytest.mark.parametrize(
    ("wording", "lost"),
    [
        (
            "How long is AC in triangle ABC if AB = 13, $\\angle C = 30^\\circ$, with a train of 3.5 km?",
            "numbers",
        ),
        ("How long is AC in triangle ABC if AB = 12, $\\angle C = 30^\\circ$?", "numbers"),
        ("How long is AC in triangle ABC if AB = 12, $\\angle C = 60^\\circ$, 3.5 km by train?", "formulas"),
        (
            "How long is BC in triangle ABC if AB = 12, $\\angle C = 30^\\circ$, 3.5 km by train?",
            "names of points",
        ),
        ("", "empty"),
        (ORIGINAL.replace(" ", "  "), "unchanged"),
        (ORIGINAL + " so" * 200, "too long"),
    ],
)
def test_wordings_that_lose_something(wording: str, lost: str):
    assert lost in list(losses(ORIGINAL, wording))


def test_options_in_the_question_stay():
    original = "Which is prime?\nA. 4\nB. 7"
    assert list(losses(original, "Which number has no divisors?\nA. 4\nB. 7")) == []
    assert "options" in list(losses(original, "Which number has no divisors?\nA. 7\nB. 4"))
    assert "options" in list(losses(original, "Is 4 or 7 prime?"))


def test_a_wording_with_another_number_of_images():
    assert "places of images" in list(losses("<image>How many?", "What is the count?"))


def test_pictures_travel_as_marks():
    problem = Problem("a", "<image>How many? <image>", (b"1", b"2"), ("1", "2"), "choice")
    asked = request(problem)
    assert asked.images == ()
    assert asked.question.endswith("[picture 1]How many? [picture 2]")
    assert reworded(problem, "Count [picture 1] and [Picture 2].") == "Count <image> and <image>."
    assert reworded(Problem("b", "q"), "Say [picture 1].") == "Say [picture 1]."


@pytest.mark.parametrize(
    "reply",
    [
        "Count them.",
        "<think>Hm.</think>\nCount them.",
        "```text\nCount them.\n```",
        "Rewritten problem: Count them.",
        " Problem:\nCount them. ",
    ],
)
def test_what_stands_around_a_reply_goes(reply: str):
    assert reworded(Problem("a", "q"), reply) == "Count them."
