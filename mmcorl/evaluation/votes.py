"""maj@k: the plurality of several answers to one problem, of one model or pooled over several, scored without luck."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mmcorl.cohort.ballots import Ballot, Classes
from mmcorl.graders.answers import Answer


@dataclass(frozen=True)
class Majority:
    """What a problem's answers elect, and what that is worth.

    `winners` have the most answers each: several in a tie, none where no answer could be read. `credit` is the share
    of them that is right, the expected score of a winner drawn at random; taking the first instead would favour the
    model that is named first.
    """

    winners: tuple[Answer, ...]
    credit: float

    @property
    def tie(self) -> bool:
        return len(self.winners) > 1


def majority(answers: Sequence[Answer | None], classes: Classes, right: Mapping[Answer, bool]) -> Majority:
    """Elect among the answers to one problem, None for each that concluded nothing.

    `right` has the verdict of every answer. Pooling models is concatenating their answers.
    """
    ballot = Ballot.count(answers, classes)
    if not ballot.counts:
        return Majority((), 0.0)
    most = max(size for _, size in ballot.counts)
    winners = tuple(answer for answer, size in ballot.counts if size == most)
    return Majority(winners, sum(right[answer] for answer in winners) / len(winners))
