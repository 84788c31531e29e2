import math
from dataclasses import fields, replace
from typing import get_args

import pytest
import torch

from mmcorl.cohort.ballots import Ballot, Vote, elect
from mmcorl.cohort.topology import supervise
from mmcorl.config import RewardConfig
from mmcorl.config.learning import RuleName
from mmcorl.graders import Answer, Grader
from mmcorl.problems import Problem
from mmcorl.rewards import RULES, RewardInputs, rule_of
from mmcorl.rewards.cluster_share import cluster_share
from mmcorl.rewards.entropy import entropy_rule
from mmcorl.rewards.format_only import format_only
from mmcorl.rewards.gold import gold_rule
from mmcorl.rewards.incorrect import incorrect
from mmcorl.rewards.peer_vote import peer_vote
from mmcorl.rewards.random_draw import random_rule
from mmcorl.rewards.self_certainty import self_certainty_rule
from mmcorl.rewards.self_vote import self_vote
from mmcorl.rewards.teacher_vote import teacher_vote
from mmcorl.rewards.twin_vote import twin_vote
from mmcorl.training.grpo import group_advantages

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
        correct=GRADER.correct,
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
        correct=GRADER.correct,
    )
    result = gold_rule({"p1": Answer("math", "2.0"), "p2": None})(given)
    assert result.values == [[0, 1], [0, 0], [0, 0]]
    assert result.labelled == [True, False, False]


def test_rules_without_labels_cannot_see_gold():
    assert not {field.name for field in fields(RewardInputs)} & {"gold", "golds"}
    golds = {"p1": Answer("math", "4")}
    for name in RULES:
        rule = rule_of(RewardConfig.model_validate({"rule": name}), golds)
        assert "gold" not in rule.needs
        assert all(golds is not cell.cell_contents for cell in rule.reward.__closure__ or ())


def test_every_configured_rule_exists():
    assert set(get_args(RuleName)) == {*RULES, "gold"}
    assert rule_of(RewardConfig(rule="gold"), {}).needs == {"gold"}


def advantages(values):
    return group_advantages(torch.tensor([values]), torch.tensor([True]), "group")[0].tolist()


def group(answers, **more):
    """One problem whose ballot is that of its answers."""
    ballot = Ballot.count(read(answers), GRADER.classes)
    return replace(inputs(answers, own=elect(ballot, 0.0, "first")), own_ballots=[ballot], **more)


def test_more_votes_than_completions_that_learn():
    """M = 8 elect 5; the first K = 4 are rewarded for it."""
    votes = [5, 5, 5, 7, 7, 3, None, None]
    result = self_vote(inputs(votes[:4], own=vote(votes)))
    assert result.values == [[1, 1, 1, 0]]
    assert advantages(result.values[0]) == pytest.approx([0.4999] * 3 + [-1.4997], abs=1e-4)


def test_twin_vote_worked_numbers():
    """Each wording is rewarded for what the other elects: q elects 4 and q' 6."""
    both = ([4, 4, 6, None], [6, 6, 4, 6])
    given = RewardInputs(
        problems=[Problem("q", "?"), Problem("q#twin", "?")],
        answers=[read(row) for row in both],
        own_votes=[vote(row) for row in both],
        supervising_votes=[Vote(None, 0.0, False)] * 2,
        same=GRADER.same,
        correct=GRADER.correct,
    )
    result = twin_vote(given)
    assert [label and label.value for label in result.labels or []] == ["6", "4"]
    assert result.values == [[0, 0, 1, 0], [0, 0, 1, 0]]


def test_twin_vote_pairs_neighbours():
    rows = [[1], [2], [3], [4]]
    given = RewardInputs(
        [Problem(str(i), "?") for i in range(4)], [read(row) for row in rows], [vote(row) for row in rows],
        [], GRADER.same, GRADER.correct,
    )  # fmt: skip
    assert [label and label.value for label in twin_vote(given).labels or []] == ["2", "1", "4", "3"]


def test_teacher_vote_is_the_teachers_alone():
    given = replace(inputs([4, 4, 6], vote([4]), vote([4, 4, 6])), teacher_votes=[vote([6, 6, 4])])
    assert teacher_vote(given).values == [[0, 0, 1]]
    silent = teacher_vote(replace(given, teacher_votes=[vote([None])]))
    assert (silent.values, silent.labelled) == ([[0, 0, 0]], [False])


def test_cluster_share_worked_numbers():
    result = cluster_share(group([1, 1, 1, 1, 2, 2, 3, 4]))
    assert result.values == [[0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.125, 0.125]]
    assert sum(result.values[0]) / 8 == 0.34375
    assert advantages(result.values[0]) == pytest.approx(
        [0.8996] * 4 + [-0.5398] * 2 + [-1.2594] * 2, abs=1e-4
    )


def test_cluster_share_gives_abstentions_nothing():
    assert cluster_share(group([5, None, "5.0", None])).values == [[0.5, 0, 0.5, 0]]
    assert cluster_share(group([None, None])).labelled == [False]


def test_entropy_worked_numbers():
    given = group([5, None], statistics={"entropy": [[1.1634, 0.9404]]})
    assert entropy_rule()(given).values == [[-1.1634, -0.9404]]
    with_format = entropy_rule(unparsed=-7.0)(given)
    assert (with_format.values, with_format.labelled) == ([[-1.1634, -7.0]], [True])


def test_self_certainty_worked_numbers():
    given = group([1, 2, 3, None], statistics={"self_certainty": [[0.43, 0.20, 0.20, 0.77]]})
    result = self_certainty_rule()(given)
    assert advantages(result.values[0]) == pytest.approx([0.1113, -0.7420, -0.7420, 1.3727], abs=1e-4)
    assert self_certainty_rule(unparsed=0.0)(given).values == [[0.43, 0.20, 0.20, 0]]


def test_entropy_and_self_certainty_prefer_different_completions():
    """p = [.9, .033, .033, .033] against p = [.6, .3999, 5e-5, 5e-5]."""
    given = group([1, 2], statistics={"entropy": [[0.4349, 0.6740]], "self_certainty": [[1.1909, 3.9223]]})
    [[rent_first, rent_second]] = entropy_rule()(given).values
    [[intuitor_first, intuitor_second]] = self_certainty_rule()(given).values
    assert rent_first > rent_second and intuitor_first < intuitor_second


def test_a_constant_leaves_the_advantages_of_self_certainty():
    scores = [0.43, 0.20, 0.20, 0.77]
    shifted = [score + math.log(4) for score in scores]
    assert advantages(shifted) == pytest.approx(advantages(scores), abs=1e-5)


def test_random_rewards_fall_below_the_chance_and_heed_no_answer():
    drawn = [0.1, 0.5, 0.49, 0.9]
    first = random_rule(0.5)(group([1, 2, 3, 4], draw=lambda _: drawn))
    assert first.values == [[1, 0, 1, 0]] and first.labelled == [True]
    assert random_rule(0.5)(group([None] * 4, draw=lambda _: drawn)) == first


def test_format_only_heeds_no_value():
    result = format_only(group([1, None, 2, "x"]))
    assert (result.values, result.labelled) == ([[1, 0, 1, 1]], [True])
    assert format_only(group([None, None])).labelled == [True]


def test_incorrect_rewards_the_runner_up():
    result = incorrect(group([5, 5, 5, 7, 7, 3, None, None]))
    assert (result.values, result.labelled) == ([[0, 0, 0, 1, 1, 0, 0, 0]], [True])
    assert incorrect(group([5, 7, 3, 5])).values == [[0, 1, 0, 0]]
    assert incorrect(group([5, 5])).labelled == [False]


def test_parallel_lists_of_different_lengths_are_refused():
    given = RewardInputs(
        [Problem("p1", "?")], [read([1]), read([1])], [], [vote([1])], GRADER.same, GRADER.correct
    )
    with pytest.raises(ValueError):
        peer_vote(given)
