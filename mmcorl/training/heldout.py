"""Held-out accuracy: greedy, and averaged over samples (avg@k), with 95 % intervals. Gold answers are allowed here."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

from mmcorl.agents.agent import Agent
from mmcorl.config import EvaluationConfig
from mmcorl.graders import Grader
from mmcorl.problems import Gold, Problem
from mmcorl.training.world import World

Z_95 = 1.959963984540054


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
        return [
            [grader.correct(grader.answer(c.text, p), gold, p) for c in group.completions]
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


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """95 % Wilson score interval of a proportion (Wilson 1927); it stays within 0 and 1."""
    share, z2 = successes / trials, Z_95**2
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = Z_95 * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials**2)) / (1 + z2 / trials)
    return max(0.0, centre - half), min(1.0, centre + half)


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """Mean over problems and half the width of its 95 % normal interval."""
    n = len(values)
    mean = sum(values) / n
    variance = sum((v - mean) ** 2 for v in values) / max(n - 1, 1)
    return mean, Z_95 * math.sqrt(variance / n)
