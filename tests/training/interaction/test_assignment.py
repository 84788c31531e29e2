from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmcorl.training.interaction.assignment import assign, draw


@given(st.integers(1, 8), st.integers())
def test_everybody_gets_one_task(count, seed):
    assert sorted(assign(count, (seed, "evaluator"))) == list(range(count))


@given(st.integers(2, 8), st.integers())
def test_nobody_gets_a_task_that_is_excluded(count, seed):
    own = list(range(count))
    evaluators = assign(count, (seed, "evaluator"), [own])
    assert all(agent != task for task, agent in enumerate(evaluators))
    if count > 2:
        scorers = assign(count, (seed, "scorer"), [own, evaluators])
        assert sorted(scorers) == own
        assert all(s not in (task, e) for task, (s, e) in enumerate(zip(scorers, evaluators, strict=True)))


def test_every_agent_does_every_task_equally_often():
    """All 24 permutations of four, each about 2400 / 24 times."""
    found = Counter(tuple(assign(4, (0, step))) for step in range(2400))
    assert len(found) == 24
    assert min(found.values()) > 60 and max(found.values()) < 150
    shares = [sum(n for order, n in found.items() if order[task] == task) / 2400 for task in range(4)]
    assert shares == pytest.approx([0.25] * 4, abs=0.04)


def test_draws_depend_on_the_key_alone():
    assert assign(8, (1, 2, "p")) == assign(8, (1, 2, "p"))
    assert len({tuple(assign(8, (1, step, "p"))) for step in range(20)}) == 20
    # The same on every machine: agents never tell each other who does what.
    assert assign(6, (0, 1, 1, "evaluator", "p", 0)) == [5, 1, 0, 3, 4, 2]
    assert draw(list(range(9)), 3, (0, 1, "p")) == [2, 1, 7]


def test_a_draw_takes_no_place_twice_and_no_more_than_there_are():
    items = ["a", "b", "b", "c"]
    assert sorted(draw(items, 9, (1,))) == items
    assert draw(items, 0, (1,)) == []
    for seed in range(50):
        assert len(set(draw(range(4), 2, (seed,)))) == 2
