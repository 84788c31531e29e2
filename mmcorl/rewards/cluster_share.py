"""A soft vote, as in EMPO: a completion is rewarded by how many of its group gave its answer."""

from __future__ import annotations

from mmcorl.rewards.inputs import RewardInputs, Rewards


def cluster_share(inputs: RewardInputs) -> Rewards:
    """The share of the voting completions that gave the same answer. 0 for an abstention, which EMPO gives 1/K."""
    values = [
        [
            next((size / ballot.total for other, size in ballot.counts if answer and inputs.same(answer, other)), 0.0)
            for answer in group
        ]
        for group, ballot in zip(inputs.answers, inputs.own_ballots, strict=True)
    ]  # fmt: skip
    return Rewards(values, [ballot.parsed > 0 for ballot in inputs.own_ballots])
