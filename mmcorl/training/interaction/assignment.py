"""Who does what for whom: draws that every agent makes alike, from the run's seed and the names of things."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")

Key = tuple[str | int, ...]


def assign(count: int, key: Key, taken: Sequence[Sequence[int]] = ()) -> list[int]:
    """Hand out one task to each of `count` agents: place i holds the agent that gets the task of agent i.

    A random permutation, so that each agent gets one task. Agent j gets no task i with `assigned[i] == j` in any of
    `taken`, where two permutations that exclude each other at every place leave room for that. It depends on `key`
    alone.
    """
    source = Random(json.dumps(["assign", *key]))
    order = list(range(count))
    while True:
        source.shuffle(order)
        if all(agent not in excluded for agent, *excluded in zip(order, *taken, strict=True)):
            return order


def draw(items: Sequence[T], most: int, key: Key) -> list[T]:
    """At most `most` of the items in random order, no place twice. It depends on `key` alone."""
    return Random(json.dumps(["draw", *key])).sample(items, min(most, len(items)))
