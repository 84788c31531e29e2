"""Co-RL: a completion is rewarded for agreeing with the vote of the agent's supervisors."""

from __future__ import annotations

from mmcorl.rewards.inputs import RewardInputs, Rewards, agreement


def peer_vote(inputs: RewardInputs) -> Rewards:
    """1 where the answer is the supervising vote, else 0. The agent's own vote has no part in it."""
    return agreement(inputs, [vote.answer for vote in inputs.supervising_votes])
