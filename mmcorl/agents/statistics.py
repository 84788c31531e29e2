"""Statistics of the whole distribution that a token was drawn from, in float32 and a few tokens at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection

import torch
from torch import Tensor

_VALUES_AT_ONCE = 1 << 24  # 64 MiB in float32, of which up to five copies are alive at a time


def entropy(logprobs_nv: Tensor) -> Tensor:
    """`-sum_v p ln p` in nats, (N,)."""
    p_nv = logprobs_nv.exp()
    return torch.special.entr(p_nv, out=p_nv).sum(-1)


def self_certainty(logprobs_nv: Tensor) -> Tensor:
    """`KL(U || p) = -ln V - mean_v ln p` in nats, (N,); U is uniform over the V tokens that can be sampled (Intuitor).

    A token that can be sampled and has next to no probability counts as much as any other. One that cannot be, at
    ln p = -inf, is no part of U, as it would make the divergence infinite.
    """
    kept_nv = logprobs_nv != -math.inf
    kept_n = kept_nv.sum(-1)
    return logprobs_nv.where(kept_nv, 0.0).sum(-1) / -kept_n - kept_n.log()


STATISTICS: dict[str, Callable[[Tensor], Tensor]] = {"entropy": entropy, "self_certainty": self_certainty}
"""What can be asked of distributions, by name: log-probabilities (N, V), -inf where nothing can be sampled -> (N,)."""


@torch.no_grad()
def token_statistics(
    logits_btv: Tensor,
    row: Tensor,
    place: Tensor,
    target: Tensor,
    temperature: float,
    banned: Tensor,
    names: Collection[str],
) -> dict[str, Tensor]:
    """Statistics `names` of the distribution behind each target, and the target's `logprob`; each (N,), float32.

    The distribution is softmax(logits / temperature) over the vocabulary without `banned`, from the logits at
    (`row`, `place`): those that predict the target, not those that follow it. Without a gradient. Beyond the logits
    themselves it holds some copies of `_VALUES_AT_ONCE` numbers, however many tokens there are.
    """
    at_once = max(1, _VALUES_AT_ONCE // logits_btv.shape[-1])
    found: dict[str, list[Tensor]] = {name: [] for name in ("logprob", *names)}
    for turn in torch.arange(len(target), device=target.device).split(at_once):
        scaled_nv = logits_btv[row[turn], place[turn]].float().div_(temperature)
        scaled_nv.index_fill_(-1, banned, -math.inf)
        logprobs_nv = scaled_nv.sub_(scaled_nv.logsumexp(-1, keepdim=True))
        found["logprob"].append(logprobs_nv.gather(-1, target[turn, None])[:, 0])
        for name in names:
            found[name].append(STATISTICS[name](logprobs_nv))
    return {name: torch.cat(turns) for name, turns in found.items()}
