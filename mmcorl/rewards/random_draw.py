"""A control: rewards that know nothing. What training gains from them, no label explains (Spurious Rewards)."""

from __future__ import annotations

from mmcorl.rewards.inputs import RewardInputs, RewardRule, Rewards, without_labels


def random_rule(chance: float) -> RewardRule:
    """The rule: 1 with probability `chance`, else 0, whatever a completion says."""

    def random(inputs: RewardInputs) -> Rewards:
        values = [[float(number < chance) for number in inputs.draw(p.id)] for p in inputs.problems]
        return without_labels(values)

    return random
