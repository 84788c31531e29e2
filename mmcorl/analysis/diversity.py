"""How differently two models err: kappa, c, w and u of Co-RL's Tables 5 to 7. Pure functions.

Each problem has one of four outcomes for a pair: both right, only the first, only the second, neither; and where neither
is right, both may give the same wrong answer. Over N problems:

- c, complementarity: exactly one is right
- u, union accuracy: at least one is right
- w, shared mistakes: both give the same wrong answer. Abstentions are never the same
- kappa: Cohen's kappa of the two being right, (p_o - p_e) / (1 - p_e) with p_o = 1 - c and p_e what two models of these
  accuracies would agree on by chance (Cohen 1960). NaN where that is 1: both always right, or both always wrong

All are symmetric in the pair. With several samples a problem, an outcome's share is its mean over all pairs of samples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mmcorl.cohort.ballots import Classes
from mmcorl.graders.answers import Answer

DRAWS = 4_000
_CHUNK = 4_000_000  # resampled values held at once


class Shares(NamedTuple):
    """Outcome counts or shares of a pair. `same_wrong` is a part of `neither`."""

    both: float
    only_first: float
    only_second: float
    neither: float
    same_wrong: float


class Measures(NamedTuple):
    """kappa, c, w and u of a pair; shares between 0 and 1, kappa at most 1."""

    kappa: float
    c: float
    w: float
    u: float


def measures(shares: Shares) -> Measures:
    """The measures of outcome counts or shares."""
    return Measures(*map(float, _measures(np.asarray(shares, dtype=float))))


def _measures(shares: np.ndarray) -> np.ndarray:
    """(..., 5) outcome counts or shares -> (..., 4) measures."""
    both, first, second, neither, same_wrong = np.moveaxis(shares, -1, 0) / shares[..., :4].sum(axis=-1)
    right_first, right_second = both + first, both + second
    expected = right_first * right_second + (1 - right_first) * (1 - right_second)
    certain = np.isclose(expected, 1.0, rtol=0, atol=1e-12)
    kappa = np.where(certain, np.nan, (both + neither - expected) / np.where(certain, 1.0, 1 - expected))
    return np.stack((kappa, first + second, same_wrong, 1 - neither), axis=-1)


class Answers(NamedTuple):
    """One model's answers to one problem, and whether each is right."""

    answers: Sequence[Answer | None]
    right: Sequence[bool]


def pair_shares(first: Answers, second: Answers, classes: Classes) -> Shares:
    """Outcome shares of two models on one problem, over all pairs of a sample of the one and a sample of the other."""
    pairs = len(first.right) * len(second.right)
    a, b = sum(first.right), sum(second.right)
    wrong_a, wrong_b = len(first.right) - a, len(second.right) - b
    same = sum(x * y for x, y in _wrong_classes(first, second, classes))
    return Shares(
        a * b / pairs, a * wrong_b / pairs, wrong_a * b / pairs, wrong_a * wrong_b / pairs, same / pairs
    )


def own_shares(model: Answers, classes: Classes) -> Shares:
    """Outcome shares of a model with itself under another seed, over all pairs of different samples (at least two)."""
    pairs = len(model.right) * (len(model.right) - 1)
    a = sum(model.right)
    wrong = len(model.right) - a
    same = sum(x * (x - 1) for x, _ in _wrong_classes(model, Answers((), ()), classes))
    return Shares(
        a * (a - 1) / pairs, a * wrong / pairs, a * wrong / pairs, wrong * (wrong - 1) / pairs, same / pairs
    )


def _wrong_classes(first: Answers, second: Answers, classes: Classes) -> list[tuple[int, int]]:
    """For each different wrong answer, how many samples of either model gave it."""
    wrong = [
        (side, answer)
        for side, model in enumerate((first, second))
        for answer, right in zip(model.answers, model.right, strict=True)
        if not right and answer is not None
    ]
    counts = [Counter(wrong[i][0] for i in group) for group in classes([answer for _, answer in wrong])]
    return [(count[0], count[1]) for count in counts]


@dataclass(frozen=True)
class Estimate:
    """A measure with its 95 % bootstrap interval over problems."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Pair:
    """The measures of a pair on a set of problems; a model with itself is a pair too.

    `draws` are the measures on each bootstrap resample, (draws, 4): the same resamples for all pairs on equally many
    problems, so that the difference of two pairs can be taken resample by resample.
    """

    first: str
    second: str
    problems: int
    accuracies: tuple[float, float]
    kappa: Estimate
    c: Estimate
    w: Estimate
    u: Estimate
    rescued: float
    """Where the first is wrong, the share in which the second is right; NaN where the first is never wrong."""
    draws: np.ndarray

    def with_first(self, name: str) -> Pair:
        """The same pair, seen from the model of that name."""
        if self.first == name:
            return self
        assert self.second == name
        (a, b), union = self.accuracies, self.u.value
        rescued = (union - b) / (1 - b) if b < 1 else float("nan")
        return Pair(
            name, self.first, self.problems, (b, a), self.kappa, self.c, self.w, self.u, rescued, self.draws
        )


def pair(first: str, second: str, shares: Sequence[Shares], draws: int = DRAWS, seed: int = 0) -> Pair:
    """Measures with intervals from the outcome shares of each problem."""
    table = np.asarray(shares, dtype=float)
    both, only_first, only_second, neither, _ = table.mean(axis=0)
    value = measures(Shares(*table.mean(axis=0)))
    resampled = _measures(_resampled_means(table, draws, seed))
    estimates = [Estimate(v, *_interval(column)) for v, column in zip(value, resampled.T, strict=True)]
    wrong = only_second + neither
    rescued = float(only_second / wrong) if wrong else float("nan")
    accuracies = (float(both + only_first), float(both + only_second))
    return Pair(first, second, len(table), accuracies, *estimates, rescued=rescued, draws=resampled)


def difference(one: Pair, other: Pair, measure: str) -> Estimate:
    """`one` minus `other` in a measure, with the interval of the difference on the same resamples of the problems."""
    column = Measures._fields.index(measure)
    low, high = _interval(one.draws[:, column] - other.draws[:, column])
    return Estimate(getattr(one, measure).value - getattr(other, measure).value, low, high)


def _interval(values: np.ndarray) -> tuple[float, float]:
    """2.5 % and 97.5 % quantiles of the resamples in which the measure is defined."""
    defined = values[~np.isnan(values)]
    low, high = np.quantile(defined, (0.025, 0.975)) if len(defined) else (np.nan, np.nan)
    return float(low), float(high)


def _resampled_means(table: np.ndarray, draws: int, seed: int) -> np.ndarray:
    """Column means on each resample of the rows, (draws, columns)."""
    generator, n = np.random.default_rng(seed), len(table)
    step = max(1, _CHUNK // n)
    parts = []
    for start in range(0, draws, step):
        drawn = generator.multinomial(n, np.full(n, 1 / n), size=min(step, draws - start))
        parts.append(drawn @ table / n)
    return np.concatenate(parts)
