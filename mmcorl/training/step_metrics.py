"""One step in numbers: what `metrics.jsonl` says of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import torch

from mmcorl.graders import Answer, Grader

if TYPE_CHECKING:
    from mmcorl.training.step import Step


def step_metrics(step: Step, name: str, grader: Grader, golds: Mapping[str, Answer | None]) -> dict[str, Any]:
    """One step in numbers. `golds` serve a diagnostic only: the accuracy of the supervising votes."""
    own, votes = step.votes[name], step.supervising_votes
    answers = [answer for row in step.answers for answer in row]
    labelled = zip(step.rewards.values, step.rewards.labelled, strict=True)
    both = [(o.answer, v.answer) for o, v in zip(own, votes, strict=True) if o.answer and v.answer]
    judged = [
        grader.correct(v.answer, golds[p.id], p)
        for p, v in zip(step.problems, votes, strict=True)
        if v.answer and golds.get(p.id)
    ]
    length = float(step.lengths.float().mean())
    labels = [label for label in step.rewards.labels or [vote.answer for vote in own] if label is not None]
    label_counts = [len(members) for members in grader.classes(labels)]
    labelled_groups = torch.tensor(step.rewards.values)[torch.tensor(step.rewards.labelled, dtype=torch.bool)]
    metrics = {
        "reward": _share(reward for row, has_label in labelled if has_label for reward in row),
        "agreement": _share(grader.same(o, v) for o, v in both),
        "agreement_text": _share(o.value == v.value for o, v in both),
        "vote_share": _share(vote.share for vote in own),
        "tie_rate": _share(vote.tie for vote in own),
        "labelled": _share(step.rewards.labelled),
        "distinct_answers": _share(len(grader.classes(row)) for row in step.answers),
        "distinct_labels": len(label_counts),
        "constant_answer": max(label_counts) / len(labels) if labels else None,
        "reward_std": _share(labelled_groups.std(dim=1).tolist())
        if len(labelled_groups) and len(step.answers[0]) > 1
        else None,
        "abstained": _share(answer is None for answer in answers),
        "length": length or None,  # an endpoint tells no tokens
        "surprisal": float(step.nats.sum() / step.lengths.sum())
        if step.nats is not None and length
        else None,
        "truncated": 1 - float(step.finished.float().mean()),
        "live_groups": float((step.advantages != 0).any(dim=1).float().mean()),
        **{name: _share(mean for row in rows for mean in row) for name, rows in step.statistics.items()},
        **step.learning,
        **{f"seconds_{phase}": seconds for phase, seconds in step.seconds.items()},
    }
    if golds:
        metrics["vote_accuracy"] = _share(judged)
        metrics |= _label_metrics(step, grader, golds)
    return metrics


def _label_metrics(step: Step, grader: Grader, golds: Mapping[str, Answer | None]) -> dict[str, float | None]:
    """How right the labels are, and how often a reward is what a right label would have given.

    The latter can be high where the former is low: a wrong answer that is not the wrong label gets its due 0.
    """
    rows = [
        (label, golds[problem.id], problem, answers, rewards)
        for problem, label, answers, rewards in zip(
            step.problems, step.rewards.labels or [], step.answers, step.rewards.values, strict=False
        )
        if label and golds.get(problem.id)
    ]
    return {
        "label_accuracy": _share(grader.correct(label, gold, problem) for label, gold, problem, *_ in rows),
        "reward_accuracy": _share(
            grader.correct(answer, gold, problem) == bool(reward)
            for _, gold, problem, answers, rewards in rows
            for answer, reward in zip(answers, rewards, strict=True)
        ),
    }


def _share(values: Iterable[float]) -> float | None:
    numbers = [float(v) for v in values]
    return sum(numbers) / len(numbers) if numbers else None
