"""vLLM behind HTTP on loopback: the same contract as in the agent's own process."""

from __future__ import annotations

import pytest
import torch

from mmcorl.agents import contract
from mmcorl.agents.engine_check import engine_gap
from mmcorl.agents.engines.vllm_server import VLLMServerEngine
from mmcorl.errors import MmcorlError


@pytest.fixture(scope="module")
def agent(tiny_agent, vllm_rollouts):
    return tiny_agent("qwen2_5_vl", rollouts=vllm_rollouts(), server="start")


def test_a_started_server_samples_what_the_policy_would_before_and_after_an_update(agent, tmp_path):
    problems = contract.sample_problems(images=True)
    for key in ("before", "after"):
        assert engine_gap(agent, problems, 16, limit=1e-3) < 1e-4
        groups = agent.rollout(problems, samples=4, max_tokens=8, noise_key=(key,), temperature=0.8)
        assert [len(group.completions) for group in groups] == [4] * len(problems)
        assert all(len(c.token_ids) <= 8 for group in groups for c in group.completions)
        [again] = agent.rollout(problems[-1:], samples=4, max_tokens=8, noise_key=(key,), temperature=0.8)
        assert again.completions == groups[-1].completions
        with torch.no_grad():
            for parameter in agent.model.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.02)

    # The same server by its URL, as another launcher would be given it.
    by_url = VLLMServerEngine("agent", agent.engine.served, agent.engine.url, None)
    with by_url.awake():
        rows = by_url.sample([agent.encode(problems[2])], None, 1, 8, 1.0)
    [group] = agent.rollout(problems[2:3], samples=1, max_tokens=8, noise_key=None)
    assert rows[0][0].token_ids.tolist() == list(group.completions[0].token_ids)

    with torch.no_grad():
        agent.model.get_output_embeddings().weight.fill_(torch.nan)
    with pytest.raises(MmcorlError, match="for problem 'text-0'"):
        agent.rollout(problems[:1], samples=2, max_tokens=2, noise_key=("nan",))


def test_a_server_that_is_not_there_is_named(tiny_agent, vllm_rollouts):
    agent = tiny_agent("qwen3", rollouts=vllm_rollouts(), server="http://127.0.0.1:9")
    with pytest.raises(MmcorlError, match=r"http://127.0.0.1:9 does not answer.*refused"):
        agent.rollout(contract.sample_problems(images=False), samples=2, max_tokens=2, noise_key=("x",))
