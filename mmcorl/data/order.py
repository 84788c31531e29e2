"""Which problems a step takes: the same for every agent and however the agent is spread over ranks."""

from __future__ import annotations

import random
from functools import lru_cache

from mmcorl.errors import MmcorlError


def problems_of_step(n_problems: int, per_step: int, step: int, seed: int) -> list[int]:
    """Indices, below `n_problems`, of the `per_step` problems of step `step` (counted from 0).

    Steps walk through epochs, each a fresh seeded order of all problems, and drop none: a step that an epoch's end
    cuts goes on with the next epoch. With at least `2 * per_step` problems, or a whole number of steps to the epoch,
    no step holds a problem twice. Raises MmcorlError when there are fewer problems than a step takes.
    """
    if not 0 < per_step <= n_problems:
        raise MmcorlError(
            f"rollouts.problems_per_step={per_step} does not fit a training set of {n_problems} problems; "
            f"set it to between 1 and {n_problems}"
        )
    places = range(step * per_step, (step + 1) * per_step)
    return [_epoch(n_problems, per_step, place // n_problems, seed)[place % n_problems] for place in places]


@lru_cache(maxsize=4)
def _epoch(n_problems: int, per_step: int, epoch: int, seed: int) -> list[int]:
    """The order of one epoch, in which the problems that share a step with the end of the last epoch are others.

    The head is moved forward from the first places of the shuffle, so the tail stays that of the shuffle and the
    next epoch can look at it without knowing this one's head.
    """
    order = _shuffle(n_problems, epoch, seed)
    shared = epoch * n_problems % per_step
    if not shared:
        return order
    before = set(_shuffle(n_problems, epoch - 1, seed)[-shared:])
    head = [index for index in order if index not in before][: per_step - shared]
    taken = set(head)
    return head + [index for index in order if index not in taken]


def _shuffle(n_problems: int, epoch: int, seed: int) -> list[int]:
    order = list(range(n_problems))
    random.Random(f"order {seed} {epoch}").shuffle(order)
    return order
