"""Every backbone keeps the contract; and the contract notices when one does not."""

from __future__ import annotations

import pytest
import torch

from mmcorl.agents import contract
from mmcorl.agents.backbones.qwen2_5_vl import Qwen2_5_VL
from mmcorl.agents.tiny import FAMILIES


@pytest.mark.parametrize("family", sorted(FAMILIES))
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
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
    contract.stop_tokens_are_honoured(trial)
    with contract._favour(agent, [int(kept[1])]):
        [group] = agent.rollout(trial.problems[:1], samples=1, max_tokens=3, noise_key=("x",))
    assert not group.completions[0].finished


def test_a_sampled_placeholder_is_noticed(tiny_agent):
    agent = tiny_agent("internvl")
    trial = contract.prepare(agent)
    agent.engine.banned = torch.tensor([], dtype=torch.long)
    with pytest.raises(contract.BrokenContract, match="banned"):
        contract.placeholders_are_never_sampled(trial)
