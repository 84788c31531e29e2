"""Supervised reinforcement learning: a completion is rewarded for giving the labelled answer."""

from __future__ import annotations

from collections.abc import Mapping

from mmcorl.graders.answers import Answer
from mmcorl.rewards.inputs import RewardInputs, RewardRule, Rewards, agreement


def gold_rule(golds: Mapping[str, Answer | None]) -> RewardRule:
    """The rule that knows the labelled answers, by problem id; problems without one are unlabelled."""

    def gold(inputs: RewardInputs) -> Rewards:
        return agreement(inputs, [golds.get(problem.id) for problem in inputs.problems])

    return gold
