"""RENT: a completion is rewarded for being drawn from distributions of low entropy."""

from __future__ import annotations

from mmcorl.rewards.inputs import RewardInputs, RewardRule, Rewards, from_statistic


def entropy_rule(unparsed: float | None = None) -> RewardRule:
    """The rule: minus the mean entropy of a completion's tokens, in nats, or `unparsed` where it concluded nothing."""

    def entropy(inputs: RewardInputs) -> Rewards:
        return from_statistic(inputs, "entropy", -1, unparsed)

    return entropy
