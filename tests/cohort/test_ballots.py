import itertools
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmcorl.cohort.ballots import ABSTENTION, Ballot, Vote, elect, pool, weighed
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
    made = replace(ballot(*values), texts="00ff")
    assert Ballot.from_json(json.loads(json.dumps(made.to_json()))) == made


FIVE = ["math", "5"]


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"total": 1, "texts": ""},
        {"total": 1, "counts": []},
        {"total": 1, "counts": [], "texts": 5},
        {"total": "1", "counts": [], "texts": ""},
        {"total": 1.0, "counts": [], "texts": ""},
        {"total": True, "counts": [], "texts": ""},
        {"total": -1, "counts": [], "texts": ""},
        {"total": 1, "counts": {}, "texts": ""},
        {"total": 1, "counts": [], "texts": "", "answer": "5"},
        {"total": 1, "counts": [FIVE], "texts": ""},
        {"total": 1, "counts": [[FIVE, 0]], "texts": ""},
        {"total": 1, "counts": [[FIVE, True]], "texts": ""},
        {"total": 1, "counts": [[FIVE, 2]], "texts": ""},
        {"total": 1, "counts": [[FIVE, 1.0]], "texts": ""},
        {"total": 1, "counts": [[None, 1]], "texts": ""},
        {"total": 1, "counts": [[["python", "5"], 1]], "texts": ""},
        {"total": 2, "counts": [[FIVE, 1], [FIVE, 1]], "texts": ""},
    ],
)
def test_foreign_ballots_are_refused(data):
    with pytest.raises(ValueError):
        Ballot.from_json(data)


def test_a_pool_counts_every_completion_once_and_merges_equal_answers():
    pooled = pool([ballot(4, 4, "1/2", None), ballot(6, "0.5", 6, 6, "0.5")], CLASSES)
    assert pooled == Ballot(
        9, ((Answer("math", "4"), 2), (Answer("math", "1/2"), 3), (Answer("math", "6"), 3))
    )
    assert pool([], CLASSES) == Ballot(0, ()) and pool([ballot(None)], CLASSES) == Ballot(1, ())


def test_the_worked_pool_of_two_models():
    """The ensemble of two trained models, 4 and 4 rollouts."""
    pooled = pool([ballot(4, 4, 6, 7), ballot(6, 6, 4, 6)], CLASSES)
    assert elect(pooled, 0.0, "first") == Vote(Answer("math", "6"), 4 / 8, False)
    tied = pool([ballot(4, 4, 4, 7), ballot(6, 6, 6, 7)], CLASSES)
    assert elect(tied, 0.0, "first") == Vote(Answer("math", "4"), 3 / 8, True)
    assert elect(tied, 0.0, "abstain").answer is None


def test_weighed_votes():
    given = answers(4, None, 6, "6.0")
    assert weighed(given, [1, 1, 1, 1], CLASSES) == Vote(Answer("math", "6"), 2 / 3, False)
    heavy = weighed(given, [0.9, 1, 0.3, 0.4], CLASSES)
    assert (heavy.answer, heavy.tie) == (Answer("math", "4"), False) and heavy.share == pytest.approx(9 / 16)
    tied = weighed(given, [0.3, 1, 0.1, 0.2], CLASSES)  # 0.1 + 0.2 is not 0.3 in binary
    assert (tied.answer, tied.tie) == (None, True)
    assert weighed([None, None], [1, 1], CLASSES) == ABSTENTION
