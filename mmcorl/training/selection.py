"""Which checkpoint of an agent is its best: by held-out accuracy, without labels, or simply the last."""

from __future__ import annotations

from collections.abc import Sequence

from mmcorl.training.metrics import Line

RULES = {
    "accuracy": "held-out greedy accuracy",
    "agreement": "agreement with the supervising vote, a rule without labels",
    "vote_share": "mean share of the leading answer, a rule without labels",
    "last": "being the last",
}
"""What each value of `checkpoints.best_by` means, in words."""


def score(best_by: str, step: int, accuracy: float | None, recent: Sequence[Line]) -> float | None:
    """The score of the checkpoint of `step`, the higher the better; None where there is nothing to judge by.

    `accuracy` is the held-out accuracy of this step, if it was evaluated; `recent` are the metrics of the steps since
    the last regular checkpoint, over which label-free measures are averaged.
    """
    match best_by:
        case "accuracy":
            return accuracy
        case "last":
            return float(step)
    values = [line[best_by] for line in recent if line.get(best_by) is not None]
    return sum(values) / len(values) if values else None
