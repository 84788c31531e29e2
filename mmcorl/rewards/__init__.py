"""Reward rules: what a completion is rewarded for. One file a rule, one row here; own.py takes those of one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mmcorl.config import RewardConfig
from mmcorl.graders.answers import Answer
from mmcorl.rewards.cluster_share import cluster_share
from mmcorl.rewards.entropy import entropy_rule
from mmcorl.rewards.format_only import format_only
from mmcorl.rewards.gold import gold_rule
from mmcorl.rewards.incorrect import incorrect
from mmcorl.rewards.inputs import Need, RewardInputs, RewardRule, Rewards, Rule, agreement, without_labels
from mmcorl.rewards.own import own_rule
from mmcorl.rewards.peer_vote import peer_vote
from mmcorl.rewards.random_draw import random_rule
from mmcorl.rewards.self_certainty import self_certainty_rule
from mmcorl.rewards.self_vote import self_vote
from mmcorl.rewards.teacher_vote import teacher_vote
from mmcorl.rewards.twin_vote import twin_vote

__all__ = [
    "RULES",
    "Need",
    "RewardInputs",
    "RewardRule",
    "Rewards",
    "Rule",
    "agreement",
    "rule_of",
    "without_labels",
]

RULES: dict[str, Callable[[RewardConfig], Rule]] = {
    "peer_vote": lambda _: Rule(peer_vote),
    "self_vote": lambda _: Rule(self_vote),
    "twin_vote": lambda _: Rule(twin_vote, frozenset({"twin"})),
    "teacher_vote": lambda _: Rule(teacher_vote, frozenset({"teacher"})),
    "cluster_share": lambda _: Rule(cluster_share),
    "entropy": lambda config: Rule(entropy_rule(config.unparsed), frozenset({"entropy"})),
    "self_certainty": lambda config: Rule(
        self_certainty_rule(config.unparsed), frozenset({"self_certainty"})
    ),
    "random": lambda config: Rule(random_rule(config.chance)),
    "format_only": lambda _: Rule(format_only),
    "incorrect": lambda _: Rule(incorrect),
}
"""The rules that need no labels, by their name in `reward.rule`."""


def rule_of(config: RewardConfig, golds: Mapping[str, Answer | None]) -> Rule:
    """The rule that `reward.rule` names. Only `gold` is given `golds`, the labelled answers by problem id.

    Raises MmcorlError for a rule of one's own that cannot be used.
    """
    if config.rule == "gold":
        return Rule(gold_rule(golds), frozenset({"gold"}))
    return RULES[config.rule](config) if config.rule in RULES else own_rule(config.rule)
