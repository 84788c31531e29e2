"""The rewards of MAPoRL (Park et al. 2025): scores of a debate's turns, shared and discounted, and incentives.

Suffixes name the axes of a tensor: d debates, a agents, t turns. A debate may end early; `reached_dt` tells which
turns it had, a first stretch of them. What is not reached counts nowhere and gets 0, which is no value of its own:
whoever learns from it has to look at the mask.
"""

from __future__ import annotations

import torch
from torch import Tensor


def shared_rewards(scores_dat: Tensor, reached_dt: Tensor, discount: float) -> Tensor:
    """The own score of a turn and the mean score of all agents at each later one, weighed by powers of `discount`.

    `(s_at + sum_{k>t} g^(k-t) mean_b s_bk) / sum_{k>=t} g^(k-t)` over the turns that were reached, shape (d, a, t).
    Scores in [0, 1] give rewards in [0, 1].
    """
    turns = scores_dat.shape[-1]
    distance_tk = torch.arange(turns)[None, :] - torch.arange(turns)[:, None]
    later_tk = torch.where(distance_tk > 0, discount ** distance_tk.clamp(min=0).double(), 0.0)
    reached_dt = reached_dt.bool()
    scores_dat = scores_dat.double() * reached_dt[:, None, :]
    mean_dt = scores_dat.mean(dim=1)
    later_dt = mean_dt @ later_tk.T
    total_dt = 1 + reached_dt.double() @ later_tk.T
    return (scores_dat + later_dt[:, None, :]) / total_dt[:, None, :] * reached_dt[:, None, :]


def incentives(
    scores_dat: Tensor, reached_dt: Tensor, weights: tuple[float, float, float, float], threshold: float = 0.5
) -> Tensor:
    """What is added for changes of mind, shape (d, a, t). An answer is right where its score is above `threshold`.

    With weights a0 to a3, "the others" being the majority of all other agents, which a tie leaves undecided:

    - An agent that turns right at t gets a0 where the others were right at t - 1, and a1 where they were wrong; one
      that turns wrong loses a0 where they were wrong, and a1 where they were right.
    - Where the others turn right from t to t + 1, an agent that was right at t gets a3, and one that was wrong a2;
      where they turn wrong, an agent that was wrong at t loses a3, and one that was right a2.

    So a positive weight always rewards a change to the right and punishes one to the wrong answer, a1 and a3 where the
    agent's own answer is the likelier cause.
    """
    a0, a1, a2, a3 = weights
    right_dat = scores_dat > threshold
    count = right_dat.shape[1]
    assert count > 1, "there are no others"
    share_dat = (right_dat.sum(dim=1, keepdim=True) - right_dat.long()).double() / (count - 1)
    others_right_dat, others_wrong_dat = share_dat > 0.5, share_dat < 0.5
    reached_d1t = reached_dt.bool()[:, None, :]
    both_reached = reached_d1t[..., 1:] & reached_d1t[..., :-1]

    was, now = right_dat[..., :-1], right_dat[..., 1:]
    others_were_right, others_were_wrong = others_right_dat[..., :-1], others_wrong_dat[..., :-1]
    towards = a0 * others_were_right.double() + a1 * others_were_wrong.double()
    away = a1 * others_were_right.double() + a0 * others_were_wrong.double()
    own = (~was & now) * towards - (was & ~now) * away

    turned_right = others_were_wrong & others_right_dat[..., 1:]
    turned_wrong = others_were_right & others_wrong_dat[..., 1:]
    for_right = torch.where(was, torch.tensor(a3).double(), a2)
    for_wrong = a2 + a3 - for_right
    influence = turned_right * for_right - turned_wrong * for_wrong

    added_dat = torch.zeros_like(share_dat)
    added_dat[..., 1:] += torch.where(both_reached, own, 0.0)
    added_dat[..., :-1] += torch.where(both_reached, influence, 0.0)
    return added_dat
