"""Co-rewarding-II: a completion is rewarded for agreeing with the vote of a slow copy of its own agent."""

from __future__ import annotations

from mmcorl.rewards.inputs import RewardInputs, Rewards, agreement


def teacher_vote(inputs: RewardInputs) -> Rewards:
    """1 where the answer is what the teacher's completions elect, else 0. The agent's own do not vote."""
    return agreement(inputs, [vote.answer for vote in inputs.teacher_votes])
