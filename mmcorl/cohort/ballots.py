"""Ballots and votes: one agent's answers to one problem, and what they elect."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mmcorl.config import Ties
from mmcorl.graders.answers import Answer

Classes = Callable[[Sequence[Answer | None]], list[list[int]]]
"""Groups the indices of equal answers in order of first appearance, None in no group: `Grader.classes`."""


@dataclass(frozen=True)
class Ballot:
    """An agent's answers to one problem, counted.

    `total` completions were sampled (K). `counts` holds each different answer, as it was first given, with the number
    of completions that gave it or an equal one, in order of first appearance. Completions without an answer are in
    `total` alone. `texts` is a digest of the completions in their order: agents that share it on every problem share
    their sampling noise too.
    """

    total: int
    counts: tuple[tuple[Answer, int], ...]
    texts: str = ""

    @staticmethod
    def count(answers: Sequence[Answer | None], classes: Classes, texts: str = "") -> Ballot:
        """Count the answers of a group's completions, None where a completion concluded nothing."""
        firsts = ((answers[members[0]], len(members)) for members in classes(answers))
        return Ballot(
            len(answers), tuple((answer, size) for answer, size in firsts if answer is not None), texts
        )

    @property
    def parsed(self) -> int:
        """Completions that gave an answer."""
        return sum(size for _, size in self.counts)

    def to_json(self) -> dict[str, Any]:
        counts = [[answer.to_json(), size] for answer, size in self.counts]
        return {"total": self.total, "counts": counts, "texts": self.texts}

    @staticmethod
    def from_json(data: object) -> Ballot:
        """Read what `to_json` wrote; anything else, as from a foreign sender, raises ValueError."""
        match data:
            case {"total": int(total), "counts": list(rows), "texts": str(texts), **rest} if (
                not rest and type(total) is int
            ):
                ballot = Ballot(total, tuple(_count_from_json(row) for row in rows), texts)
            case _:
                raise ValueError(f"not a ballot: {data!r}")
        if ballot.parsed > total or len(dict(ballot.counts)) < len(rows):
            raise ValueError(f"a ballot that does not add up: {data!r}")
        return ballot


def _count_from_json(row: object) -> tuple[Answer, int]:
    match row:
        case [answer, int(size)] if type(size) is int and size > 0:
            return Answer.from_json(answer), size
        case _:
            raise ValueError(f"not the count of an answer: {row!r}")


@dataclass(frozen=True)
class Vote:
    """What a ballot elects; `answer` is None for an abstention.

    `share` is the leading answer's part of the parsed answers, 0 when there are none, whether or not it was elected.
    `tie` tells that another answer had as many.
    """

    answer: Answer | None
    share: float
    tie: bool


ABSTENTION = Vote(None, 0.0, False)
"""The vote where nobody concluded anything."""


def elect(ballot: Ballot, threshold: float, ties: Ties) -> Vote:
    """The plurality of a ballot.

    Abstains where no answer was parsed, where the share is below `threshold`, and on a tie under `ties="abstain"`;
    under `"first"` the tied answer that was given first wins, as in the release of Co-RL.
    """
    if not ballot.counts:
        return ABSTENTION
    most = max(size for _, size in ballot.counts)
    leaders = [answer for answer, size in ballot.counts if size == most]
    share, tie = most / ballot.parsed, len(leaders) > 1
    elected = share >= threshold and not (tie and ties == "abstain")
    return Vote(leaders[0] if elected else None, share, tie)


def pool(ballots: Sequence[Ballot], classes: Classes) -> Ballot:
    """Several ballots on one problem as one, in order: every completion counts once, whoever gave it."""
    counts = [count for ballot in ballots for count in ballot.counts]
    groups = classes([answer for answer, _ in counts])
    pooled = tuple((counts[group[0]][0], sum(counts[i][1] for i in group)) for group in groups)
    return Ballot(sum(ballot.total for ballot in ballots), pooled)


def weighed(answers: Sequence[Answer | None], weights: Sequence[float], classes: Classes) -> Vote:
    """The answer of the largest weight and its share of all; a tie and a cohort without answers elect nothing."""
    sums = [(answers[group[0]], sum(weights[i] for i in group)) for group in classes(answers)]
    if not sums:
        return ABSTENTION
    most = max(weight for _, weight in sums)
    leaders = [answer for answer, weight in sums if math.isclose(weight, most)]
    share = most / sum(weight for _, weight in sums)
    return Vote(leaders[0] if len(leaders) == 1 else None, share, len(leaders) > 1)
