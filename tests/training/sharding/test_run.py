"""A whole run of two agents through the command, one of which lies over two ranks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SETTINGS = (
    "data.train.scenes.size=24", "evaluation.every=0", "checkpoints.best_by=agreement", "checkpoints.every=2",
    "rollouts.problems_per_step=4", "rollouts.per_problem=4", "optimizer.lr=1e-3",
)  # fmt: skip


def train(folder, *overrides):
    command = [sys.executable, "-m", "mmcorl.cli.train", "configs/quickstart.yaml", f"run.dir={folder}"]
    done = subprocess.run(
        [*command, *SETTINGS, *overrides], cwd=ROOT, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "pair"


def numbers(run, agent):
    """Each line of the metrics, without what is a matter of speed."""
    lines = [json.loads(line) for line in (run / "agents" / agent / "metrics.jsonl").read_text().splitlines()]
    return [
        {k: v for k, v in line.items() if isinstance(v, int | float) and not k.startswith("seconds")}
        for line in lines
    ]


def test_an_agent_in_parts_makes_the_steps_of_a_whole_one_and_goes_on_as_one(tmp_path):
    whole = train(tmp_path / "whole", "run.steps=3")
    parts = train(tmp_path / "parts", "run.steps=2", "agents.qwen.sharding=fsdp2", "agents.qwen.ranks=2")
    train(tmp_path / "parts", "run.steps=3", "--resume")
    for agent in ("qwen", "internvl"):
        ours, expected = numbers(parts, agent), numbers(whole, agent)
        trained = [line for line in expected if "grad_norm" in line]
        assert len(trained) == 3 and all(line["grad_norm"] > 0 for line in trained)
        ours, expected = ([n for n in lines if "grad_norm" in n] for lines in (ours, expected))
        for line, other in zip(ours, expected, strict=True):
            assert line == pytest.approx(other, rel=1e-4, abs=1e-5)
