"""Small runs, written as training writes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mmcorl.config import Config
from mmcorl.config_loading import to_yaml
from mmcorl.training.completions import CompletionRecord, CompletionsLog
from mmcorl.training.folders import RunFolder
from mmcorl.training.metrics import MetricsLog

PROBLEMS = [f"count-1-{place}" for place in range(4)]


@pytest.fixture(scope="session")
def write_run() -> Callable[..., Path]:
    """`write_run(home, steps=3, name="pair", ...)`: the folder in `home` of a run of ann and bob.

    Every step has the four scenes that `data.train` names. Three of four of ann's answers are 3, one is 2, and her own
    vote is 3; bob's are the other way round, so that each reward group has both rewards.
    """
    return _write_run


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Path]:
    """`write_run` into the test's own folder."""
    return partial(_write_run, tmp_path)


def _write_run(
    home: Path,
    steps: int = 3,
    name: str = "pair",
    text: str = "so <answer>{}</answer>",
    evaluated: bool = True,
    alarms: Sequence[dict[str, Any]] = (),
    code: int | None = 0,
    **settings: Any,
) -> Path:
    tree = {
        "run": {"name": name, "dir": str(home), "steps": 3},
        "agents": {"ann": {"model": "models/a"}, "bob": {"model": "models/b"}},
        "data": {"train": {"scenes": {"size": 4, "seed": 1}}, "eval": {"scenes": {"size": 4, "seed": 2}}},
        "rollouts": {"problems_per_step": 4, "per_problem": 4},
    } | settings
    config = Config.model_validate(tree)
    folder = RunFolder(home / name)
    folder.path.mkdir()
    folder.config.write_text(to_yaml(config))
    if code is not None:
        folder.launches.write_text(json.dumps({"from_step": 0, "seconds": 12.5, "code": code}) + "\n")
    for agent, (own, other) in {"ann": ("3", "2"), "bob": ("2", "3")}.items():
        metrics = MetricsLog(folder.metrics(agent))
        completions = CompletionsLog(folder.completions(agent))
        for step in range(steps + 1):
            if evaluated:
                share = 0.5 + 0.1 * step
                scores = {
                    f"{key}{end}": share for key in ("accuracy", "avg") for end in ("", "_low", "_high")
                }
                metrics.write("eval", step, **scores, samples=8, problems=4)
            if step > 0:
                measured = {"agreement": 0.25 * step, "vote_share": 0.75, "length": 8.0, "abstained": 0.0}
                metrics.write("train", step, **measured, seconds_rollout=1.0, seconds_update=2.0)
                completions.write(
                    step,
                    [
                        CompletionRecord(
                            problem=problem,
                            text=text.format(answer),
                            tokens=8,
                            finished=True,
                            answer=answer,
                            reward=reward,
                            vote=other,
                            own_vote=own,
                            advantage=2 * reward - 0.5,
                        )
                        for problem in PROBLEMS
                        for answer in (own, own, other, own)
                        for reward in [float(answer == other)]
                    ],
                )
        for alarm in alarms:
            metrics.write("alarm", **alarm)
        metrics.close()
    return folder.path
