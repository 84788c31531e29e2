"""Logits of some tokens at a time are those of all at once, and what is never made is never held."""

from __future__ import annotations

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from mmcorl.agents import contract, head
from mmcorl.agents.head import in_turns, measuring


def gradients(model, loss):
    model.zero_grad()
    loss.backward()
    return {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}


class LargestLogits(TorchDispatchMode):
    """The most numbers of any tensor that was made with the vocabulary as its last axis, the head's weights aside."""

    def __init__(self, vocabulary, width):
        super().__init__()
        self.vocabulary, self.weights, self.numbers = vocabulary, (width, vocabulary), 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, tuple | list) else [out]:
            if not isinstance(tensor, torch.Tensor) or tensor.shape == self.weights:
                continue
            if tensor.shape[-1:] == (self.vocabulary,):
                self.numbers = max(self.numbers, tensor.numel())
        return out


def test_tokens_in_turns_are_those_of_all_at_once(monkeypatch):
    target = torch.tensor([4, 1, 3, 1, 3])

    def values_and_gradient():
        logits = torch.randn(5, 7, generator=torch.Generator().manual_seed(0)).requires_grad_()
        values = in_turns(lambda x, t: x.log_softmax(-1).gather(-1, t[:, None]), logits, target)
        (values[:, 0] * torch.arange(1, 6)).sum().backward()
        return values.detach(), logits.grad

    whole, whole_gradient = values_and_gradient()
    monkeypatch.setattr(head, "TOKENS_AT_ONCE", 2)
    turns, gradient = values_and_gradient()
    assert torch.equal(turns, whole) and torch.allclose(gradient, whole_gradient)


@pytest.mark.parametrize("family", ["qwen2_5_vl", "internvl", "gemma3", "llama"])
def test_the_head_in_turns_is_the_models_own_forward(tiny_agent, monkeypatch, family):
    """Values and every gradient, tied head or not; and no vocabulary is ever made for more tokens than a turn has."""
    monkeypatch.setattr(head, "TOKENS_AT_ONCE", 4)
    agent = tiny_agent(family)
    trial = contract.prepare(agent)
    policy = agent.policy
    size, width = agent.model.get_output_embeddings().weight.shape
    with LargestLogits(size, width) as made:
        values = policy.logprobs(trial.groups)
        found = gradients(agent.model, values.sum())
    assert policy.head_in_turns and made.numbers <= 4 * size
    policy.head_in_turns = False
    plain = policy.logprobs(trial.groups)
    assert torch.allclose(values, plain, atol=1e-5)
    for name, gradient in gradients(agent.model, plain.sum()).items():
        assert torch.allclose(found[name], gradient, atol=1e-5 * float(gradient.abs().max() + 1)), name


def test_a_model_that_does_more_than_its_head_gives_its_logits(tiny_agent):
    """A cap on the logits, as some families have: what the head alone says is not what the model says."""
    agent = tiny_agent("gemma3")
    agent.model.register_forward_hook(lambda module, inputs, out: cap(out))
    trial = contract.prepare(agent)
    values = agent.policy.logprobs(trial.groups)
    assert not agent.policy.head_in_turns
    assert torch.allclose(values, agent.policy.logprobs(trial.groups))


def cap(out):
    out.logits = torch.tanh(out.logits / 2) * 2
    return out


def test_the_head_is_left_as_it_was(tiny_agent):
    layer = torch.nn.Linear(3, 5)
    hidden = torch.randn(2, 4, 3)
    places = (torch.tensor([1]), torch.tensor([0]), torch.tensor([2]))
    with measuring(layer, 2, *places, lambda logits, target: logits.gather(-1, target[:, None])) as measured:
        out = layer(hidden)
    assert out is measured[0] and out.shape == (1, 1, 1)
    assert torch.allclose(out[0, 0], layer(hidden)[1, 2, 2])
    with pytest.raises(ZeroDivisionError), measuring(layer, 2, *places, lambda logits, target: 1 / 0):
        layer(hidden)
    assert layer(hidden).shape == (2, 4, 5)


def test_a_family_that_gives_all_logits_samples_and_learns_the_same(tiny_agent, monkeypatch):
    """Its forward has no `logits_to_keep`: then all places pass the head while sampling, and in learning none more."""
    agent = tiny_agent("qwen2")
    trial = contract.prepare(agent)
    expected = agent.policy.logprobs(trial.groups)
    forward = type(agent.model).forward

    def without(self, input_ids, attention_mask, position_ids, use_cache, cache=None, past_key_values=None):
        kept = {"cache": cache, "past_key_values": past_key_values}
        given = {name: value for name, value in kept.items() if value is not None}
        return forward(self, input_ids, attention_mask, position_ids, use_cache=use_cache, **given)

    monkeypatch.setattr(type(agent.model), "forward", without)
    assert torch.allclose(agent.policy.logprobs(trial.groups), expected, atol=1e-5)
    again = contract.prepare(agent)
    assert torch.allclose(again.sampled, trial.sampled, atol=1e-5)
