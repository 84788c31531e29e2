"""Group-relative policy optimisation in pure functions.

Suffixes name the axes of a tensor: n groups (problems), k completions of a group, i completions of a batch, t tokens
of a completion. Rows are padded on the right to the longest completion; `mask_it` is True where a token counts.

The loss of a step is `sum_i weight_i * sum_t loss_it`. The weights come from the lengths of the whole batch (all
micro-batches of all ranks), so that the sum over any way of cutting the batch is the same number.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mmcorl.config import LossKind, SamplerCorrection, Scale
from mmcorl.errors import MmcorlError


def group_advantages(rewards_nk: Tensor, labelled_n: Tensor, scale: Scale, eps: float = 1e-4) -> Tensor:
    """How much better than its group each completion is: `(reward - group mean) / (std + eps)`, shape (n, k).

    `scale` takes the standard deviation (Bessel-corrected) over the `group` (DeepSeekMath), over all rewards of the
    `batch`, or divides by nothing (`none`, Dr. GRPO). Groups whose rewards are all equal get exactly 0. So do groups
    that are not `labelled_n`; their rewards mean nothing and do not enter the batch's standard deviation.
    """
    rewards_nk = rewards_nk.float()
    advantages_nk = rewards_nk - rewards_nk.mean(dim=1, keepdim=True)
    informative_n = labelled_n & (rewards_nk.amax(dim=1) > rewards_nk.amin(dim=1))
    if not informative_n.any():
        return torch.zeros_like(rewards_nk)
    match scale:
        case "group":
            advantages_nk = advantages_nk / (rewards_nk.std(dim=1, keepdim=True) + eps)
        case "batch":
            advantages_nk = advantages_nk / (rewards_nk[labelled_n].std() + eps)
        case "none":
            pass
    return torch.where(informative_n.unsqueeze(1), advantages_nk, 0.0)


@torch.no_grad()
def sampler_weights(
    old_logprobs_it: Tensor,
    sampling_logprobs_it: Tensor,
    mask_it: Tensor,
    kind: SamplerCorrection,
    cap: float,
) -> Tensor:
    """Importance weights between the engine that sampled the tokens and the policy that learns from them.

    A ratio is `exp(old - sampling)` of a token, or of the sum over a completion's tokens; one above `cap` becomes
    `cap` (truncate) or 0 (mask). Returns shape (i, t), constant along t in the sequence kinds. Raises MmcorlError when
    a sampling log-probability is not a number: it means that the sampler's logits were, and no weight mends that.
    """
    broken_i = (~torch.isfinite(sampling_logprobs_it) & mask_it).any(dim=1)
    if broken_i.any():
        rows = ", ".join(str(row) for row in broken_i.nonzero().flatten().tolist())
        raise MmcorlError(
            f"the sampler gave log-probabilities that are not finite for completions {rows} of this batch; "
            "its logits were not finite either: check the model's weights and agents.*.dtype"
        )
    if kind == "none":
        return torch.ones_like(old_logprobs_it)
    log_ratio_it = torch.where(mask_it, old_logprobs_it - sampling_logprobs_it, 0.0)
    if kind.startswith("sequence"):
        log_ratio_it = log_ratio_it.sum(dim=1, keepdim=True).expand_as(log_ratio_it)
    ratio_it = log_ratio_it.exp()
    return (
        ratio_it.clamp(max=cap) if kind.endswith("truncate") else torch.where(ratio_it > cap, 0.0, ratio_it)
    )


def token_losses(
    logprobs_it: Tensor,
    old_logprobs_it: Tensor,
    advantages_i: Tensor,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    ratio_cap: float | None = None,
    weights_it: Tensor | None = None,
    reference_logprobs_it: Tensor | None = None,
    beta: float = 0.0,
) -> Tensor:
    """The clipped policy-gradient loss of every token (PPO), shape (i, t).

    The ratio `exp(logprobs - old)` is clipped to `[1 - clip_low, 1 + clip_high]` where that makes the loss larger, and
    never exceeds `ratio_cap` (dual clip: bounds the loss of a bad token that became likely). `weights_it` are the
    sampler's importance weights. `beta` times the KL divergence to the reference is added after them, unweighted.
    """
    advantages_i1 = advantages_i.unsqueeze(1)
    ratio_it = (logprobs_it - old_logprobs_it).exp()
    clipped_it = ratio_it.clamp(1 - clip_low, 1 + clip_high)
    if ratio_cap is not None:
        ratio_it = ratio_it.clamp(max=ratio_cap)
    losses_it = -torch.minimum(ratio_it * advantages_i1, clipped_it * advantages_i1)
    if weights_it is not None:
        losses_it = losses_it * weights_it
    if beta > 0:
        assert reference_logprobs_it is not None, "beta > 0 needs the reference's log-probabilities"
        losses_it = losses_it + beta * kl_k3(logprobs_it, reference_logprobs_it)
    return losses_it


def kl_k3(logprobs_it: Tensor, reference_logprobs_it: Tensor) -> Tensor:
    """Estimate of KL(policy || reference) from each sampled token: `exp(d) - d - 1`, d = reference - policy.

    Unbiased and never negative (the "k3" estimator, Schulman 2020). In nats, shape (i, t).
    """
    difference_it = reference_logprobs_it - logprobs_it
    return difference_it.exp() - difference_it - 1


def completion_weights(
    lengths_i: Tensor, kind: LossKind, max_tokens: int, bnpo_completions: int = 1
) -> Tensor:
    """The weight of each completion's summed token losses in the loss of a step, float32, shape (i,).

    `lengths_i` holds the number of tokens of every completion that the step learns from, on all ranks, in order:

    - `grpo`: 1 / (N * length), the mean over completions of the mean over tokens (DeepSeekMath).
    - `dr_grpo`: 1 / (N * max_tokens), free of length bias (Dr. GRPO).
    - `dapo`: 1 / tokens of the batch, the mean over all tokens (DAPO).
    - `bnpo`: the mean over chunks of `bnpo_completions` consecutive completions of the mean over each chunk's tokens.
      It stands for a micro-batch of that size, whatever the real micro-batches are; a last chunk may be shorter.

    What is left out of the loss (unlabelled groups, zero advantages, masked truncated completions) still counts here
    with its full length: leaving out one completion never makes another one count more. A completion of no tokens
    counts as a completion and adds nothing to token counts.
    """
    lengths_i = lengths_i.to(torch.float32)
    count = len(lengths_i)
    match kind:
        case "grpo":
            return 1 / (count * lengths_i.clamp(min=1))
        case "dr_grpo":
            return torch.full_like(lengths_i, 1 / (count * max_tokens))
        case "dapo":
            return (1 / lengths_i.sum().clamp(min=1)).expand(count)
        case "bnpo":
            chunks = lengths_i.split(bnpo_completions)
            return torch.cat(
                [(1 / (len(chunks) * chunk.sum().clamp(min=1))).expand_as(chunk) for chunk in chunks]
            )


def batch_loss(losses_it: Tensor, mask_it: Tensor, weights_i: Tensor) -> Tensor:
    """This micro-batch's share of the step's loss, a scalar: add the shares of all micro-batches of all ranks.

    Where gradients are averaged over ranks rather than added, multiply it by the number of ranks.
    """
    return (torch.where(mask_it, losses_it, 0.0).sum(dim=1) * weights_i).sum()
