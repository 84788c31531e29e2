"""Intuitor: a completion is rewarded for being drawn from distributions far from uniform."""

from __future__ import annotations

from mmcorl.rewards.inputs import RewardInputs, RewardRule, Rewards, from_statistic


def self_certainty_rule(unparsed: float | None = None) -> RewardRule:
    """The rule: the mean of KL(U || p) over a completion's tokens, in nats, or `unparsed` where it concluded nothing."""

    def self_certainty(inputs: RewardInputs) -> Rewards:
        return from_statistic(inputs, "self_certainty", 1, unparsed)

    return self_certainty
