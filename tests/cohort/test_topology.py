import pytest

from mmcorl.cohort.ballots import Ballot, Vote, elect
from mmcorl.cohort.topology import supervise, supervisors
from mmcorl.config import Ties
from mmcorl.graders import Answer, Grader

CLASSES = Grader().classes


def votes(**values):
    return {
        name: Vote(None if value is None else Answer("math", str(value)), 0.7, False)
        for name, value in values.items()
    }


def supervised(topology, agent, **values):
    vote = supervise(list(values), topology, agent, votes(**values), CLASSES)
    return vote.answer and vote.answer.value


@pytest.mark.parametrize(
    ("topology", "expected"),
    [
        ("ring", {"a": ["c"], "b": ["a"], "c": ["b"]}),
        ("self", {"a": ["a"], "b": ["b"], "c": ["c"]}),
        ("peers", {"a": ["b", "c"], "b": ["a", "c"], "c": ["a", "b"]}),
        ("all", {"a": ["a", "b", "c"], "b": ["a", "b", "c"], "c": ["a", "b", "c"]}),
    ],
)
def test_supervisors_of_three(topology, expected):
    assert {agent: supervisors(["a", "b", "c"], topology, agent) for agent in "abc"} == expected


@pytest.mark.parametrize("topology", ["ring", "peers"])
def test_two_agents_supervise_each_other(topology):
    assert supervised(topology, "a", a=4, b=6) == "6"
    assert supervised(topology, "b", a=4, b=6) == "4"


def test_ring_and_self_hand_on_the_vote_with_its_share():
    given = votes(a=4, b=6)
    assert supervise(["a", "b"], "ring", "a", given, CLASSES) is given["b"]
    assert supervise(["a", "b"], "self", "a", given, CLASSES) is given["a"]


def test_an_abstention_supervises_as_an_abstention():
    assert supervised("ring", "a", a=4, b=None) is None


@pytest.mark.parametrize(("agent", "expected"), [("a", None), ("b", "4"), ("c", None)])
def test_peers_of_the_worked_cohort(agent, expected):
    """Votes 4, 6 and 4: whoever has the two dissenters as peers gets no label."""
    assert supervised("peers", agent, a=4, b=6, c=4) == expected


def test_all_counts_the_own_vote():
    assert [supervised("all", agent, a=4, b=6, c=4) for agent in "abc"] == ["4", "4", "4"]
    assert supervised("all", "a", a=4, b=6) is None


def test_majorities_use_the_equality_of_answers():
    assert supervised("all", "a", a=r"\frac{1}{2}", b="0.5", c=3) == r"\frac{1}{2}"


def test_abstaining_agents_do_not_count():
    given = votes(a=None, b=6, c=None, d=None)
    vote = supervise(list(given), "peers", "a", given, CLASSES)
    assert (vote.answer, vote.share, vote.tie) == (Answer("math", "6"), 1.0, False)
    assert supervised("all", "a", a=None, b=None, c=None) is None


def pooled(weigh, rows, threshold=0.0, ties: Ties = "first"):
    ballots = {
        name: Ballot.count([None if v is None else Answer("math", str(v)) for v in row], CLASSES)
        for name, row in rows.items()
    }
    elected = {name: elect(ballot, 0.0, "first") for name, ballot in ballots.items()}
    return supervise(
        list(rows), "peers", "a", elected, CLASSES, weigh=weigh, ballots=ballots, threshold=threshold, ties=ties
    )  # fmt: skip


SURE_AND_UNSURE = {"a": [1], "b": [4, 4, 4, 4], "c": [6, 6, 7, 8], "d": [6, 6, 7, 4]}


def test_what_the_votes_of_peers_weigh():
    """Two unsure peers outvote a sure one, are outweighed by it, and are outnumbered by its completions."""
    assert pooled("votes", SURE_AND_UNSURE) == Vote(Answer("math", "6"), 2 / 3, False)
    by_share = pooled("share", {**SURE_AND_UNSURE, "d": [6, 7, 8, 4, 6, 5]})
    assert (by_share.answer, by_share.tie) == (Answer("math", "4"), False)
    assert by_share.share == pytest.approx(1 / (1 + 1 / 2 + 1 / 3))
    assert pooled("pooled", SURE_AND_UNSURE) == Vote(Answer("math", "4"), 5 / 12, False)


def test_threshold_and_ties_apply_to_the_pool():
    assert pooled("pooled", SURE_AND_UNSURE, threshold=0.5) == Vote(None, 5 / 12, False)
    tied = {"a": [1], "b": [4, 4], "c": [6, 6]}
    assert pooled("pooled", tied) == Vote(Answer("math", "4"), 0.5, True)
    assert pooled("pooled", tied, ties="abstain") == Vote(None, 0.5, True)


def test_the_own_ballot_has_no_part_in_the_peers_pool():
    assert pooled("pooled", SURE_AND_UNSURE) == pooled("pooled", {**SURE_AND_UNSURE, "a": [6] * 9})
