"""Who supervises whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from mmcorl.cohort.ballots import Ballot, Classes, Vote, elect

Topology = Literal["ring", "self", "peers", "all"]


def supervisors(agents: Sequence[str], topology: Topology, agent: str) -> list[str]:
    """The agents whose votes supervise `agent`, in the cohort's order.

    `ring` is the predecessor, the first agent's being the last (of two agents, the other); `self` the agent alone;
    `peers` all others; `all` everybody, the agent included.
    """
    place = agents.index(agent)
    match topology:
        case "ring":
            return [agents[place - 1]]
        case "self":
            return [agent]
        case "peers":
            return [*agents[:place], *agents[place + 1 :]]
        case "all":
            return list(agents)


def supervise(
    agents: Sequence[str], topology: Topology, agent: str, votes: Mapping[str, Vote], classes: Classes
) -> Vote:
    """The vote on one problem that `agent` learns from; `votes` holds every agent's own.

    Under `ring` and `self` it is one agent's vote as it stands. Under `peers` and `all` it is the majority of several
    votes: each agent that elected something counts once, `classes` tells which answers are equal, a tie abstains, and
    the share is that of the agents that elected something.
    """
    teachers = supervisors(agents, topology, agent)
    if topology in ("ring", "self"):
        return votes[teachers[0]]
    return elect(
        Ballot.count([votes[name].answer for name in teachers], classes), threshold=0.0, ties="abstain"
    )
