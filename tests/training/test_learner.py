"""One update is one update, however the batch is cut; and it is the one a plain computation gives."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch

from mmcorl.agents import contract
from mmcorl.agents.batches import TokenGroup
from mmcorl.config import LossConfig, OptimizerConfig
from mmcorl.errors import MmcorlError
from mmcorl.training import grpo
from mmcorl.training.learner import Learner
from mmcorl.training.world import World

OPTIMIZER = OptimizerConfig(lr=1e-3, schedule="constant", warmup_share=0.0, clip_norm=1e6)
SAMPLES, MAX_TOKENS = 4, 8


@pytest.fixture
def rolled(tiny_agent):
    """An agent, its rollouts of five problems, and advantages of which many are zero."""
    agent = tiny_agent("qwen2_5_vl")
    problems = contract.sample_problems(images=True)[:4]
    rollouts = agent.rollout(problems, samples=SAMPLES, max_tokens=MAX_TOKENS, noise_key=("learner",))
    advantages = torch.tensor([[1.2, -0.4, -0.4, -0.4], [0, 0, 0, 0], [0.9, 0, -0.9, 0], [-1, 1, 1, -1]])
    return agent, rollouts, advantages


def lengths_of(rollouts):
    return torch.tensor([[len(c.token_ids) for c in r.completions] for r in rollouts])


def weights_of(rollouts, kind="dapo"):
    lengths = lengths_of(rollouts)
    return grpo.completion_weights(lengths.flatten(), kind, MAX_TOKENS).view_as(lengths)


def learned(agent, rollouts, advantages, weights, batch_tokens=10**6, **loss):
    """Weights after one step of learning, starting from the agent's; the agent is left as it was."""
    before = copy.deepcopy(agent.model.state_dict())
    learner = Learner(
        agent, World(), LossConfig.model_validate(loss), OPTIMIZER, total_updates=4, batch_tokens=batch_tokens
    )
    gradients, step = {}, learner.layout.step

    def step_and_look():
        norm = step()
        gradients.update({n: p.grad.clone() for n, p in agent.model.named_parameters()})
        return norm

    learner.layout.step = step_and_look
    metrics = learner.learn(rollouts, advantages, weights, updates_done=0)
    assert all(p.grad is None for p in agent.model.parameters())
    after = copy.deepcopy(agent.model.state_dict())
    agent.model.load_state_dict(before)
    return metrics, gradients, after


def test_one_micro_batch_or_many(rolled):
    agent, rollouts, advantages = rolled
    whole, gradients, _ = learned(agent, rollouts, advantages, weights_of(rollouts))
    cut, cut_gradients, _ = learned(agent, rollouts, advantages, weights_of(rollouts), batch_tokens=1)
    assert cut == pytest.approx(whole, rel=1e-4, abs=1e-6)
    for name, gradient in gradients.items():
        assert torch.allclose(cut_gradients[name], gradient, atol=1e-5 * float(gradient.abs().max() + 1)), (
            name
        )


@pytest.mark.parametrize("kind", ["grpo", "dapo", "dr_grpo", "bnpo"])
def test_the_gradient_is_that_of_the_plain_loss_over_all_completions(rolled, kind):
    """Plain rows, every completion computed, the loss written out."""
    agent, rollouts, advantages = rolled
    _, gradients, _ = learned(
        agent, rollouts, advantages, weights_of(rollouts, kind), kind=kind, sampler_correction="none"
    )
    groups = [
        TokenGroup(agent.encode(r.problem), [torch.tensor(c.token_ids) for c in r.completions])
        for r in rollouts
    ]
    logprobs = agent.policy.plain_logprobs(groups)
    lengths = lengths_of(rollouts).flatten()
    n, total = len(lengths), int(lengths.sum())
    per_completion = {
        "grpo": 1 / (n * lengths),
        "bnpo": 1 / (n * lengths),  # of one completion each
        "dapo": torch.full((n,), 1 / total),
        "dr_grpo": torch.full((n,), 1 / (n * MAX_TOKENS)),
    }[kind]
    weight = torch.repeat_interleave(per_completion * advantages.flatten(), lengths)
    (-(weight * logprobs).sum()).backward()
    for name, parameter in agent.model.named_parameters():
        expected = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        assert torch.allclose(gradients[name], expected, atol=1e-5 * float(expected.abs().max() + 1)), name


def test_nothing_live_still_steps_the_optimiser_with_zero_gradient(rolled):
    agent, rollouts, advantages = rolled
    metrics, gradients, _ = learned(agent, rollouts, torch.zeros_like(advantages), weights_of(rollouts))
    assert metrics["grad_norm"] == 0 and metrics["loss"] == 0
    assert all(not gradient.any() for gradient in gradients.values())


def test_completions_of_weight_zero_are_left_out(rolled):
    agent, rollouts, advantages = rolled
    weights = weights_of(rollouts)
    weights = weights.clone()
    weights[3] = 0
    _, masked, _ = learned(agent, rollouts, advantages, weights)
    silent = advantages.clone()
    silent[3] = 0
    _, expected, _ = learned(agent, rollouts, silent, weights_of(rollouts))
    assert all(torch.equal(masked[name], expected[name]) for name in masked)


def test_several_updates_clip_against_the_policy_that_sampled(rolled):
    agent, rollouts, advantages = rolled
    one, _, _ = learned(agent, rollouts, advantages, weights_of(rollouts))
    two, _, _ = learned(agent, rollouts, advantages, weights_of(rollouts), updates_per_rollout=2)
    assert one["ratio"] == pytest.approx(1.0, abs=1e-6) and one["clipped"] == 0
    assert two["ratio"] != pytest.approx(1.0, abs=1e-4)


def test_completions_of_the_same_tokens_are_measured_alike(rolled):
    agent, rollouts, _ = rolled
    first = rollouts[0].completions[0]
    twice = replace(rollouts[0], completions=(first, *rollouts[0].completions[1:], first, first))
    observed = observed_by(agent, [twice, rollouts[1]])
    for name in observed:
        row = observed[name][0]
        assert len(row) == len(twice.completions)
        assert torch.equal(row[0], row[-1]) and torch.equal(row[0], row[-2])
        alone = observed_by(agent, rollouts[:1])[name][0]
        assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(row, alone, strict=False))


def observed_by(agent, rollouts, batch_tokens=10**6):
    learner = Learner(agent, World(), LossConfig(), OPTIMIZER, total_updates=4, batch_tokens=batch_tokens)
    return learner.observe(rollouts, ["entropy", "self_certainty"])


def test_statistics_belong_to_their_completions_however_the_batch_is_cut(rolled):
    agent, rollouts, _ = rolled
    whole, cut = observed_by(agent, rollouts), observed_by(agent, rollouts, batch_tokens=1)
    for name in ("logprob", "entropy", "self_certainty"):
        for rollout, row, other in zip(rollouts, whole[name], cut[name], strict=True):
            for completion, values, others in zip(rollout.completions, row, other, strict=True):
                assert len(values) == len(completion.token_ids)
                assert torch.allclose(values, others, atol=1e-4)
                if name == "logprob":
                    assert torch.allclose(values, torch.tensor(completion.logprobs), atol=1e-4)


def test_several_updates_take_the_old_logprobs_from_the_statistics(rolled, monkeypatch):
    """The same update as without them, and no forward of its own for what is known already."""
    agent, rollouts, advantages = rolled
    observed = observed_by(agent, rollouts)
    before = copy.deepcopy(agent.model.state_dict())
    results = []
    for known in (None, observed):
        learner = Learner(
            agent, World(), LossConfig(updates_per_rollout=2), OPTIMIZER, total_updates=4, batch_tokens=10**6
        )
        calls = []
        monkeypatch.setattr(
            learner,
            "_logprobs",
            lambda *a, f=Learner._logprobs, self=learner, n=calls: n.append(1) or f(self, *a),
        )
        results.append((learner.learn(rollouts, advantages, weights_of(rollouts), 0, known), len(calls)))
        agent.model.load_state_dict(before)
    (fresh, forwards), (reused, fewer) = results
    assert reused == pytest.approx(fresh, rel=1e-3, abs=1e-5)
    assert (forwards, fewer) == (4, 2)


def test_no_rollouts_have_no_statistics(rolled):
    agent, _, _ = rolled
    assert observed_by(agent, []) == {"logprob": [], "entropy": [], "self_certainty": []}


def test_a_reference_pulls_back_where_there_is_no_advantage(rolled, tiny_agent):
    agent, rollouts, advantages = rolled
    reference = tiny_agent("qwen2_5_vl").policy
    with torch.no_grad():
        for parameter in reference.model.parameters():
            parameter.mul_(1.05)
    learner = Learner(
        agent,
        World(),
        LossConfig(beta=0.1),
        OPTIMIZER,
        total_updates=4,
        batch_tokens=10**6,
        reference=reference,
    )
    metrics = learner.learn(rollouts, torch.zeros_like(advantages), weights_of(rollouts), updates_done=0)
    assert metrics["kl"] > 0 and metrics["grad_norm"] > 0
    assert metrics["loss"] == pytest.approx(0.1 * metrics["kl"], rel=1e-3)


def test_resumed_optimiser_continues_bit_for_bit(rolled, tiny_agent, tmp_path):
    agent, rollouts, advantages = rolled
    weights = weights_of(rollouts)

    def learner_of(agent):
        return Learner(agent, World(), LossConfig(), OPTIMIZER, total_updates=4, batch_tokens=10**6)

    learner = learner_of(agent)
    learner.learn(rollouts, advantages, weights, updates_done=0)
    write_model, write_state = agent.snapshot(), learner.snapshot()
    learner.learn(rollouts, advantages, weights, updates_done=1)  # what is written is what was before
    write_model(tmp_path / "model")
    write_state(tmp_path)

    again = tiny_agent("qwen2_5_vl")
    again.model.load_state_dict(type(again.model).from_pretrained(tmp_path / "model").state_dict())
    resumed = learner_of(again)
    resumed.load(tmp_path)
    resumed.learn(rollouts, advantages, weights, updates_done=1)
    for (name, a), b in zip(agent.model.named_parameters(), again.model.parameters(), strict=True):
        assert torch.equal(a, b), name


def test_frozen_parts_do_not_move(tiny_agent):
    agent = tiny_agent("internvl", freeze=["vision", "projector"])
    problems = contract.sample_problems(images=True)[2:4]
    rollouts = agent.rollout(problems, samples=2, max_tokens=4, noise_key=("f",))
    before = copy.deepcopy(agent.model.state_dict())
    learner = Learner(agent, World(), LossConfig(), OPTIMIZER, total_updates=1, batch_tokens=10**6)
    learner.learn(rollouts, torch.tensor([[1.0, -1.0], [1.0, -1.0]]), weights_of(rollouts), updates_done=0)
    moved = {n for n, p in agent.model.named_parameters() if not torch.equal(p, before[n])}
    assert moved and {agent.backbone.part_of(name) for name in moved} == {"text"}


def test_an_agent_with_every_part_frozen_is_refused(tiny_agent):
    agent = tiny_agent("internvl", freeze=["vision", "projector", "text"])
    with pytest.raises(MmcorlError, match="freeze"):
        Learner(agent, World(), LossConfig(), OPTIMIZER, total_updates=1, batch_tokens=10**6)
