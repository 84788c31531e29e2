"""Who supervises whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mmcorl.cohort.ballots import Ballot, Classes, Vote, elect, pool, weighed
from mmcorl.config import Ties, Topology, Weigh


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
    agents: Sequence[str],
    topology: Topology,
    agent: str,
    votes: Mapping[str, Vote],
    classes: Classes,
    *,
    weigh: Weigh = "votes",
    ballots: Mapping[str, Ballot] | None = None,
    threshold: float = 0.0,
    ties: Ties = "first",
) -> Vote:
    """The vote on one problem that `agent` learns from; `votes` holds every agent's own, `ballots` what elected them.

    Under `ring` and `self` it is one agent's vote as it stands. Under `peers` and `all` it is what several elect
    together; `classes` tells which of their answers are equal. `weigh` says what counts: each agent's vote once
    (`votes`), each by its share (`share`), or the completions of all as one ballot (`pooled`), to which `threshold`
    and `ties` apply. Under the former two a tie abstains, and the vote's share is that of the agents that elected
    something, or of their shares.
    """
    teachers = supervisors(agents, topology, agent)
    if topology in ("ring", "self"):
        return votes[teachers[0]]
    if weigh == "pooled":
        assert ballots is not None, "a pool is made of ballots"
        return elect(pool([ballots[name] for name in teachers], classes), threshold, ties)
    heard = [votes[name] for name in teachers]
    weights = [vote.share if weigh == "share" else 1.0 for vote in heard]
    return weighed([vote.answer for vote in heard], weights, classes)
