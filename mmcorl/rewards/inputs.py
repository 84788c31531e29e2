"""What a reward rule sees and what it gives back. Labelled answers are no part of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mmcorl.cohort.ballots import Vote
from mmcorl.graders.answers import Answer
from mmcorl.problems import Problem


@dataclass(frozen=True)
class RewardInputs:
    """A step of one agent. All sequences but `same` are parallel to `problems`.

    `answers` holds the K answers of each problem's completions, None where a completion concluded nothing;
    `own_votes` what they elect; `supervising_votes` what the agent's topology elects. `same` tells whether two answers
    are equal (`Grader.same`).
    """

    problems: Sequence[Problem]
    answers: Sequence[Sequence[Answer | None]]
    own_votes: Sequence[Vote]
    supervising_votes: Sequence[Vote]
    same: Callable[[Answer, Answer], bool]


@dataclass(frozen=True)
class Rewards:
    """A reward for every completion, and for every problem whether it had a label.

    Completions of a problem without one all have reward 0, and the group stays out of the loss.
    """

    values: list[list[float]]
    labelled: list[bool]


RewardRule = Callable[[RewardInputs], Rewards]


def agreement(inputs: RewardInputs, labels: Sequence[Answer | None]) -> Rewards:
    """1 for each answer that is the same as its problem's label, else 0. An abstention agrees with nothing."""
    values = [
        [float(label is not None and answer is not None and inputs.same(answer, label)) for answer in group]
        for group, label in zip(inputs.answers, labels, strict=True)
    ]
    return Rewards(values, [label is not None for label in labels])
