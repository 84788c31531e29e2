"""Sampling: one noise, one result, whatever the batch; and the distribution is the policy's."""

from __future__ import annotations

import pytest
import torch

from mmcorl.agents import contract
from mmcorl.agents.agent import noise_seed, stop_ids
from mmcorl.agents.batches import TokenGroup
from mmcorl.agents.engines.transformers import nucleus, sampling_noise
from mmcorl.config import RolloutsConfig
from mmcorl.errors import MmcorlError
from mmcorl.problems import Problem


def test_noise_is_a_function_of_its_key():
    seed = noise_seed((0, 3, "p"))
    a, b = sampling_noise(seed, 2, 4), sampling_noise(noise_seed((0, 3, "p")), 2, 4)
    assert torch.equal(a, b) and a.shape == (2, 4) and a.min() >= 0 and a.max() < 1
    assert not torch.equal(a, sampling_noise(noise_seed((0, 4, "p")), 2, 4))


def test_small_batches_give_the_completions_of_one_large(tiny_agent):
    problems = contract.sample_problems(images=True)
    large = tiny_agent("qwen2_5_vl").rollout(problems, samples=3, max_tokens=8, noise_key=(1,))
    agent = tiny_agent("qwen2_5_vl", rollouts=RolloutsConfig(batch_tokens=1))
    small = agent.rollout(problems, samples=3, max_tokens=8, noise_key=(1,))
    assert [[c.token_ids for c in g.completions] for g in large] == [
        [c.token_ids for c in g.completions] for g in small
    ]


def test_rows_that_stop_leave_the_others_unchanged(tiny_agent):
    """With frequent stops, every completion still is what the policy says of it."""
    agent = tiny_agent("llama")
    problems = [Problem(str(i), f"What is {i} + {i}?") for i in range(4)]
    with torch.no_grad():
        agent.model.get_output_embeddings().weight[agent.engine.stop_ids[0]] *= 4
        groups = agent.rollout(problems, samples=8, max_tokens=24, noise_key=("s",))
        lengths = {len(c.token_ids) for g in groups for c in g.completions}
        token_groups = [
            TokenGroup(agent.encode(g.problem), [torch.tensor(c.token_ids) for c in g.completions])
            for g in groups
        ]
        policy = agent.policy.logprobs(token_groups)
    assert len(lengths) > 3
    sampled = torch.tensor([x for g in groups for c in g.completions for x in c.logprobs])
    assert torch.allclose(policy, sampled, atol=1e-4)
    for group in groups:
        for completion in group.completions:
            assert completion.finished == (completion.token_ids[-1] in agent.engine.stop_ids.tolist())


def test_first_tokens_follow_the_model_distribution(tiny_agent):
    agent = tiny_agent("qwen2")
    problem = Problem("p", "What is 2 + 3?")
    prompt = agent.encode(problem)
    [group] = agent.rollout([problem], samples=4000, max_tokens=1, noise_key=(0,))
    with torch.no_grad():
        expected = agent.model(input_ids=prompt.ids[None]).logits[0, -1].softmax(-1)
    drawn = (
        torch.bincount(torch.tensor([c.token_ids[0] for c in group.completions]), minlength=len(expected))
        / 4000
    )
    likely = expected > 0.01
    error = (drawn - expected)[likely].abs()
    assert likely.sum() > 3
    assert (error < 5 * (expected * (1 - expected) / 4000)[likely].sqrt()).all()


def test_the_nucleus_holds_the_most_probable_tokens_that_reach_its_share():
    probabilities = torch.tensor([[0.1, 0.5, 0.15, 0.25], [0.25, 0.25, 0.25, 0.25]], dtype=torch.float64)
    assert nucleus(probabilities, 0.75).tolist() == [[0, 0.5, 0, 0.25], [0.25, 0.25, 0.25, 0]]
    assert nucleus(probabilities, 0.76).tolist() == [[0, 0.5, 0.15, 0.25], [0.25, 0.25, 0.25, 0.25]]
    assert nucleus(probabilities, 0.01).tolist() == [[0, 0.5, 0, 0], [0.25, 0, 0, 0]]


def test_nothing_outside_the_nucleus_is_drawn(tiny_agent):
    agent = tiny_agent("qwen2")
    problem = Problem("p", "What is 2 + 3?")
    [group] = agent.rollout([problem], samples=500, max_tokens=1, noise_key=(0,), top_p=0.5)
    with torch.no_grad():
        logits = agent.model(input_ids=agent.encode(problem).ids[None]).logits[0, -1]
    banned = torch.tensor(sorted(agent.backbone.placeholder_ids()), dtype=torch.long)
    inside = nucleus(logits.index_fill(-1, banned, -torch.inf).double().softmax(-1)[None], 0.5)[0] > 0
    drawn = {c.token_ids[0] for c in group.completions}
    assert drawn <= set(inside.nonzero()[:, 0].tolist()) and 1 < len(drawn) < len(inside) / 2
    [all_tokens] = agent.rollout([problem], samples=500, max_tokens=1, noise_key=(0,))
    assert not {c.token_ids[0] for c in all_tokens.completions} <= drawn


def test_log_probabilities_that_are_no_numbers_stop_the_run_with_the_problem(tiny_agent):
    agent = tiny_agent("qwen3")
    with torch.no_grad():
        agent.model.get_output_embeddings().weight.fill_(torch.nan)
    with pytest.raises(MmcorlError, match=r"not numbers on problem 'p'.*optimizer\.lr"):
        agent.rollout([Problem("p", "2?")], samples=2, max_tokens=2, noise_key=(0,))


def test_no_problems_have_no_completions(tiny_agent):
    """A rank may get none of a small evaluation set."""
    assert tiny_agent("qwen3").rollout([], samples=2, max_tokens=2, noise_key=(0,)) == []


def test_more_problems_than_are_held_at_once(tiny_agent, monkeypatch):
    agent = tiny_agent("qwen3")
    problems = [Problem(str(i), f"What is {i} + {i}?") for i in range(5)]
    whole = agent.rollout(problems, samples=2, max_tokens=3, noise_key=(0,))
    monkeypatch.setattr("mmcorl.agents.agent._PROMPTS_HELD", 2)
    assert [g.problem.id for g in whole] == ["0", "1", "2", "3", "4"]
    for parted, group in zip(
        agent.rollout(problems, samples=2, max_tokens=3, noise_key=(0,)), whole, strict=True
    ):
        assert [c.token_ids for c in parted.completions] == [c.token_ids for c in group.completions]


def test_a_model_without_a_stop_token_is_refused(tiny_agent):
    agent = tiny_agent("qwen3")
    agent.model.generation_config.eos_token_id = None
    agent.prompts.tokenizer.eos_token = None
    with pytest.raises(MmcorlError, match="no stop token"):
        stop_ids(agent.model, agent.prompts.tokenizer)


def test_generation_leaves_the_model_in_training_mode(tiny_agent):
    agent = tiny_agent("qwen3")
    agent.rollout([Problem("p", "2?")], samples=1, max_tokens=2, noise_key=None)
    assert agent.model.training
