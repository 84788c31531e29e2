"""Reward rules: what a completion is rewarded for. One file a rule, one row here."""

from __future__ import annotations

from collections.abc import Mapping

from mmcorl.graders.answers import Answer
from mmcorl.rewards.gold import gold_rule
from mmcorl.rewards.inputs import RewardInputs, RewardRule, Rewards
from mmcorl.rewards.peer_vote import peer_vote
from mmcorl.rewards.self_vote import self_vote

__all__ = ["RULES", "RewardInputs", "RewardRule", "Rewards", "rule_of"]

RULES: dict[str, RewardRule] = {"peer_vote": peer_vote, "self_vote": self_vote}
"""The rules that need no labels, by their name in `reward.rule`."""


def rule_of(name: str, golds: Mapping[str, Answer | None]) -> RewardRule:
    """The rule that `reward.rule` names. Only `gold` is given `golds`, the labelled answers by problem id."""
    return gold_rule(golds) if name == "gold" else RULES[name]
