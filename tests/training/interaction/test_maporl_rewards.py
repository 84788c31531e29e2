from itertools import product

import pytest
import torch

from mmcorl.training.interaction.maporl import scattered, turn_advantages
from mmcorl.training.interaction.maporl_rewards import incentives, shared_rewards

ALL = torch.ones(1, 3, dtype=torch.bool)


def test_shared_rewards_are_the_worked_numbers():
    """Two agents, three turns, discount 0.3."""
    scores = torch.tensor([[[0.2, 0.6, 1.0], [0.8, 0.8, 1.0]]])
    a, b = shared_rewards(scores, ALL, 0.3)[0].tolist()
    assert a == pytest.approx([0.3597, 0.6923, 1.0], abs=5e-5)
    assert b == pytest.approx([0.7914, 0.8462, 1.0], abs=5e-5)


def test_without_discount_only_the_own_score_of_the_turn_counts():
    scores = torch.rand(4, 3, 5)
    assert torch.equal(shared_rewards(scores, torch.ones(4, 5), 0.0), scores.double())


def test_a_debate_that_ended_early_is_one_of_fewer_turns():
    scores = torch.rand(3, 2, 4, dtype=torch.float64)
    reached = torch.tensor([[True, True, False, False]]).expand(3, 4)
    short = shared_rewards(scores[..., :2], torch.ones(3, 2), 0.3)
    found = shared_rewards(scores, reached, 0.3)
    assert torch.allclose(found[..., :2], short) and torch.equal(
        found[..., 2:], torch.zeros(3, 2, 2).double()
    )
    # What stands at turns that were not reached has no part in it.
    scores[..., 2:] = -1.0
    assert torch.equal(shared_rewards(scores, reached, 0.3), found)


def test_rewards_of_scores_between_0_and_1_stay_there():
    scores = torch.rand(50, 3, 4)
    found = shared_rewards(scores, torch.ones(50, 4), 0.7)
    assert found.min() >= 0 and found.max() <= 1
    assert shared_rewards(torch.ones(1, 2, 4), torch.ones(1, 4), 0.7).allclose(torch.ones(1, 2, 4).double())


A0, A1, A2, A3 = 0.1, 1.0, 0.01, 10.0
"""Four weights that can be told apart in any sum."""

OWN_CHANGES = {  # own answer before, after, the others before -> what it adds
    (False, False, False): 0.0,
    (False, False, True): 0.0,
    (False, True, False): A1,
    (False, True, True): A0,
    (True, False, False): -A0,
    (True, False, True): -A1,
    (True, True, False): 0.0,
    (True, True, True): 0.0,
}
INFLUENCE = {  # own answer now, the others now, the others at the next turn -> what it adds
    (False, False, False): 0.0,
    (False, False, True): A2,
    (False, True, False): -A3,
    (False, True, True): 0.0,
    (True, False, False): 0.0,
    (True, False, True): A3,
    (True, True, False): -A2,
    (True, True, True): 0.0,
}


@pytest.mark.parametrize(("before", "after", "others"), list(product([False, True], repeat=3)))
def test_the_sign_of_an_own_change_of_mind(before, after, others):
    scores = torch.tensor([[[before, after], [others, others]]]).double()
    found = incentives(scores, torch.ones(1, 2), (A0, A1, 0, 0))[0]
    assert found[0].tolist() == pytest.approx([0.0, OWN_CHANGES[before, after, others]])


@pytest.mark.parametrize(("own", "others", "later"), list(product([False, True], repeat=3)))
def test_the_sign_of_influence_on_the_others(own, others, later):
    scores = torch.tensor([[[own, own], [others, later]]]).double()
    found = incentives(scores, torch.ones(1, 2), (0, 0, A2, A3))[0]
    assert found[0].tolist() == pytest.approx([INFLUENCE[own, others, later], 0.0])


def test_a_change_to_the_right_answer_never_costs_and_one_to_the_wrong_never_pays():
    assert all(value >= 0 for (before, after, _), value in OWN_CHANGES.items() if after >= before)
    assert all(value <= 0 for (before, after, _), value in OWN_CHANGES.items() if after <= before)
    assert all(value >= 0 for (_, now, later), value in INFLUENCE.items() if later >= now)
    assert all(value <= 0 for (_, now, later), value in INFLUENCE.items() if later <= now)


def test_an_answer_is_right_above_the_threshold_and_not_at_it():
    scores = torch.tensor([[[0.5, 0.51], [0.0, 0.0]]])
    assert incentives(scores, torch.ones(1, 2), (A0, A1, 0, 0))[0, 0, 1] == pytest.approx(A1)
    scores = torch.tensor([[[0.0, 0.5], [0.0, 0.0]]])
    assert incentives(scores, torch.ones(1, 2), (A0, A1, 0, 0))[0, 0, 1] == 0


def test_there_is_no_incentive_into_a_turn_that_was_not_reached():
    scores = torch.tensor([[[0.0, 1.0], [0.0, 1.0]]])
    assert incentives(scores, torch.tensor([[True, True]]), (1, 1, 1, 1)).abs().sum() > 0
    assert incentives(scores, torch.tensor([[True, False]]), (1, 1, 1, 1)).abs().sum() == 0


def test_a_real_bonus_of_minus_one_is_kept():
    """The release marks turns that were not reached by -1, which a real loss of 1 can be too."""
    scores = torch.tensor([[[1.0, 0.0], [1.0, 1.0]]])
    assert incentives(scores, torch.ones(1, 2), (0, 1, 0, 0))[0].tolist() == [[0, -1], [0, 0]]


def test_the_others_are_their_majority_and_a_tie_is_neither():
    def own(*others):
        scores = torch.tensor([[[0.0, 1.0], *([float(o)] * 2 for o in others)]])
        return incentives(scores, torch.ones(1, 2), (A0, A1, 0, 0))[0, 0, 1].item()

    assert own(1, 1, 0) == pytest.approx(A0)
    assert own(1, 0, 0) == pytest.approx(A1)
    assert own(1, 0) == 0


def test_answers_are_compared_within_their_problem_and_turn():
    rewards = torch.tensor([[1.0, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1]])
    kept = torch.ones(3, 4, dtype=torch.bool)
    found = turn_advantages(rewards, kept, "group")
    assert found[0].tolist() == pytest.approx([0.8659, 0.8659, -0.8659, -0.8659], abs=1e-4)
    assert found[1].tolist() == pytest.approx([1.4997, -0.4999, -0.4999, -0.4999], abs=1e-4)
    assert found[2].tolist() == [0, 0, 0, 0]


def test_what_is_not_kept_is_no_part_of_the_comparison():
    rewards = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    kept = torch.tensor([[True, True, False, False], [False] * 4])
    found = turn_advantages(rewards, kept, "none")
    assert found.tolist() == [[0.5, -0.5, 0, 0], [0, 0, 0, 0]]


def test_items_go_back_to_the_debates_that_they_came_from():
    going = [[True, False], [False, False], [True, True]]
    assert scattered([["a"], ["b"], ["c"]], going, "") == [["a", ""], ["", ""], ["b", "c"]]
    with pytest.raises(AssertionError):
        scattered([["a"]] * 4, going, "")
