"""From the ballots of a step to the votes that supervise one agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mmcorl.cohort.ballots import Ballot, Classes, Vote, elect
from mmcorl.cohort.topology import supervise
from mmcorl.config import CohortConfig


def votes_of(
    config: CohortConfig, name: str, cohort: Mapping[str, Sequence[Ballot]], classes: Classes
) -> tuple[dict[str, list[Vote]], list[Vote]]:
    """What every agent's ballots elect, and for each problem the vote that supervises agent `name`.

    `cohort` has every agent's ballots, in the cohort's order; `classes` groups equal answers.
    """
    names = list(cohort)
    votes = {agent: [elect(b, config.threshold, config.ties) for b in rows] for agent, rows in cohort.items()}
    supervising = [
        supervise(
            names,
            config.topology,
            name,
            dict(zip(names, row, strict=True)),
            classes,
            weigh=config.weigh,
            ballots=dict(zip(names, ballots, strict=True)),
            threshold=config.threshold,
            ties=config.ties,
        )
        for row, ballots in zip(
            zip(*votes.values(), strict=True), zip(*cohort.values(), strict=True), strict=True
        )
    ]
    return votes, supervising
