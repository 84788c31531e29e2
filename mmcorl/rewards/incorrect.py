"""A control: a completion is rewarded for an answer that is likely wrong (Spurious Rewards), found without labels."""

from __future__ import annotations

from mmcorl.cohort.ballots import Ballot
from mmcorl.graders.answers import Answer
from mmcorl.rewards.inputs import RewardInputs, Rewards, agreement


def incorrect(inputs: RewardInputs) -> Rewards:
    """1 for agreeing with the runner-up of the agent's own ballot, else 0.

    The paper takes wrong majorities, which it knows by the gold answers. The runner-up needs none, and is right only
    where the plurality is wrong. A ballot of one answer has no runner-up, and its problem no label.
    """
    return agreement(inputs, [runner_up(ballot) for ballot in inputs.own_ballots])


def runner_up(ballot: Ballot) -> Answer | None:
    """What was answered second most often; among equals, what was given first."""
    ranked = sorted(ballot.counts, key=lambda count: -count[1])
    return ranked[1][0] if len(ranked) > 1 else None
