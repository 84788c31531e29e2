"""Held-out evaluation: its intervals, and a tiny agent that is evaluated."""

from __future__ import annotations

from pathlib import Path

import pytest

from mmcorl.agents.agent import Agent
from mmcorl.config import AgentConfig, EvaluationConfig, PromptConfig, ScenesConfig
from mmcorl.data.scenes import scenes
from mmcorl.graders import Grader
from mmcorl.training.heldout import evaluate, mean_interval, wilson_interval
from mmcorl.training.world import World

QWEN = Path(__file__).parents[2] / "data_tools" / "tiny_agents" / "qwen2_5_vl"


def test_wilson_interval_of_eight_in_ten():
    assert wilson_interval(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson_interval(0, 3)[0] == pytest.approx(0) and wilson_interval(3, 3)[1] == pytest.approx(1)


def test_mean_interval_of_four_problems():
    """Standard deviation 0.5, so a standard error of 0.25."""
    assert mean_interval([0.25, 0.25, 1.25, 0.25]) == pytest.approx((0.5, 1.959964 * 0.25))
    assert mean_interval([0.5]) == (0.5, 0.0)


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
