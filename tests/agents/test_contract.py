"""Every backbone keeps the contract; and the contract notices when one does not."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, Lfm2Config

from mmcorl.agents import contract
from mmcorl.agents.agent import Agent
from mmcorl.agents.backbones.minicpmv4_6 import MiniCPMV4_6
from mmcorl.agents.backbones.qwen2_5_vl import Qwen2_5_VL
from mmcorl.agents.processors import PromptBuilder
from mmcorl.agents.tiny import FAMILIES
from mmcorl.config import AgentConfig, RolloutsConfig
from mmcorl.errors import MmcorlError

# Eager attention takes masks of another kind: one family of each kind of mask.
EAGER = ["gemma3", "glm4v", "qwen2"]


@pytest.mark.parametrize(
    ("family", "attention"),
    [(name, "sdpa") for name in FAMILIES] + [(name, "eager") for name in EAGER],
)
def test_family_keeps_the_contract(tiny_agent, family, attention):
    trial = contract.prepare(tiny_agent(family, attention=attention))
    for point in contract.POINTS:
        point(trial)


def test_a_wrong_feature_count_is_noticed(tiny_agent, monkeypatch):
    trial = contract.prepare(tiny_agent("qwen2_5_vl"))
    monkeypatch.setattr(
        Qwen2_5_VL, "feature_rows", lambda self, vision: int(vision["image_grid_thw"].prod(-1).sum())
    )
    with pytest.raises(contract.BrokenContract, match="tokens"):
        contract.placeholders_equal_features(trial)


def test_wrong_positions_are_noticed(tiny_agent, monkeypatch):
    """Positions numbered one by one, as a text model would, are wrong after an image of Qwen2.5-VL."""
    monkeypatch.setattr(
        Qwen2_5_VL,
        "positions",
        lambda self, model, inputs: torch.arange(inputs["input_ids"].shape[-1]).expand(3, -1),
    )
    trial = contract.prepare(tiny_agent("qwen2_5_vl"))
    with pytest.raises(contract.BrokenContract, match="log-probs differ"):
        contract.shared_prefix_equals_plain(trial)
    with pytest.raises(contract.BrokenContract):
        contract.greedy_equals_generate(trial)


def test_a_forgotten_stop_token_is_noticed(tiny_agent):
    agent = tiny_agent("gemma3")
    assert len(agent.engine.stop_ids) == 2
    trial = contract.prepare(agent)
    kept = agent.engine.stop_ids
    agent.engine.stop_ids = kept[:1]
    with pytest.raises(contract.BrokenContract, match=f"stop token {kept[1]} gave"):
        contract.stop_tokens_are_honoured(trial)


def test_a_repetition_penalty_in_the_generation_config_is_no_fault_of_the_sampler(tiny_agent):
    agent = tiny_agent("qwen2_5_vl")
    agent.model.generation_config.repetition_penalty = 1.5
    contract.greedy_equals_generate(contract.prepare(agent))


def test_any_temperature_keeps_the_contract(tiny_agent):
    trial = contract.prepare(tiny_agent("qwen2", rollouts=RolloutsConfig(temperature=0.5)))
    for point in contract.POINTS:
        point(trial)


def test_a_layer_that_carries_state_keeps_the_contract(tiny_folder, tmp_path):
    """Such a model has plain rows for the policy and a cache without keys and values for the sampler."""
    tokenizer = AutoTokenizer.from_pretrained(tiny_folder("qwen2"))
    config = Lfm2Config(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, layer_types=["conv", "full_attention"],
    )  # fmt: skip
    model = AutoModelForCausalLM.from_config(config)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    for part in (model, tokenizer):
        part.save_pretrained(tmp_path)
    for outcome in contract.check(Agent.load("state", AgentConfig(model=str(tmp_path)))):
        assert outcome.holds, outcome


def test_a_model_that_takes_no_problem_is_an_outcome_too(tiny_folder, monkeypatch):
    def refuse(*_):
        raise IndexError("no such layer")

    monkeypatch.setattr(PromptBuilder, "build", refuse)
    agent = Agent.load("refuser", AgentConfig(model=str(tiny_folder("qwen2"))))
    parts, outcome = contract.check(agent)
    assert parts.holds
    assert not outcome.holds and "no such layer" in outcome.detail


def test_a_sampled_placeholder_is_noticed(tiny_agent):
    agent = tiny_agent("internvl")
    trial = contract.prepare(agent)
    agent.engine.banned = torch.tensor([], dtype=torch.long)
    with pytest.raises(contract.BrokenContract, match="banned"):
        contract.placeholders_are_never_sampled(trial)


def test_wrong_names_of_the_vision_part_are_noticed(tiny_agent, monkeypatch):
    monkeypatch.setattr(Qwen2_5_VL, "vision_names", ("no_such_part.",))
    with pytest.raises(contract.BrokenContract, match="vision_names"):
        contract.every_part_has_parameters(contract.prepare(tiny_agent("qwen2_5_vl")))
    with pytest.raises(MmcorlError, match="freeze names vision"):
        tiny_agent("qwen2_5_vl", freeze=["vision"])


def test_a_wrong_length_without_pixels_is_noticed(tiny_agent, monkeypatch):
    monkeypatch.setattr(Qwen2_5_VL, "image_tokens", lambda *_: 4)
    with pytest.raises(contract.BrokenContract, match=r"counted, .* built"):
        contract.lengths_are_known_without_pixels(contract.prepare(tiny_agent("qwen2_5_vl")))


def test_an_image_that_is_not_seen_is_noticed(tiny_agent):
    agent = tiny_agent("qwen2_5_vl")
    trial = contract.prepare(agent)
    visual = agent.model.model.visual
    visual.register_forward_pre_hook(lambda _, inputs: (torch.ones_like(inputs[0]), *inputs[1:]))
    with pytest.raises(contract.BrokenContract, match="image 1 of 'two' changes nothing"):
        contract.every_image_reaches_its_own_prompt(trial)


def test_images_in_another_order_are_noticed(tiny_agent):
    agent = tiny_agent("llava")
    trial = contract.prepare(agent)
    tower = agent.model.model.vision_tower
    tower.register_forward_pre_hook(
        lambda _, args, kwargs: (tuple(value.flip(0) for value in args), kwargs), with_kwargs=True
    )
    with pytest.raises(contract.BrokenContract, match="image 1 of 'two' changes other prompts"):
        contract.every_image_reaches_its_own_prompt(trial)


def test_a_part_that_does_not_learn_is_noticed(tiny_agent):
    trial = contract.prepare(tiny_agent("qwen2_5_vl", freeze=["vision"]))
    with pytest.raises(contract.BrokenContract, match="no gradient reaches vision"):
        contract.every_part_learns_under_checkpointing(trial)


def test_images_joined_along_the_wrong_axis_are_noticed(tiny_folder, monkeypatch):
    monkeypatch.setattr(MiniCPMV4_6, "vision_axes", {})
    agent = Agent.load("axes", AgentConfig(model=str(tiny_folder("minicpmv4_6"))))
    parts, broken = contract.check(agent)
    assert parts.holds
    assert broken.point == "Prompts become completions" and not broken.holds
    assert "vision_axes" in (broken.mend or "") and "minicpmv4_6.py" in (broken.hint or "")
