"""Co-rewarding-I: a completion is rewarded for agreeing with the vote on the problem's other wording."""

from __future__ import annotations

from mmcorl.rewards.inputs import RewardInputs, Rewards, agreement


def twin_vote(inputs: RewardInputs) -> Rewards:
    """1 where the answer is what the agent elects when it reads the twin, else 0; both wordings are rewarded."""
    return agreement(inputs, [inputs.own_votes[i ^ 1].answer for i in range(len(inputs.problems))])
