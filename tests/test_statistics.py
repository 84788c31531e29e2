"""Intervals and paired tests, against worked numbers, the normal approximation and enumeration."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmcorl.statistics import (
    bootstrap_interval,
    mcnemar_test,
    mean_interval,
    pass_at_k,
    sign_flip_test,
    wilson_interval,
)


def test_wilson_interval_of_eight_in_ten():
    assert wilson_interval(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson_interval(0, 3)[0] == pytest.approx(0) and wilson_interval(3, 3)[1] == pytest.approx(1)


def test_mean_interval_of_four_problems():
    """Standard deviation 0.5, so a standard error of 0.25."""
    assert mean_interval([0.25, 0.25, 1.25, 0.25]) == pytest.approx((0.5, 1.959964 * 0.25))
    assert mean_interval([0.5]) == (0.5, 0.0)


def test_the_bootstrap_of_many_independent_problems_has_the_width_of_the_normal_interval():
    values = [1.0] * 300 + [0.0] * 200
    low, high = bootstrap_interval(values)
    half = 1.96 * math.sqrt(0.6 * 0.4 / 500)
    assert (low, high) == pytest.approx((0.6 - half, 0.6 + half), abs=0.005)
    assert bootstrap_interval(values) == (low, high)


def test_copies_of_a_problem_add_no_certainty():
    """Five equal versions of every problem: the interval is that of the problems, not of five times as many."""
    values = [1.0] * 60 + [0.0] * 40
    copies = [v for v in values for _ in range(5)]
    clusters = [i for i in range(100) for _ in range(5)]
    assert bootstrap_interval(copies, clusters) == pytest.approx(bootstrap_interval(values))
    low, high = bootstrap_interval(copies)
    clustered_low, clustered_high = bootstrap_interval(copies, clusters)
    assert (clustered_high - clustered_low) / (high - low) == pytest.approx(math.sqrt(5), rel=0.05)


def test_clusters_of_different_sizes_weigh_by_their_size():
    """Drawn clusters {1,1,1} and {0}: means 1, 3/4 and 0."""
    low, high = bootstrap_interval([1, 1, 1, 0], ["a", "a", "a", "b"])
    assert (low, high) == (0, 1)
    assert bootstrap_interval([1, 1, 1, 1], ["a", "a", "a", "b"]) == (1, 1)


def test_mcnemar_by_hand():
    """1 against 5: 2 * (1 + 6) / 64."""
    assert mcnemar_test(1, 5) == mcnemar_test(5, 1) == pytest.approx(14 / 64)
    assert mcnemar_test(0, 0) == mcnemar_test(3, 3) == 1
    assert mcnemar_test(0, 10) == pytest.approx(2 / 1024)
    assert 0 < mcnemar_test(1500, 1900) < 1e-9


def test_sign_flips_come_to_what_enumeration_gives():
    differences = [0.5, 0.25, 0.25, -0.25, 1.0, 0.0]
    observed = abs(sum(differences))
    flips = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    exact = sum(f >= observed - 1e-12 for f in flips) / len(flips)
    assert sign_flip_test(differences, draws=20_000) == pytest.approx(exact, abs=0.01)


def test_sign_flips_of_single_samples_agree_with_mcnemar():
    differences = [1] * 15 + [-1] * 5 + [0] * 80
    assert sign_flip_test(differences, draws=50_000) == pytest.approx(mcnemar_test(15, 5), abs=0.005)
    assert sign_flip_test([0, 0, 0]) == 1


def test_sign_flips_of_a_cluster_go_together():
    """Four copies of one difference are one observation: both signs are as extreme."""
    assert sign_flip_test([0.5] * 4, ["a"] * 4) == 1
    assert sign_flip_test([0.5] * 4, draws=20_000) == pytest.approx(1 / 8, abs=0.01)


@given(st.integers(1, 7), st.data())
def test_pass_at_k_is_the_share_of_subsets_with_a_right_sample(samples: int, data: st.DataObject):
    right = data.draw(st.integers(0, samples))
    k = data.draw(st.integers(1, samples))
    subsets = list(itertools.combinations(range(samples), k))
    assert pass_at_k(samples, right, k) == pytest.approx(
        sum(min(subset) < right for subset in subsets) / len(subsets)
    )


def test_pass_at_more_than_there_are_is_an_error():
    with pytest.raises(ValueError, match=r"pass@9 .* 8 samples"):
        pass_at_k(8, 4, 9)
