"""The slow copy: its schedule, its arithmetic, and that a resumed run goes on with the very same one."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file, save_file

from mmcorl.agents import contract
from mmcorl.agents.agent import Agent
from mmcorl.agents.batches import TokenGroup
from mmcorl.config import AgentConfig
from mmcorl.errors import MmcorlError
from mmcorl.training.teacher import Teacher, update_rate

TRAINED = "model.embed_tokens.weight"


def teacher_of(agent, copy, start=0.01, end=1e-5, total_steps=100):
    return Teacher(copy, agent, start=start, end=end, total_steps=total_steps)


def test_worked_rates():
    rates = [update_rate(step, 100, 0.01, 1e-5) for step in (1, 26, 51, 101)]
    assert rates == pytest.approx([0.01, 0.008537, 0.005005, 1e-5], abs=1e-6)


def test_worked_average(tiny_agent):
    """Teacher 0, agent 1 and then 2, rate 0.01: 0.01 and then 0.0299."""
    agent, copy = tiny_agent("qwen2"), tiny_agent("qwen2")
    teacher = teacher_of(agent, copy, end=0.01)
    with torch.no_grad():
        for model, value in ((agent.model, 1.0), (copy.model, 0.0)):
            for parameter in model.parameters():
                parameter.fill_(value)
    teacher.follow(1)
    assert {round(float(w.mean()), 6) for w in copy.model.parameters()} == {0.01}  # every tensor moved
    with torch.no_grad():
        for parameter in agent.model.parameters():
            parameter.fill_(2.0)
    teacher.follow(2)
    assert {round(float(w.mean()), 6) for w in copy.model.parameters()} == {0.0299}


def test_a_rate_that_half_precision_would_lose_still_moves_it(tiny_agent):
    agent, copy = tiny_agent("qwen2", dtype="bfloat16"), tiny_agent("qwen2", dtype="bfloat16")
    teacher = teacher_of(agent, copy, start=1e-3, end=1e-3)
    weight, target = copy.model.get_parameter(TRAINED), agent.model.get_parameter(TRAINED)
    assert weight.dtype == torch.float32
    with torch.no_grad():
        weight.fill_(1.0)
        target.fill_(2.0)
    teacher.follow(1)
    assert torch.allclose(weight, torch.tensor(1.001)) and torch.tensor(1.001).bfloat16() == 1.0


def test_an_equal_agent_leaves_it_bit_for_bit(tiny_agent):
    agent, copy = tiny_agent("qwen2"), tiny_agent("qwen2")
    before = {name: w.clone() for name, w in copy.model.named_parameters()}
    teacher_of(agent, copy).follow(7)
    assert all(torch.equal(w, before[name]) for name, w in copy.model.named_parameters())


def test_it_is_never_trained_and_shares_what_the_agent_does_not_train(tiny_agent):
    agent, copy = tiny_agent("internvl", freeze=["vision"]), tiny_agent("internvl", freeze=["vision"])
    teacher_of(agent, copy)
    assert not any(w.requires_grad for w in copy.model.parameters())
    shared = {
        agent.backbone.part_of(name)
        for (name, a), b in zip(agent.model.named_parameters(), copy.model.parameters(), strict=True)
        if a.data_ptr() == b.data_ptr()
    }
    assert shared == {"vision"}


def test_saved_and_loaded_bit_for_bit(tiny_agent, tmp_path):
    agent, copy = tiny_agent("internvl", freeze=["vision"]), tiny_agent("internvl", freeze=["vision"])
    teacher = teacher_of(agent, copy, start=0.3)
    with torch.no_grad():
        for parameter in agent.model.parameters():
            if parameter.requires_grad:
                parameter.mul_(1.1)
    teacher.follow(1)
    teacher.snapshot()(tmp_path)
    again = tiny_agent("internvl", freeze=["vision"])
    teacher_of(agent, again).load(tmp_path)
    for (name, a), b in zip(copy.model.named_parameters(), again.model.parameters(), strict=True):
        assert torch.equal(a, b), name


def test_what_is_no_teacher_of_this_model_is_refused(tiny_agent, tmp_path):
    agent, copy = tiny_agent("qwen2"), tiny_agent("qwen2")
    teacher = teacher_of(agent, copy)
    with pytest.raises(MmcorlError, match="resume from the one before"):
        teacher.load(tmp_path)
    teacher.snapshot()(tmp_path)
    tensors = load_file(tmp_path / "teacher.safetensors")
    del tensors[TRAINED]
    save_file(tensors, tmp_path / "teacher.safetensors")
    with pytest.raises(MmcorlError, match=TRAINED):
        teacher.load(tmp_path)


@pytest.mark.parametrize("quantize", [None, "4bit", "8bit"])
def test_of_an_agent_with_adapters_it_averages_these_and_shares_the_rest(tiny_folder, tmp_path, quantize):
    settings = {"model": str(tiny_folder("qwen2_5_vl")), "lora": {"rank": 4}, "quantize": quantize}
    agent, copy, again = (Agent.load("ann", AgentConfig.model_validate(settings), seed=3) for _ in range(3))
    teacher = teacher_of(agent, copy, start=0.25, end=0.25)
    with torch.no_grad():
        for name, weight in agent.model.named_parameters():
            if ".lora_B." in name:
                weight.fill_(1.0)
    teacher.follow(1)
    for name, weight in copy.model.named_parameters():
        own = agent.model.get_parameter(name)
        if ".lora_B." in name:
            assert torch.allclose(weight, torch.tensor(0.25))
        else:
            assert torch.equal(weight, own)
            assert ".lora_A." in name or weight.data_ptr() == own.data_ptr()
    problem = contract.sample_problems(images=True)[-1]
    group = TokenGroup(agent.encode(problem), [torch.tensor([7, 8, 9])])
    assert not torch.equal(copy.policy.logprobs([group]), agent.policy.logprobs([group]))
    teacher.snapshot()(tmp_path)
    assert all("lora" in name for name in load_file(tmp_path / "teacher.safetensors"))
    teacher_of(agent, again).load(tmp_path)
    assert torch.equal(again.policy.logprobs([group]), copy.policy.logprobs([group]))
