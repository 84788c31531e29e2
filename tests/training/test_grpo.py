import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mmcorl.config import Scale
from mmcorl.errors import MmcorlError
from mmcorl.training.grpo import (
    batch_loss,
    completion_weights,
    group_advantages,
    kl_k3,
    sampler_weights,
    token_losses,
)

KINDS = ("grpo", "bnpo", "dr_grpo", "dapo")


def advantages(groups, scale: Scale = "group", labelled=None, eps=1e-4):
    labelled_n = torch.tensor([True] * len(groups) if labelled is None else labelled)
    return group_advantages(torch.tensor(groups, dtype=torch.float32), labelled_n, scale, eps)


def close(actual, expected, atol=5e-5):
    torch.testing.assert_close(actual, torch.tensor(expected), atol=atol, rtol=0)


def padded(lengths):
    """The mask of completions of these lengths."""
    return torch.arange(max(lengths)).expand(len(lengths), -1) < torch.tensor(lengths).unsqueeze(1)


# Advantages


def test_advantages_divide_by_the_bessel_corrected_deviation():
    close(advantages([[1, 1, 1, 0, 0, 0, 0, 0]]), [[1.2074] * 3 + [-0.7244] * 5])


def test_advantages_with_a_smaller_epsilon():
    close(advantages([[1, 1, 1, 0, 0, 0, 0, 0]], eps=1e-6), [[1.2076] * 3 + [-0.7246] * 5])


def test_advantages_of_one_right_answer_in_four():
    close(advantages([[1, 1, 1, 0]]), [[0.4999, 0.4999, 0.4999, -1.4997]])


@pytest.mark.parametrize(
    ("scale", "first", "second"),
    [
        ("group", 0.8659, (1.4997, -0.4999)),
        ("batch", 0.9659, (1.4489, -0.4830)),
        ("none", 0.5, (0.75, -0.25)),
    ],
)
def test_advantage_scales(scale, first, second):
    expected = [[first, first, -first, -first], [second[0], second[1], second[1], second[1]]]
    close(advantages([[1, 1, 0, 0], [1, 0, 0, 0]], scale), expected)


@pytest.mark.parametrize("scale", ["group", "batch", "none"])
@pytest.mark.parametrize("reward", [0.0, 1.0, 0.1])
def test_a_group_of_equal_rewards_gets_exactly_zero(scale, reward):
    result = advantages([[reward] * 7, [1, 0, 0, 0, 0, 0, 0]], scale)
    assert result[0].eq(0).all()
    assert result[1].ne(0).all()


def test_a_group_of_one_gets_zero():
    assert advantages([[1.0]]).tolist() == [[0.0]]


def test_unlabelled_groups_get_zero_and_do_not_touch_the_batch_deviation():
    alone = advantages([[1, 1, 0, 0], [1, 0, 0, 0]], "batch")
    among = advantages([[1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 0]], "batch", labelled=[True, False, True])
    assert among[1].eq(0).all()
    assert torch.equal(among[[0, 2]], alone)


def test_a_batch_without_labels_teaches_nothing():
    assert advantages([[1, 0], [0, 1]], labelled=[False, False]).eq(0).all()


# Token losses


@pytest.mark.parametrize(
    ("advantage", "ratio", "loss"), [(1.0, 1.5, -1.2), (1.0, 0.5, -0.5), (-1.0, 0.5, 0.8), (-1.0, 1.5, 1.5)]
)
def test_clipping(advantage, ratio, loss):
    close(token_losses(torch.tensor([[ratio]]).log(), torch.zeros(1, 1), torch.tensor([advantage])), [[loss]])


def test_the_ratio_cap_bounds_the_loss_of_a_bad_token():
    losses = token_losses(torch.tensor([[1.5]]).log(), torch.zeros(1, 1), torch.tensor([-1.0]), ratio_cap=1.4)
    close(losses, [[1.4]])


def test_clip_low_and_high_are_separate():
    logprobs = torch.tensor([[2.0], [0.1]]).log()
    losses = token_losses(
        logprobs, torch.zeros(2, 1), torch.tensor([1.0, -1.0]), clip_low=0.3, clip_high=0.28
    )
    close(losses, [[-1.28], [0.7]])


def test_at_the_old_policy_the_gradient_is_that_of_plain_policy_gradient():
    logprobs = torch.tensor([[-0.3, -2.0], [-1.0, -0.1]], requires_grad=True)
    token_losses(logprobs, logprobs.detach(), torch.tensor([2.0, -0.5])).sum().backward()
    assert logprobs.grad is not None
    assert logprobs.grad.tolist() == [[-2.0, -2.0], [0.5, 0.5]]


def test_k3_worked_number():
    close(kl_k3(torch.tensor([-1.2]), torch.tensor([-1.0])), [0.021403], atol=1e-6)


def test_the_kl_term_is_not_importance_weighted():
    logprobs, reference = torch.tensor([[-1.2]]), torch.tensor([[-1.0]])
    losses = token_losses(
        logprobs,
        logprobs,
        torch.tensor([1.0]),
        weights_it=torch.tensor([[0.5]]),
        reference_logprobs_it=reference,
        beta=0.005,
    )
    close(losses, [[-0.5 + 0.000107]], atol=1e-6)


# Sampler correction

RATIOS = [1.1052, 3.3201, 0.6065, 1.3499]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("none", [1.0] * 4),
        ("token_truncate", [1.1052, 3.0, 0.6065, 1.3499]),
        ("token_mask", [1.1052, 0.0, 0.6065, 1.3499]),
        ("sequence_truncate", [3.0] * 4),
        ("sequence_mask", [0.0] * 4),
    ],
)
def test_sampler_weights(kind, expected):
    old = torch.tensor([[0.1, 1.2, -0.5, 0.3]]) - 2
    close(sampler_weights(old, torch.full((1, 4), -2.0), padded([4]), kind, cap=3.0), [expected])


def test_sequence_ratios_are_products_over_the_completion_without_its_padding():
    old = torch.tensor([[0.1, 1.2, 9.0], [0.5, 0.0, 0.0]]) - 2
    weights = sampler_weights(old, torch.full((2, 3), -2.0), padded([2, 3]), "sequence_truncate", cap=100.0)
    close(weights, [[math.exp(1.3)] * 3, [math.exp(0.5)] * 3], atol=1e-5)


@pytest.mark.parametrize("kind", ["none", "token_truncate", "sequence_mask"])
@pytest.mark.parametrize("value", [math.nan, -math.inf])
def test_broken_sampling_logprobs_are_refused_by_row(kind, value):
    sampling = torch.tensor([[-0.5, -0.5], [-0.5, value]])
    with pytest.raises(MmcorlError, match="completions 1 of this batch"):
        sampler_weights(torch.zeros(2, 2), sampling, padded([2, 2]), kind, cap=3.0)


def test_padding_may_hold_anything():
    sampling = torch.tensor([[-0.5, math.nan]])
    weights = sampler_weights(
        torch.tensor([[-0.5, 0.0]]), sampling, torch.tensor([[True, False]]), "token_mask", 3.0
    )
    assert weights.tolist() == [[1.0, 1.0]]


# Aggregation

WORKED_LENGTHS = [2, 4, 1, 1]
WORKED_LOSSES = [-1.0, 1.0, -1.0, -1.0]


def worked_loss(kind, bnpo_completions=1):
    """Two micro-batches with completions of 2 and 4, and of 1 and 1 tokens; every token of one has the same loss."""
    weights = completion_weights(torch.tensor(WORKED_LENGTHS), kind, 8, bnpo_completions)
    losses_it = torch.tensor(WORKED_LOSSES).unsqueeze(1).expand(4, 4)
    return batch_loss(losses_it, padded(WORKED_LENGTHS), weights).item()


@pytest.mark.parametrize(
    ("kind", "bnpo_completions", "loss"),
    [("grpo", 1, -0.5), ("bnpo", 2, -1 / 3), ("bnpo", 1, -0.5), ("dr_grpo", 1, 0.0), ("dapo", 1, 0.0)],
)
def test_aggregation_worked_numbers(kind, bnpo_completions, loss):
    assert worked_loss(kind, bnpo_completions) == pytest.approx(loss, abs=1e-6)


def test_bnpo_over_the_whole_batch_is_dapo_and_over_single_completions_is_grpo():
    lengths = torch.tensor([3, 1, 7, 2, 2])
    torch.testing.assert_close(
        completion_weights(lengths, "bnpo", 8, 5), completion_weights(lengths, "dapo", 8)
    )
    torch.testing.assert_close(
        completion_weights(lengths, "bnpo", 8, 1), completion_weights(lengths, "grpo", 8)
    )


def test_a_shorter_last_chunk_of_bnpo_weighs_as_much_as_the_others():
    close(completion_weights(torch.tensor([2, 2, 4]), "bnpo", 8, 2), [1 / 8, 1 / 8, 1 / 8])


@pytest.mark.parametrize("kind", KINDS)
def test_completions_without_tokens_have_finite_weights(kind):
    assert completion_weights(torch.tensor([0, 0]), kind, 8).isfinite().all()


@pytest.mark.parametrize("kind", KINDS)
def test_leaving_a_completion_out_of_the_loss_does_not_change_the_rest(kind):
    lengths, mask = [2, 4, 3], padded([2, 4, 3])
    weights = completion_weights(torch.tensor(lengths), kind, 8)
    losses = torch.tensor([[1.0], [0.0], [3.0]]).expand(3, 4)
    kept = [0, 2]
    assert batch_loss(losses, mask, weights).item() == pytest.approx(
        batch_loss(losses[kept], mask[kept], weights[kept]).item()
    )


@given(
    lengths=st.lists(st.integers(0, 9), min_size=1, max_size=12),
    kind=st.sampled_from(KINDS),
    cuts=st.lists(st.integers(0, 12), max_size=4),
    bnpo_completions=st.integers(1, 5),
    seed=st.integers(0, 1000),
)
def test_loss_and_gradient_do_not_depend_on_how_the_batch_is_cut(lengths, kind, cuts, bnpo_completions, seed):
    generator = torch.Generator().manual_seed(seed)
    count, width = len(lengths), max(*lengths, 1)
    mask = torch.arange(width).expand(count, -1) < torch.tensor(lengths).unsqueeze(1)
    old = -torch.rand(count, width, generator=generator, dtype=torch.float64)
    now = (old + 0.5 * torch.randn(count, width, generator=generator, dtype=torch.float64)).requires_grad_()
    gains = torch.randn(count, generator=generator, dtype=torch.float64)
    weights = completion_weights(torch.tensor(lengths), kind, 9, bnpo_completions).double()

    def loss_of(rows):
        return batch_loss(token_losses(now[rows], old[rows], gains[rows]), mask[rows], weights[rows])

    whole = loss_of(slice(None))
    bounds = sorted({0, count, *(cut for cut in cuts if cut < count)})
    parts = [loss_of(slice(start, end)) for start, end in pairwise(bounds)]
    torch.testing.assert_close(torch.stack(parts).sum(), whole)
    torch.testing.assert_close(
        torch.autograd.grad(torch.stack(parts).sum(), now)[0], torch.autograd.grad(whole, now)[0]
    )


@given(
    lengths=st.lists(st.integers(0, 9), min_size=1, max_size=6),
    kind=st.sampled_from(KINDS),
    extra=st.integers(1, 5),
)
def test_padding_changes_nothing(lengths, kind, extra):
    width = max(*lengths, 1)
    losses = torch.randn(len(lengths), width, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    mask = torch.arange(width).expand(len(lengths), -1) < torch.tensor(lengths).unsqueeze(1)
    weights = completion_weights(torch.tensor(lengths), kind, 9).double()
    wider = torch.nn.functional.pad(losses, (0, extra), value=float("inf"))
    wider_mask = torch.nn.functional.pad(mask, (0, extra), value=False)
    assert batch_loss(wider, wider_mask, weights).item() == pytest.approx(
        batch_loss(losses, mask, weights).item()
    )
