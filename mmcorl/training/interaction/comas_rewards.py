"""The rewards of CoMAS (arXiv 2510.08529): what a score is worth to whom. No labelled answer has a part in it."""

from __future__ import annotations

from dataclasses import dataclass

from mmcorl.training.interaction.roles import SCORES


@dataclass(frozen=True)
class RoleRewards:
    """Rewards of those who brought about one score."""

    solver: float
    evaluator: float
    scorer: float


def role_rewards(score: int | None) -> RoleRewards:
    """The solver gets the score on a scale from 0 to 1, the evaluator what is missing to 1: they compete.

    The scorer is never rewarded; where its score cannot be read (None) it alone is punished, and the others get 0.
    """
    if score is None:
        return RoleRewards(solver=0.0, evaluator=0.0, scorer=-1.0)
    low, high = SCORES[0], SCORES[-1]
    assert low <= score <= high
    share = (score - low) / (high - low)
    return RoleRewards(solver=share, evaluator=1 - share, scorer=0.0)
