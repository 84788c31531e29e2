"""TTRL: a completion is rewarded for agreeing with the vote of its own group."""

from __future__ import annotations

from mmcorl.rewards.inputs import RewardInputs, Rewards, agreement


def self_vote(inputs: RewardInputs) -> Rewards:
    """1 where the answer is what the agent's own completions elect, else 0."""
    return agreement(inputs, [vote.answer for vote in inputs.own_votes])
