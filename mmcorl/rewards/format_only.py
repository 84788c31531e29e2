"""A control: a completion is rewarded for its form alone (Spurious Rewards)."""

from __future__ import annotations

from mmcorl.rewards.inputs import RewardInputs, Rewards, without_labels


def format_only(inputs: RewardInputs) -> Rewards:
    """1 for a completion that concluded something readable, else 0."""
    return without_labels([[float(answer is not None) for answer in row] for row in inputs.answers])
