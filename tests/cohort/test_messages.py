import json
from dataclasses import replace

import pytest

from mmcorl.cohort.ballots import Ballot
from mmcorl.cohort.messages import (
    LONGEST_TEXT,
    Greeting,
    Message,
    Texts,
    problem_hash,
    problems_digest,
    require_same_phase,
)
from mmcorl.errors import CohortMismatch
from mmcorl.graders.answers import Answer
from mmcorl.problems import Problem

MESSAGE = Message("r", 3, "a", (problem_hash("p1"),), (Ballot(2, ((Answer("text", 'né "q"'), 1),)),), True)
TEXTS = Texts("r", 3, "a", "solutions", ("p", "q"), (('né "q"', ""), ("\n\u2028\x00", "d")))
GREETING = Greeting("r", "a", ("a", "b"), "digest")


def changed(original, **values):
    return json.dumps(json.loads(original.to_json()) | values)


def test_messages_survive_json():
    assert Message.from_json(MESSAGE.to_json()) == MESSAGE
    assert Greeting.from_json(GREETING.to_json()) == GREETING


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\x80\x04K\x01.",
        "null",
        "{}",
        "[" * 100_000,
        changed(MESSAGE, run=1),
        changed(MESSAGE, step="3"),
        changed(MESSAGE, step=True),
        changed(MESSAGE, agent=None),
        changed(MESSAGE, problems="p1"),
        changed(MESSAGE, problems=[1]),
        changed(MESSAGE, ballots=[]),
        changed(MESSAGE, ballots=[{}]),
        changed(MESSAGE, stop=1),
        changed(MESSAGE, gold="4"),
    ],
)
def test_foreign_messages_are_refused(text):
    with pytest.raises(ValueError):
        Message.from_json(text)


@pytest.mark.parametrize(
    "text",
    ["null", "{}", changed(GREETING, cohort="ab"), changed(GREETING, cohort=[1]), changed(GREETING, more=1)],
)
def test_foreign_greetings_are_refused(text):
    with pytest.raises(ValueError):
        Greeting.from_json(text)


def test_problem_hashes_are_short_stable_and_different():
    assert problem_hash("p1") == "f64551fcd6f07823"
    assert problem_hash("p1") != problem_hash("p2")


def test_the_digest_tells_problems_of_equal_ids_apart():
    one, other = Problem("1", "1 + 1?"), Problem("1", "1 + 2?")
    assert problems_digest([one]) == problems_digest([Problem("1", "1 + 1?")]) != problems_digest([other])
    assert problems_digest([one, other]) != problems_digest([other, one])


# Texts of an interaction


def test_texts_survive_json():
    assert Texts.from_json(TEXTS.to_json()) == TEXTS


@pytest.mark.parametrize(
    "text",
    [
        "null",
        MESSAGE.to_json(),
        changed(TEXTS, step=True),
        changed(TEXTS, phase=None),
        changed(TEXTS, texts=[]),
        changed(TEXTS, texts=["ab", "cd"]),
        changed(TEXTS, texts=[["a", 1], ["c", "d"]]),
        changed(TEXTS, texts=[["a", None], ["c", "d"]]),
        changed(TEXTS, texts=[["a", "x" * (LONGEST_TEXT + 1)], ["c", "d"]]),
        changed(TEXTS, problems=[1, 2]),
        changed(TEXTS, gold="4"),
    ],
)
def test_foreign_texts_are_refused(text):
    with pytest.raises(ValueError):
        Texts.from_json(text)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            {"phase": "scores"},
            "disagree on the phase of step 3: solutions and scores; set `interaction` alike",
        ),
        (
            {"texts": (("a",), ("b",))},
            r"number of texts a problem at step 3: \[2\] and \[1\]; set rollouts.per_problem",
        ),
        ({"texts": (("a", "b"), ("c",))}, r"\[2\] and \[1, 2\]"),
        ({"step": 4}, "disagree on the step: 3 and 4"),
        ({"problems": ("p", "r")}, "disagree on problem 2 of step 3"),
    ],
)
def test_texts_of_another_phase_are_a_mismatch(other, message):
    require_same_phase([TEXTS, replace(TEXTS, agent="b")])
    with pytest.raises(CohortMismatch, match=message):
        require_same_phase([TEXTS, replace(TEXTS, agent="b", **other)])
