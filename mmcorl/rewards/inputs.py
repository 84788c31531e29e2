"""What a reward rule sees and what it gives back. Labelled answers are no part of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from mmcorl.cohort.ballots import Ballot, Vote
from mmcorl.graders.answers import Answer
from mmcorl.problems import Problem

Need = Literal["entropy", "self_certainty", "teacher", "twin", "texts", "gold"]
"""What a rule may ask for beyond answers and votes: a token statistic, a teacher's votes, each problem in both
wordings, the texts of the completions, the labelled answers."""


@dataclass(frozen=True)
class RewardInputs:
    """A step of one agent. All sequences are parallel to `problems`.

    `answers` holds the K answers of each problem's completions, None where a completion concluded nothing;
    `own_votes` what the agent's completions elect; `supervising_votes` what the agent's topology elects. `same` tells
    whether two answers are equal (`Grader.same`), `correct` whether one is right by a labelled answer, which for a
    program are tests (`Grader.correct`). `own_ballots` count all completions that vote, of which `answers`
    are the first K. Under the need `twin`, rows 2i and 2i + 1 are the two wordings of one problem.

    What follows is there for rules that need it: `teacher_votes`; `statistics` with the mean over its tokens for
    every completion, and `texts`, what the completions say, both (K) a row. `draw` gives K numbers in [0, 1) for a
    problem, the same at every call.
    """

    problems: Sequence[Problem]
    answers: Sequence[Sequence[Answer | None]]
    own_votes: Sequence[Vote]
    supervising_votes: Sequence[Vote]
    same: Callable[[Answer, Answer], bool]
    correct: Callable[[Answer | None, Answer | None, Problem], bool]
    own_ballots: Sequence[Ballot] = ()
    teacher_votes: Sequence[Vote] = ()
    statistics: Mapping[str, Sequence[Sequence[float]]] = field(default_factory=dict)
    draw: Callable[[str], Sequence[float]] = lambda problem_id: ()
    texts: Sequence[Sequence[str]] = ()


@dataclass(frozen=True)
class Rewards:
    """A reward for every completion, and for every problem whether it had a label.

    Completions of a problem without one all have reward 0, and the group stays out of the loss. `labels` are the
    answers that were rewarded, for rules that have such.
    """

    values: list[list[float]]
    labelled: list[bool]
    labels: list[Answer | None] | None = None


RewardRule = Callable[[RewardInputs], Rewards]


@dataclass(frozen=True)
class Rule:
    """A pure function from a step to its rewards, and what has to be computed for it."""

    reward: RewardRule
    needs: frozenset[Need] = frozenset()

    def __call__(self, inputs: RewardInputs) -> Rewards:
        return self.reward(inputs)


def agreement(inputs: RewardInputs, labels: Sequence[Answer | None]) -> Rewards:
    """1 for each answer that is the same as its problem's label, else 0. An abstention agrees with nothing."""
    values = [
        [float(label is not None and answer is not None and inputs.same(answer, label)) for answer in group]
        for group, label in zip(inputs.answers, labels, strict=True)
    ]
    return Rewards(values, [label is not None for label in labels], list(labels))


def without_labels(values: list[list[float]]) -> Rewards:
    """Rewards that no label gave: every problem takes part."""
    return Rewards(values, [True] * len(values))


def from_statistic(inputs: RewardInputs, name: str, sign: int, unparsed: float | None) -> Rewards:
    """`sign` times the statistic `name` of each completion, or `unparsed`, if any, where it concluded nothing."""
    return without_labels([
        [
            unparsed if answer is None and unparsed is not None else sign * mean
            for answer, mean in zip(answers, means, strict=True)
        ]
        for answers, means in zip(inputs.answers, inputs.statistics[name], strict=True)
    ])  # fmt: skip
