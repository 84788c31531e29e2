"""A whole Co-RL run of two tiny models of different families, started as a person would."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from mmcorl.training.metrics import read_metrics

ROOT = Path(__file__).parents[2]


def test_two_agents_train_with_vllm_rollouts(tmp_path):
    overrides = [
        f"run.dir={tmp_path}", "run.steps=3", "rollouts.engine=vllm", "rollouts.vllm.eager=true",
        "rollouts.problems_per_step=4", "rollouts.per_problem=4", "rollouts.max_prompt_tokens=128",
        "rollouts.vllm.check_every=2", "data.train.scenes.size=12", "data.eval.scenes.size=4", "evaluation.every=3",
        "agents.qwen.freeze=[]", "agents.internvl.freeze=[]",
    ]  # fmt: skip
    command = [sys.executable, "-m", "mmcorl.cli.train", "configs/quickstart.yaml", *overrides]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("qwen", "internvl"):
        lines = read_metrics(tmp_path / "pair" / "agents" / name / "metrics.jsonl", "train")
        assert [line["step"] for line in lines] == [1, 2, 3]
        assert [line.get("engine_gap") is not None for line in lines] == [True, True, False]
        assert all(line["engine_gap"] < 1e-3 for line in lines[:2])
        assert all(0.99 < line["sampler_weight"] < 1.01 for line in lines)
        assert any(line["grad_norm"] > 0 for line in lines)
