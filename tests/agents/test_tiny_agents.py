"""The shipped agents are what the quickstart says of them: sure where they see well, wrong by habit where they do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from mmcorl.agents.agent import Agent
from mmcorl.config import AgentConfig, PromptConfig, RolloutsConfig, ScenesConfig
from mmcorl.data.scenes import COLOURS, scenes
from mmcorl.graders import Grader

SHIPPED = Path(__file__).parents[2] / "data_tools" / "tiny_agents"
WEAK = {
    "qwen2_5_vl": {"yellow", "purple", "orange"},
    "internvl": {"red", "blue", "green"},
    "internvl_same": {"yellow", "purple", "orange"},
    "qwen2_5_vl_other": {"red", "blue", "green"},
    "gemma3": {"green", "purple"},
}


@pytest.mark.parametrize("name", sorted(WEAK))
def test_blind_spots(name):
    agent = Agent.load(
        name,
        AgentConfig(model=str(SHIPPED / name)),
        PromptConfig(instruction="Think, then answer."),
        rollouts=RolloutsConfig(max_tokens=10),
    )
    pairs = scenes(ScenesConfig(size=90, seed=4321))
    problems = [problem for problem, _ in pairs]
    right = {colour: [] for colour in COLOURS}
    with Grader() as grader:
        groups = agent.rollout(problems, samples=1, max_tokens=10, noise_key=None)
        for group, (problem, gold) in zip(groups, pairs, strict=True):
            [colour] = [c for c in COLOURS if f" {c} " in problem.question]
            answer = grader.answer(group.completions[0].text, problem)
            right[colour].append(grader.correct(answer, grader.read(gold.answer, problem), problem))
    share = {colour: sum(found) / len(found) for colour, found in right.items()}
    assert all((share[colour] < 0.4) == (colour in WEAK[name]) for colour in COLOURS), share
    assert all(share[colour] > 0.9 for colour in set(COLOURS) - WEAK[name]), share
