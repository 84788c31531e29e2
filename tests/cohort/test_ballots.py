import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmcorl.cohort.ballots import Ballot, Vote, elect
from mmcorl.graders import Answer, Grader

CLASSES = Grader().classes


def answers(*values):
    return [None if value is None else Answer("math", str(value)) for value in values]


def ballot(*values):
    return Ballot.count(answers(*values), CLASSES)


def test_count_keeps_first_appearance_and_leaves_abstentions_in_the_total():
    assert ballot(None, 7, 5, 5, None, 7, 5) == Ballot(
        7, ((Answer("math", "7"), 2), (Answer("math", "5"), 3))
    )
    assert ballot(None, 7, 5, 5, None, 7, 5).parsed == 5


def test_share_is_of_the_parsed_answers():
    assert elect(ballot(5, 5, 5, 7, 7, 3, None, None), 0.5, "first") == Vote(Answer("math", "5"), 0.5, False)


def test_a_share_below_the_threshold_elects_nothing_but_is_told():
    assert elect(ballot(5, 5, 5, 7, 7, 3, None, None), 0.51, "first") == Vote(None, 0.5, False)


def test_equal_answers_in_different_writing_vote_together():
    vote = elect(ballot(5, 5, 5, r"\frac{1}{4}", r"\frac{1}{4}", "0.25", "0.25", 7), 0.0, "first")
    assert (vote.answer, vote.share) == (Answer("math", r"\frac{1}{4}"), 0.5)


@pytest.mark.parametrize(("values", "first"), [((2, 3, 3, 2), 2), ((3, 2, 2, 3), 3)])
def test_ties(values, first):
    assert elect(ballot(*values), 0.0, "first") == Vote(Answer("math", str(first)), 0.5, True)
    assert elect(ballot(*values), 0.0, "abstain") == Vote(None, 0.5, True)


@pytest.mark.parametrize(
    ("values", "answer", "share"),
    [
        ((4, 4, 4, 6, 6, 9, None, 4), 4, 4 / 7),
        ((6, 6, 6, 6, 4, 4, 9, 6), 6, 5 / 8),
        ((4, 4, 6, 6, 4, 9, 9, 4), 4, 4 / 8),
        ((8,), 8, 1.0),
    ],
)
def test_votes_of_the_worked_cohort(values, answer, share):
    assert elect(ballot(*values), 0.0, "first") == Vote(Answer("math", str(answer)), share, False)


@pytest.mark.parametrize("ties", ["first", "abstain"])
def test_nothing_parsed_elects_nothing(ties):
    assert elect(ballot(None, None), 0.0, ties) == Vote(None, 0.0, False)
    assert elect(ballot(), 0.0, ties) == Vote(None, 0.0, False)


def test_without_the_first_policy_order_does_not_matter():
    orders = itertools.permutations([5, 5, 7, 3, None])
    assert {elect(ballot(*order), 0.0, "abstain") for order in orders} == {
        Vote(Answer("math", "5"), 0.5, False)
    }


@given(st.lists(st.one_of(st.none(), st.integers(0, 5)), max_size=10))
def test_a_ballot_survives_json(values):
    made = ballot(*values)
    assert Ballot.from_json(json.loads(json.dumps(made.to_json()))) == made


FIVE = ["math", "5"]


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"total": 1},
        {"total": "1", "counts": []},
        {"total": 1.0, "counts": []},
        {"total": True, "counts": []},
        {"total": -1, "counts": []},
        {"total": 1, "counts": {}},
        {"total": 1, "counts": [], "answer": "5"},
        {"total": 1, "counts": [FIVE]},
        {"total": 1, "counts": [[FIVE, 0]]},
        {"total": 1, "counts": [[FIVE, True]]},
        {"total": 1, "counts": [[FIVE, 2]]},
        {"total": 1, "counts": [[FIVE, 1.0]]},
        {"total": 1, "counts": [[None, 1]]},
        {"total": 1, "counts": [[["python", "5"], 1]]},
        {"total": 2, "counts": [[FIVE, 1], [FIVE, 1]]},
    ],
)
def test_foreign_ballots_are_refused(data):
    with pytest.raises(ValueError):
        Ballot.from_json(data)
