"""Held-out accuracy: greedy, and averaged over samples (avg@k), with 95 % intervals. Gold answers are allowed here."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from mmcorl.agents.agent import Agent
from mmcorl.config import EvaluationConfig
from mmcorl.graders import Grader
from mmcorl.problems import Gold, Problem
from mmcorl.statistics import mean_interval, wilson_interval
from mmcorl.training.world import World


def evaluate(
    agent: Agent,
    problems: Sequence[Problem],
    golds: Mapping[str, Gold],
    grader: Grader,
    world: World,
    config: EvaluationConfig,
    max_tokens: int,
    seed: int,
) -> dict[str, Any]:
    """Metrics of one evaluation, the same on every rank. Samples use the same noise at every evaluation of a run."""
    started = time.monotonic()
    mine = world.share(problems)
    golds_read = [grader.read(golds[p.id].answer, p) for p in mine]

    def verdicts(samples: int, noise_key: tuple[int | str, ...] | None) -> list[list[bool]]:
        groups = agent.rollout(
            mine, samples=samples, max_tokens=max_tokens, noise_key=noise_key, temperature=config.temperature
        )
        given = iter(
            grader.answers([(c, p) for g, p in zip(groups, mine, strict=True) for c in g.completions])
        )
        return [
            [grader.correct(next(given), gold, p) for _ in group.completions]
            for group, p, gold in zip(groups, mine, golds_read, strict=True)
        ]

    greedy = [right for [right] in world.gather(verdicts(1, None))]
    low, high = wilson_interval(sum(greedy), len(greedy))
    metrics: dict[str, Any] = {
        "accuracy": sum(greedy) / len(greedy),
        "accuracy_low": low,
        "accuracy_high": high,
    }
    if config.samples:
        sampled = world.gather(verdicts(config.samples, ("evaluation", seed)))
        means = [sum(row) / len(row) for row in sampled]
        mean, half = mean_interval(means)
        metrics |= {"avg": mean, "avg_low": max(0.0, mean - half), "avg_high": min(1.0, mean + half)}
    return metrics | {
        "samples": config.samples,
        "problems": len(problems),
        "seconds": time.monotonic() - started,
    }
