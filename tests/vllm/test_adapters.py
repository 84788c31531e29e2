"""vLLM samples as an agent with adapters would, whether these are added to the weights or handed over alone."""

from __future__ import annotations

import itertools

import pytest
import torch

from mmcorl.agents import contract
from mmcorl.agents.agent import Agent
from mmcorl.agents.engine_check import engine_gap
from mmcorl.config import AgentConfig
from mmcorl.errors import MmcorlError

UPDATES = 3


def train(agent, seed):
    """Move every adapter, and nothing else."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in agent.model.parameters():
            if weight.requires_grad:
                weight.add_(torch.randn(weight.shape, generator=generator), alpha=0.05)


def greedy(agent, problems):
    groups = agent.rollout(problems, samples=1, max_tokens=12, noise_key=None)
    return [list(group.completions[0].token_ids) for group in groups]


def follows(agent, problems):
    seen = []
    for update in range(UPDATES):
        engine_gap(agent, problems, 16, limit=1e-3)
        seen.append(greedy(agent, problems))
        train(agent, update)
    assert all(a != b for a, b in itertools.pairwise(seen))


@pytest.mark.parametrize(
    ("family", "adapters", "settings"),
    [
        ("qwen2_5_vl", "merged", {"lora": {"rank": 4, "alpha": 8, "parts": ["text", "projector", "vision"]}}),
        ("internvl", "apart", {"lora": {"rank": 4, "alpha": 8}}),
        ("qwen3", "apart", {"lora": {"rank": 9, "targets": ["q_proj", "down_proj"]}}),
    ],
)
def test_log_probabilities_and_tokens_follow_the_adapters(
    tiny_agent, vllm_rollouts, family, adapters, settings
):
    agent = tiny_agent(family, rollouts=vllm_rollouts(adapters=adapters), **settings)
    follows(agent, contract.sample_problems(agent.backbone.sees_images))


def test_weights_in_4_bits_are_handed_over_as_the_numbers_they_stand_for(tiny_folder, vllm_rollouts):
    settings = {"model": str(tiny_folder("qwen2_5_vl")), "lora": {"rank": 4}, "quantize": "4bit"}
    agent = Agent.load("ann", AgentConfig.model_validate(settings), rollouts=vllm_rollouts(adapters="apart"))
    follows(agent, contract.sample_problems(images=True))


def test_a_server_is_handed_the_adapters_alone(tiny_agent, vllm_rollouts):
    agent = tiny_agent(
        "qwen2_5_vl", rollouts=vllm_rollouts(adapters="apart"), lora={"rank": 4}, server="start"
    )
    follows(agent, contract.sample_problems(images=True))


def test_a_rank_that_vllm_has_no_room_for_is_refused(tiny_agent, vllm_rollouts):
    agent = tiny_agent("qwen3", rollouts=vllm_rollouts(adapters="apart"), lora={"rank": 600})
    with pytest.raises(
        MmcorlError, match=r"rank 512 at most, and lora\.rank=600; set rollouts\.vllm\.adapters"
    ):
        agent.rollout(contract.sample_problems(images=False), samples=1, max_tokens=2, noise_key=("r",))
