from dataclasses import fields
from typing import get_args

import pytest

from mmcorl.cohort.ballots import Ballot, Vote, elect
from mmcorl.cohort.topology import supervise
from mmcorl.config import RewardConfig
from mmcorl.graders import Answer, Grader
from mmcorl.problems import Problem
from mmcorl.rewards import RULES, RewardInputs, rule_of
from mmcorl.rewards.gold import gold_rule
from mmcorl.rewards.peer_vote import peer_vote
from mmcorl.rewards.self_vote import self_vote

GRADER = Grader()
COHORT = {
    "a": [4, 4, 4, 6, 6, 9, None, 4],
    "b": [6, 6, 6, 6, 4, 4, 9, 6],
    "c": [4, 4, 6, 6, 4, 9, 9, 4],
}


def read(values):
    return [None if value is None else Answer("math", str(value)) for value in values]


def vote(values):
    return elect(Ballot.count(read(values), GRADER.classes), 0.0, "first")


def inputs(answers, supervising=None, own=None):
    """One problem."""
    abstention = Vote(None, 0.0, False)
    return RewardInputs(
        problems=[Problem("p1", "How many?")],
        answers=[read(answers)],
        own_votes=[own or abstention],
        supervising_votes=[supervising or abstention],
        same=GRADER.same,
    )


def peer_rewards(agents, topology, agent):
    votes = {name: vote(COHORT[name]) for name in agents}
    supervising = supervise(agents, topology, agent, votes, GRADER.classes)
    return peer_vote(inputs(COHORT[agent], supervising, votes[agent]))


def test_self_vote_worked_numbers():
    assert self_vote(inputs(COHORT["a"], own=vote(COHORT["a"]))).values == [[1, 1, 1, 0, 0, 0, 0, 1]]
    values = [5, 5, 5, 7, 7, 3, None, None]
    assert self_vote(inputs(values, own=vote(values))).values == [[1, 1, 1, 0, 0, 0, 0, 0]]


def test_peer_vote_of_two_agents():
    assert peer_rewards(["a", "b"], "ring", "a").values == [[0, 0, 0, 1, 1, 0, 0, 0]]
    assert peer_rewards(["a", "b"], "ring", "b").values == [[0, 0, 0, 0, 1, 1, 0, 0]]


@pytest.mark.parametrize(
    ("agent", "rewards"),
    [("a", [0, 0, 0, 1, 1, 0, 0, 0]), ("b", [0, 0, 0, 0, 1, 1, 0, 0]), ("c", [1, 1, 0, 0, 1, 0, 0, 1])],
)
def test_peer_vote_on_a_ring_of_three(agent, rewards):
    """A learns from B, B from C and C from A: each from the one before it."""
    assert peer_rewards(["c", "b", "a"], "ring", agent).values == [rewards]


def test_peer_vote_where_the_peers_tie_is_unlabelled():
    result = peer_rewards(["a", "b", "c"], "peers", "a")
    assert result.values == [[0] * 8]
    assert result.labelled == [False]


def test_the_own_vote_has_no_part_in_peer_vote():
    with_own = peer_vote(inputs(COHORT["a"], vote(COHORT["b"]), own=vote(COHORT["a"])))
    assert with_own == peer_vote(inputs(COHORT["a"], vote(COHORT["b"])))


def test_equal_answers_in_different_writing_are_rewarded():
    values = [r"\frac{1}{4}", "0.25", 5]
    assert self_vote(inputs(values, own=vote(values))).values == [[1, 1, 0]]


def test_an_abstention_is_never_rewarded():
    nothing = vote([None, None])
    for rule in (peer_vote, self_vote):
        result = rule(inputs([None, None, 5], nothing, nothing))
        assert (result.values, result.labelled) == ([[0, 0, 0]], [False])


def test_gold_rewards_the_labelled_answer_and_skips_problems_without_one():
    given = RewardInputs(
        problems=[Problem("p1", "?"), Problem("p2", "?"), Problem("p3", "?")],
        answers=[read([1, 2]), read([1, 2]), read([1, 2])],
        own_votes=[Vote(None, 0.0, False)] * 3,
        supervising_votes=[Vote(None, 0.0, False)] * 3,
        same=GRADER.same,
    )
    result = gold_rule({"p1": Answer("math", "2.0"), "p2": None})(given)
    assert result.values == [[0, 1], [0, 0], [0, 0]]
    assert result.labelled == [True, False, False]


def test_rules_without_labels_cannot_see_gold():
    assert not {field.name for field in fields(RewardInputs)} & {"gold", "golds", "labels"}
    for name, rule in RULES.items():
        assert rule_of(name, {"p1": Answer("math", "4")}) is rule


def test_every_configured_rule_exists():
    for name in get_args(RewardConfig.model_fields["rule"].annotation):
        assert callable(rule_of(name, {}))


def test_parallel_lists_of_different_lengths_are_refused():
    given = RewardInputs([Problem("p1", "?")], [read([1]), read([1])], [], [vote([1])], GRADER.same)
    with pytest.raises(ValueError):
        peer_vote(given)
