"""Supervised reinforcement learning: a completion is rewarded for giving the labelled answer."""

from __future__ import annotations

from collections.abc import Mapping

from mmcorl.graders.answers import Answer
from mmcorl.rewards.inputs import RewardInputs, RewardRule, Rewards


def gold_rule(golds: Mapping[str, Answer | None]) -> RewardRule:
    """The rule that knows the labelled answers, by problem id; problems without one are unlabelled.

    The tests of a code problem say which answers are right and are none themselves, so it has no label in `Rewards`.
    """

    def gold(inputs: RewardInputs) -> Rewards:
        labels = [golds.get(problem.id) for problem in inputs.problems]
        values = [
            [float(inputs.correct(answer, label, problem)) for answer in answers]
            for answers, label, problem in zip(inputs.answers, labels, inputs.problems, strict=True)
        ]
        shown = [
            None if problem.program else label for label, problem in zip(labels, inputs.problems, strict=True)
        ]
        return Rewards(values, [label is not None for label in labels], shown)

    return gold
