from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmcorl.data.order import problems_of_step
from mmcorl.errors import MmcorlError


def walk(n_problems: int, per_step: int, steps: int, seed: int = 0) -> list[list[int]]:
    return [problems_of_step(n_problems, per_step, step, seed) for step in range(steps)]


@given(n_problems=st.integers(1, 60), share=st.floats(0.01, 1), seed=st.integers(0, 5))
def test_every_epoch_takes_every_problem_once(n_problems: int, share: float, seed: int):
    per_step = max(1, int(n_problems * share))
    taken = list(chain.from_iterable(walk(n_problems, per_step, 3 * n_problems // per_step + 1, seed)))
    for epoch in range(3):
        assert sorted(taken[epoch * n_problems : (epoch + 1) * n_problems]) == list(range(n_problems))


@given(per_step=st.integers(1, 12), more=st.integers(0, 30), seed=st.integers(0, 5))
def test_no_step_holds_a_problem_twice(per_step: int, more: int, seed: int):
    for step in walk(2 * per_step + more, per_step, 30, seed):
        assert len(set(step)) == per_step


def test_epochs_and_seeds_have_orders_of_their_own():
    first, second = walk(50, 50, 2)
    assert first != second
    assert first != walk(50, 50, 1, seed=1)[0]


def test_a_step_does_not_depend_on_those_asked_for_before():
    late = problems_of_step(37, 5, 40, seed=3)
    assert late == walk(37, 5, 41, seed=3)[40]


def test_the_order_is_the_same_in_every_version():
    """Agents of a cohort may run different versions; this is what the first one took."""
    assert problems_of_step(10, 4, 0, seed=0) == [8, 4, 0, 9]
    assert problems_of_step(10, 4, 2, seed=0) == [3, 6, 7, 4]


@pytest.mark.parametrize("per_step", [0, 9])
def test_more_problems_to_a_step_than_there_are(per_step: int):
    with pytest.raises(
        MmcorlError, match=rf"problems_per_step={per_step} does not fit a training set of 8 problems"
    ):
        problems_of_step(8, per_step, 0, seed=0)
