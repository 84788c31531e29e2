"""Intervals and paired tests of accuracies. Pure functions; nothing here knows what was measured."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence

import numpy as np

Z_95 = 1.959963984540054

_DRAWS = 10_000
_CHUNK = 4_000_000  # resampled values held at once


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """95 % Wilson score interval of a proportion (Wilson 1927); it stays within 0 and 1."""
    share, z2 = successes / trials, Z_95**2
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = Z_95 * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials**2)) / (1 + z2 / trials)
    return max(0.0, centre - half), min(1.0, centre + half)


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """Mean over problems and half the width of its 95 % normal interval."""
    n = len(values)
    mean = sum(values) / n
    variance = sum((v - mean) ** 2 for v in values) / max(n - 1, 1)
    return mean, Z_95 * math.sqrt(variance / n)


def bootstrap_interval(
    values: Sequence[float], clusters: Sequence[Hashable] | None = None, draws: int = _DRAWS, seed: int = 0
) -> tuple[float, float]:
    """95 % percentile bootstrap interval of the mean of `values` (Efron 1979), the same at every call.

    One value a problem. Problems that share a key in `clusters`, such as the five versions of a MathVerse problem, are
    drawn together; without it every problem is a cluster of its own.
    """
    sums, sizes = _by_cluster(values, clusters)
    generator, n = np.random.default_rng(seed), len(sums)
    means = np.empty(draws)
    for part in _chunks(draws, n):
        drawn = generator.integers(n, size=(part.stop - part.start, n))
        means[part] = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)


def mcnemar_test(only_first: int, only_second: int) -> float:
    """Two-sided exact p-value of McNemar's test (1947) that two paired success rates are equal.

    Takes the numbers of pairs in which only the first, and only the second, succeeded: under equal rates, each is
    half of their sum on average, with a binomial distribution.
    """
    discordant = only_first + only_second
    tail = sum(math.comb(discordant, i) for i in range(min(only_first, only_second) + 1))
    return min(1.0, 2 * tail / 2**discordant)


def sign_flip_test(
    differences: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    draws: int = _DRAWS,
    seed: int = 0,
) -> float:
    """Two-sided p-value of the paired permutation test that the mean of `differences` is zero (Fisher 1935).

    One difference a problem; those of one cluster change sign together. A sample of `draws` of the possible signs is
    looked at, with the observed ones among them (Phipson and Smyth 2010), so p is at least 1 / (draws + 1).
    """
    sums, _ = _by_cluster(differences, clusters)
    sums = sums[sums != 0]
    observed = abs(sums.sum()) * (1 - 1e-9)  # sums in another order may differ in the last bits
    generator, extreme = np.random.default_rng(seed), 0
    for part in _chunks(draws, max(len(sums), 1)):
        signs = generator.integers(2, size=(part.stop - part.start, len(sums)), dtype=np.int8) * 2 - 1
        extreme += int((abs(signs @ sums) >= observed).sum())
    return (extreme + 1) / (draws + 1)


def pass_at_k(samples: int, right: int, k: int) -> float:
    """Chance that at least one of k samples is right, estimated without bias from `samples` of which `right` are.

    1 - C(samples - right, k) / C(samples, k), from Chen et al., "Evaluating large language models trained on code"
    (2021).
    """
    if not 1 <= k <= samples:
        raise ValueError(f"pass@{k} cannot be estimated from {samples} samples")
    return 1 - math.comb(samples - right, k) / math.comb(samples, k)


def _by_cluster(
    values: Sequence[float], clusters: Sequence[Hashable] | None
) -> tuple[np.ndarray, np.ndarray]:
    """Sum and size of every cluster."""
    if len(values) == 0:
        raise ValueError("no values")
    if clusters is None:
        return np.asarray(values, dtype=float), np.ones(len(values))
    numbers: dict[Hashable, int] = {}
    members = [numbers.setdefault(key, len(numbers)) for key in clusters]
    return np.bincount(members, weights=np.asarray(values, dtype=float)), np.bincount(members).astype(float)


def _chunks(draws: int, width: int) -> Iterator[slice]:
    """Slices of `range(draws)` that keep a matrix of that width small."""
    step = max(1, _CHUNK // width)
    return (slice(start, min(start + step, draws)) for start in range(0, draws, step))
