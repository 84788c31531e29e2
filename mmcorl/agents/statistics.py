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


def scaled(logits_nv: Tensor, temperature: float, banned: Tensor) -> Tensor:
    """Logits of the distribution that is sampled from: over the temperature, -inf for `banned` tokens; (N, V), float32."""
    return (logits_nv.float() / temperature).index_fill(-1, banned, -math.inf)


def logprobs_of(logits_nv: Tensor, temperature: float, banned: Tensor) -> Tensor:
    """ln softmax(logits / temperature) over the vocabulary without `banned`, where it is -inf; (N, V), float32."""
    return scaled(logits_nv, temperature, banned).log_softmax(-1)


@torch.no_grad()
def token_statistics(
    logits_nv: Tensor, target: Tensor, temperature: float, banned: Tensor, names: Collection[str]
) -> Tensor:
    """The `logprob` of each target and the statistics `names` of the distribution behind it: (N, 1 + names), float32.

    The distribution is softmax(logits / temperature) over the vocabulary without `banned`. Without a gradient. Beyond
    the logits themselves it holds some copies of `_VALUES_AT_ONCE` numbers, however many tokens there are.
    """
    at_once = max(1, _VALUES_AT_ONCE // logits_nv.shape[-1])
    found: list[Tensor] = []
    for logits, targets in zip(logits_nv.split(at_once), target.split(at_once), strict=True):
        logprobs_nv = logprobs_of(logits, temperature, banned)
        columns = [logprobs_nv.gather(-1, targets[:, None])[:, 0]]
        columns += [STATISTICS[name](logprobs_nv) for name in names]
        found.append(torch.stack(columns, dim=-1))
    return torch.cat(found)
