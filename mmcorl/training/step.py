"""What a step read in its completions, and what it did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from torch import Tensor

from mmcorl.cohort.ballots import Vote
from mmcorl.graders import Answer
from mmcorl.problems import Problem, RolloutGroup
from mmcorl.rewards import Rewards


@dataclass(frozen=True)
class Readings:
    """What the completions of a whole batch say, on every rank the same: rows of M, or of the first K of them."""

    answers: list[list[Answer | None]]
    lengths: Tensor
    """(B, M), in tokens."""
    finished: Tensor
    """(B, M)."""
    nats: Tensor
    """(B, M), minus the log-probability of each completion to its sampler; 0 where an endpoint told none."""
    digests: list[str]
    surprises: list[float]

    def first(self, k: int) -> Readings:
        """The first `k` completions of each problem: those that are learned from."""
        return replace(
            self,
            answers=[row[:k] for row in self.answers],
            lengths=self.lengths[:, :k],
            finished=self.finished[:, :k],
            nats=self.nats[:, :k],
        )


@dataclass(frozen=True)
class Step:
    """What one step did: the whole batch's answers, votes and rewards, and this rank's rollouts, of K completions."""

    number: int
    problems: Sequence[Problem]
    rollouts: Sequence[RolloutGroup]
    answers: Sequence[Sequence[Answer | None]]
    lengths: Tensor
    finished: Tensor
    votes: Mapping[str, Sequence[Vote]]
    supervising_votes: Sequence[Vote]
    rewards: Rewards
    advantages: Tensor
    learning: Mapping[str, float]
    seconds: Mapping[str, float]
    stop: bool
    statistics: Mapping[str, Sequence[Sequence[float]]] = field(default_factory=dict)
    """Those that the reward rule needs: their mean over the tokens of each completion, in nats."""
    nats: Tensor | None = None
    """(B, K), minus the log-probability of each completion to its sampler."""
