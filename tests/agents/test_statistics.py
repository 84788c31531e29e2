"""Whole-vocabulary statistics: worked numbers, the distribution they are of, and that cutting changes nothing."""

from __future__ import annotations

import math

import pytest
import torch

from mmcorl.agents import contract, statistics
from mmcorl.agents.batches import TokenGroup
from mmcorl.agents.statistics import token_statistics
from mmcorl.config import RolloutsConfig

NAMES = ("entropy", "self_certainty")
NOTHING = torch.tensor([], dtype=torch.long)


def of(*distributions, temperature=1.0, banned=NOTHING, shift=0.0):
    """Statistics of distributions given as probabilities, one token each."""
    logits = torch.tensor(distributions).log() * temperature + shift
    return measured(logits, torch.zeros(len(logits), dtype=torch.long), temperature, banned)


def measured(logits, target, temperature, banned=NOTHING):
    """By name, what comes as columns."""
    columns = token_statistics(logits, target, temperature, banned, NAMES)
    return dict(zip(("logprob", *NAMES), columns.unbind(-1), strict=True))


def test_worked_numbers():
    found = of([0.7, 0.1, 0.1, 0.1], [0.25] * 4)
    assert found["entropy"].tolist() == pytest.approx([0.9404, 1.3863], abs=1e-4)
    assert found["self_certainty"].tolist() == pytest.approx([0.4298, 0.0], abs=1e-4)
    assert float(found["entropy"].mean()) == pytest.approx(1.1634, abs=1e-4)
    assert float(found["self_certainty"].mean()) == pytest.approx(0.2149, abs=1e-4)


def test_self_certainty_is_the_divergence_from_uniform_and_not_to_it():
    """KL(p || U) would be ln V - H = 0.4458, and rank as the entropy does."""
    found = of([0.7, 0.1, 0.1, 0.1])
    assert float(found["self_certainty"]) == pytest.approx(1.8161 - math.log(4), abs=1e-4)
    assert abs(float(found["self_certainty"]) - (math.log(4) - float(found["entropy"]))) > 0.01


def test_the_two_rank_the_worked_pair_the_other_way_round():
    found = of([0.9, 0.1 / 3, 0.1 / 3, 0.1 / 3], [0.6, 0.3999, 5e-5, 5e-5])
    assert found["entropy"].tolist() == pytest.approx([0.4349, 0.6740], abs=1e-4)
    assert found["self_certainty"].tolist() == pytest.approx([1.1909, 3.9223], abs=1e-4)


def test_a_constant_added_to_the_logits_changes_nothing():
    plain, shifted = of([0.7, 0.1, 0.1, 0.1]), of([0.7, 0.1, 0.1, 0.1], shift=50.0)
    for name in NAMES:
        assert float(shifted[name]) == pytest.approx(float(plain[name]), abs=1e-5)


def test_the_temperature_is_applied():
    logits = torch.tensor([[2.0, 0.0, -1.0]])
    found = measured(logits, torch.tensor([0]), 0.5)
    p = (logits[0] / 0.5).softmax(-1)
    assert float(found["entropy"]) == pytest.approx(float(-(p * p.log()).sum()), abs=1e-6)
    assert float(found["self_certainty"]) == pytest.approx(float(-p.log().mean() - math.log(3)), abs=1e-6)
    assert float(found["logprob"]) == pytest.approx(float(p[0].log()), abs=1e-6)


def test_banned_tokens_are_no_part_of_the_vocabulary():
    with_banned = of([0.35, 0.5, 0.05, 0.05, 0.05], banned=torch.tensor([1]))
    without = of([0.7, 0.1, 0.1, 0.1])
    for name in ("logprob", *NAMES):
        assert float(with_banned[name]) == pytest.approx(float(without[name]), abs=1e-5)


def test_a_token_that_cannot_be_sampled_leaves_all_finite():
    found = of([0.5, 0.5, 0.0])
    assert float(found["entropy"]) == pytest.approx(math.log(2)) and float(found["self_certainty"]) == 0


def test_half_precision_logits_are_read_in_float32():
    logits = torch.randn(1, 4096, generator=torch.Generator().manual_seed(0)).bfloat16()
    found = measured(logits, torch.tensor([0]), 1.0)
    exact = logits[0].double().log_softmax(-1)
    assert found["entropy"].dtype == torch.float32
    assert float(found["entropy"]) == pytest.approx(float(-(exact.exp() * exact).sum()), rel=1e-6)
    assert float(found["self_certainty"]) == pytest.approx(float(-exact.mean() - math.log(4096)), rel=1e-5)


@pytest.mark.parametrize("at_once", [1, 10, 11, 64])
def test_in_turns_as_all_at_once(monkeypatch, at_once):
    """Bit for bit: a token's numbers do not depend on which other tokens share its turn."""
    logits = torch.randn(5, 5, generator=torch.Generator().manual_seed(0))
    target = torch.tensor([0, 4, 2, 2, 1])
    whole = token_statistics(logits, target, 0.7, torch.tensor([3]), NAMES)
    monkeypatch.setattr(statistics, "_VALUES_AT_ONCE", at_once)
    assert torch.equal(token_statistics(logits, target, 0.7, torch.tensor([3]), NAMES), whole)


def test_no_turn_holds_more_values_than_it_may(monkeypatch):
    seen = []
    monkeypatch.setattr(statistics, "_VALUES_AT_ONCE", 30)
    monkeypatch.setitem(
        statistics.STATISTICS, "size", lambda logprobs: seen.append(logprobs.numel()) or logprobs[:, 0]
    )
    token_statistics(torch.randn(40, 10), torch.arange(40) % 10, 1.0, NOTHING, ["size"])
    assert max(seen) == 30 and sum(seen) == 400


def test_a_token_is_measured_where_it_was_drawn_and_not_after_it(tiny_agent):
    """Three tokens of a toy: what predicted token t are the logits at t - 1, the prompt's last one for the first."""
    agent = tiny_agent("qwen2")
    [problem] = contract.sample_problems(images=False)[:1]
    prompt, completion = agent.encode(problem), torch.tensor([5, 9, 3])
    found = agent.policy.statistics([TokenGroup(prompt, [completion])], NAMES)
    ids = torch.cat([prompt.ids, completion])[None]
    with torch.no_grad():
        logits = agent.model(input_ids=ids).logits[0]
    start = len(prompt.ids) - 1
    kept = torch.ones(logits.shape[-1], dtype=torch.bool).index_fill(0, agent.policy.banned, False)
    logprobs = logits[start : start + 3][:, kept].log_softmax(-1)
    assert torch.allclose(found["entropy"], -(logprobs.exp() * logprobs).sum(-1), atol=1e-4)
    assert torch.allclose(
        found["self_certainty"], -logprobs.mean(-1) - math.log(logprobs.shape[-1]), atol=1e-4
    )
    after = logits[start + 1 : start + 4][:, kept].log_softmax(-1)
    assert not torch.allclose(found["self_certainty"], -after.mean(-1) - math.log(after.shape[-1]), atol=1e-4)


@pytest.mark.parametrize("family", ["qwen2_5_vl", "internvl", "gemma3"])
def test_tree_rows_give_what_plain_rows_give(tiny_agent, family):
    agent = tiny_agent(family, rollouts=RolloutsConfig(temperature=0.8))
    groups = contract.prepare(agent).groups
    tree = agent.policy.statistics(groups, NAMES)
    agent.policy.shared_prefix = False
    plain = agent.policy.statistics(groups, NAMES)
    for name in ("logprob", *NAMES):
        assert torch.allclose(tree[name], plain[name], atol=1e-4), name
        assert not tree[name].requires_grad
    assert torch.allclose(tree["logprob"], agent.policy.logprobs(groups).detach(), atol=1e-4)
