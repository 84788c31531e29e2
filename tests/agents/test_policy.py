"""Ways of computing the same log-probabilities agree; and what cannot share a prefix says so."""

from __future__ import annotations

import logging

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, GPT2Config, Lfm2Config

from mmcorl.agents import contract
from mmcorl.agents.agent import Agent
from mmcorl.agents.backbones import backbone_for
from mmcorl.agents.batches import TokenGroup
from mmcorl.agents.policy import Policy, token_logprobs
from mmcorl.config import AgentConfig, RolloutsConfig


def gradients(model, loss):
    model.zero_grad()
    loss.backward()
    found = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    return found


def test_token_logprobs_are_those_of_a_softmax_without_the_banned():
    logits = torch.randn(1, 5, generator=torch.Generator().manual_seed(0))
    found = token_logprobs(logits, torch.tensor([4]), 0.7, torch.tensor([0, 2]))
    assert torch.allclose(found[0], (logits[0, [1, 3, 4]] / 0.7).log_softmax(0)[2:])


@pytest.mark.parametrize("family", ["qwen2_5_vl", "gemma3"])
def test_gradient_checkpointing_changes_nothing(tiny_agent, family):
    agent = tiny_agent(family)
    trial = contract.prepare(agent)
    without = gradients(agent.model, agent.policy.logprobs(trial.groups).sum())
    agent.model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    logprobs = agent.policy.logprobs(trial.groups)
    assert torch.allclose(logprobs.detach(), trial.sampled, atol=1e-4)
    for name, gradient in gradients(agent.model, logprobs.sum()).items():
        assert torch.allclose(gradient, without[name], atol=1e-4 * float(without[name].abs().max() + 1)), name


def test_dropout_in_the_configuration_is_left_out(tiny_folder, tmp_path):
    """Else the policy, noisy in training mode, would never be what the sampler drew from."""
    tokenizer = AutoTokenizer.from_pretrained(tiny_folder("qwen2"))
    model = AutoModelForCausalLM.from_config(
        GPT2Config(vocab_size=len(tokenizer), n_embd=64, n_layer=2, n_head=2, resid_pdrop=0.5, attn_pdrop=0.5)
    )
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    for part in (model, tokenizer):
        part.save_pretrained(tmp_path / "gpt2")
    agent = Agent.load("a", AgentConfig(model=str(tmp_path / "gpt2")))
    trial = contract.prepare(agent)
    assert agent.model.training
    contract.sampler_equals_policy(trial)
    contract.shared_prefix_equals_plain(trial)
    agent.snapshot()(tmp_path / "saved")
    assert AutoConfig.from_pretrained(tmp_path / "saved").resid_pdrop == 0.5


def test_temperature_is_that_of_the_sampler(tiny_agent):
    agent = tiny_agent("internvl", rollouts=RolloutsConfig(temperature=0.6))
    problems = contract.sample_problems(images=True)
    rollouts = agent.rollout(problems, samples=2, max_tokens=6, noise_key=("t",), temperature=0.6)
    groups = [
        TokenGroup(agent.encode(p), [torch.tensor(c.token_ids) for c in r.completions])
        for p, r in zip(problems, rollouts, strict=True)
    ]
    sampled = torch.tensor([x for r in rollouts for c in r.completions for x in c.logprobs])
    assert torch.allclose(agent.policy.logprobs(groups).detach(), sampled, atol=1e-4)


def test_a_sliding_window_shorter_than_the_prompt(tiny_agent):
    agent = tiny_agent("gemma3")
    config = agent.model.config.text_config
    window = 16
    config.sliding_window = window
    for layer in agent.model.model.language_model.layers:
        if layer.self_attn.sliding_window is not None:
            layer.self_attn.sliding_window = window
    trial = contract.prepare(agent)
    assert max(len(p.ids) for p in trial.prompts) > 2 * window
    contract.shared_prefix_equals_plain(trial)
    contract.sampler_equals_policy(trial)


def test_a_model_that_carries_state_falls_back_and_says_so(tiny_agent, caplog):
    config = Lfm2Config(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, layer_types=["conv", "full_attention"],
    )  # fmt: skip
    model = AutoModelForCausalLM.from_config(config)
    with caplog.at_level(logging.WARNING):
        policy = Policy(model, backbone_for(config), temperature=1.0, banned=[])
    assert not policy.shared_prefix
    assert "conv" in caplog.text and "once a completion" in caplog.text


def test_the_check_on_real_inputs_falls_back_when_the_ways_differ(tiny_agent, caplog, monkeypatch):
    agent = tiny_agent("qwen2")
    trial = contract.prepare(agent)
    assert agent.policy.check_shared_prefix(trial.groups) < 1e-4
    monkeypatch.setattr(
        Policy, "shared_logprobs", lambda self, groups: self.plain_logprobs(groups) + torch.tensor(0.01)
    )
    with caplog.at_level(logging.WARNING):
        agent.policy.check_shared_prefix(trial.groups)
    assert not agent.policy.shared_prefix and "differ" in caplog.text
