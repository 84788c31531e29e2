import pytest
import torch

from mmcorl.training.interaction.comas import role_advantages
from mmcorl.training.interaction.comas_rewards import RoleRewards, role_rewards


def test_scores_are_worth_what_the_method_says():
    """Worked numbers: scores 3, 1, 2 and one that cannot be read."""
    found = [role_rewards(score) for score in (3, 1, 2, None)]
    assert [r.solver for r in found] == [1, 0, 0.5, 0]
    assert [r.evaluator for r in found] == [0, 1, 0.5, 0]
    assert [r.scorer for r in found] == [0, 0, 0, -1]


@pytest.mark.parametrize("score", [1, 2, 3])
def test_solver_and_evaluator_share_a_constant_sum(score):
    rewards = role_rewards(score)
    assert rewards.solver + rewards.evaluator == 1 and rewards.scorer == 0


def test_a_score_that_cannot_be_read_is_no_lowest_score():
    assert role_rewards(None) != role_rewards(1)
    assert role_rewards(None) == RoleRewards(solver=0, evaluator=0, scorer=-1)


@pytest.mark.parametrize("score", [0, 4, -1])
def test_there_are_no_other_scores(score):
    with pytest.raises(AssertionError):
        role_rewards(score)


def test_advantages_are_standardised_over_all_of_one_role():
    """Two rounds of 2 x 4 completions: r = [1,1,1,0,0,0,0,0] twice is +1.2472 / -0.7483 with n = 16."""
    rounds = [torch.tensor([[1.0, 1, 1, 0], [0, 0, 0, 0]])] * 2
    first, second = role_advantages(rounds, "group")
    assert first.shape == (2, 4) and torch.equal(first, second)
    assert first[0].tolist() == pytest.approx([1.2497, 1.2497, 1.2497, -0.7498], abs=5e-4)
    assert torch.cat([first, second]).mean().item() == pytest.approx(0, abs=1e-6)
    centred = role_advantages(rounds, "none")[0]
    assert centred[0].tolist() == pytest.approx([0.625, 0.625, 0.625, -0.375])


def test_a_role_that_is_rewarded_alike_learns_nothing():
    for reward in (0.0, -1.0):
        [advantages] = role_advantages([torch.full((6, 1), reward)], "group")
        assert torch.equal(advantages, torch.zeros(6, 1))


def test_a_format_penalty_does_not_depend_on_the_other_roles():
    """A scorer's rewards of 0 and -1 are scaled by themselves, however the solvers are rewarded."""
    [scorer] = role_advantages([torch.tensor([[0.0], [0.0], [0.0], [-1.0]])], "group")
    assert scorer.flatten().tolist() == pytest.approx([0.4999, 0.4999, 0.4999, -1.4997], abs=2e-4)
