"""Agents that sample the very same completions are one agent: a shared seed would turn peer votes into self votes."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence

from mmcorl.cohort.ballots import Ballot
from mmcorl.errors import CohortMismatch

_BITS = 30
"""Two agents in one order of completions by chance: less than once in 2^30 steps."""


def digest(texts: Sequence[str]) -> str:
    """16 hexadecimal digits that stand for these texts in this order."""
    code = hashlib.sha256()
    for text in texts:
        code.update(f"{len(text)}:{text}".encode())
    return code.hexdigest()[:16]


def surprise(texts: Sequence[str]) -> float:
    """How unlikely another order of these texts is the same one, in bits: log2 of the number of different orders.

    Two agents with one opinion draw the same texts often, and in the same order seldom; where all texts are equal
    there is but one order, and nothing can be told.
    """
    orders = math.lgamma(len(texts) + 1) - sum(math.lgamma(n + 1) for n in Counter(texts).values())
    return orders / math.log(2)


def require_different(
    agent: str, ballots: Mapping[str, Sequence[Ballot]], surprises: Sequence[float]
) -> None:
    """Raise CohortMismatch when a peer sampled what `agent` did, text for text.

    `ballots` are every agent's of one step, with digests; `surprises` those of the agent's own texts.
    """
    if sum(surprises) < _BITS:
        return
    own = [ballot.texts for ballot in ballots[agent]]
    for peer, theirs in ballots.items():
        if peer != agent and own == [ballot.texts for ballot in theirs]:
            raise CohortMismatch(
                f"agents {agent} and {peer} sampled the same completions in the same order, so that each learns from "
                "its own vote; give them different noise: two copies of a model need different names, and two servers "
                "different seeds"
            )
