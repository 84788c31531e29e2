"""Held-out evaluation of a tiny agent."""

from __future__ import annotations

from pathlib import Path

from mmcorl.agents.agent import Agent
from mmcorl.config import AgentConfig, EvaluationConfig, PromptConfig, ScenesConfig
from mmcorl.data.scenes import scenes
from mmcorl.graders import Grader
from mmcorl.training.heldout import evaluate
from mmcorl.training.world import World

QWEN = Path(__file__).parents[2] / "data_tools" / "tiny_agents" / "qwen2_5_vl"


def test_an_evaluation_is_the_same_each_time_and_within_bounds():
    agent = Agent.load("qwen", AgentConfig(model=str(QWEN)), PromptConfig(instruction="Think, then answer."))
    pairs = scenes(ScenesConfig(size=5, seed=4))
    problems, golds = [p for p, _ in pairs], {p.id: gold for p, gold in pairs}
    config = EvaluationConfig(every=1, samples=3)
    with Grader() as grader:
        first, second = (
            evaluate(agent, problems, golds, grader, World(), config, 10, seed=0) for _ in range(2)
        )
    assert {**first, "seconds": 0} == {**second, "seconds": 0}
    assert 0 <= first["accuracy_low"] < first["accuracy"] <= first["accuracy_high"] <= 1
    assert 0 <= first["avg_low"] < first["avg"] <= first["avg_high"] <= 1
