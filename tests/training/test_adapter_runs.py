"""Whole runs that train adapters, through the command: one on whole weights, one on weights in 4 bits, state in 8 bits."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from mmcorl.agents.agent import Agent
from mmcorl.config import AgentConfig
from mmcorl.config_loading import load_config
from mmcorl.errors import MmcorlError
from mmcorl.training.preflight import require_ready

ROOT = Path(__file__).parents[2]

SMALL = (
    "data.train.scenes.size=24", "data.eval.scenes.size=4", "evaluation.every=6", "evaluation.samples=1",
    "rollouts.problems_per_step=4", "rollouts.per_problem=4", "checkpoints.every=2", "run.steps=6",
    "checkpoints.best_by=agreement", "optimizer.lr=1e-2", "optimizer.kind=adamw_8bit", "loss.beta=0.05",
    "agents.qwen.lora.rank=32", "agents.qwen.gradient_checkpointing=true",
    "agents.internvl.lora.rank=32", "agents.internvl.lora.parts=[text,projector]", "agents.internvl.quantize=4bit",
)  # fmt: skip


def command(run_dir, *overrides):
    program = [sys.executable, "-m", "mmcorl.cli.train", "configs/quickstart.yaml"]
    return [*program, *SMALL, f"run.dir={run_dir}", *overrides]


def train(run_dir, *overrides):
    done = subprocess.run(command(run_dir, *overrides), cwd=ROOT, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stdout + done.stderr
    return Path(run_dir) / "pair"


def lines(run, agent):
    """The metrics without what differs from run to run: the seconds."""
    found = (run / "agents" / agent / "metrics.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(line).items() if not k.startswith("seconds")} for line in found]


def checkpoint(run, agent):
    return run / "agents" / agent / "checkpoints" / "step-000006"


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    return train(tmp_path_factory.mktemp("whole"))


def test_checkpoints_hold_adapters_and_are_read_as_models(uninterrupted):
    for name in ("qwen", "internvl"):
        folder = checkpoint(uninterrupted, name)
        held = {path.name for path in folder.glob("*.safetensors")}
        assert held == {"adapter_model.safetensors"}
        assert any(
            tensor.any()
            for key, tensor in load_file(folder / "adapter_model.safetensors").items()
            if "lora_B" in key
        )
        trained = [line for line in lines(uninterrupted, name) if line["kind"] == "train"]
        assert any(line["kl"] > 0 for line in trained) and trained[0]["kl"] == 0
        best = uninterrupted / "agents" / name / "best"
        assert "library_name: peft" in (best / "README.md").read_text()
        Agent.load(name, AgentConfig(model=str(best)))
    kinds = {
        t.dtype
        for t in load_file(checkpoint(uninterrupted, "qwen") / "training" / "optimizer.safetensors").values()
    }
    assert torch.uint8 in kinds


def test_a_killed_run_resumes_to_the_uninterrupted_result(uninterrupted, tmp_path):
    run = tmp_path / "pair"
    process = subprocess.Popen(
        command(tmp_path), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    metrics = run / "agents" / "qwen" / "metrics.jsonl"
    deadline = time.monotonic() + 120
    while not (metrics.exists() and '"step": 3' in metrics.read_text()):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    process.kill()
    process.wait()
    train(tmp_path, "--resume")
    for name in ("qwen", "internvl"):
        assert lines(run, name) == lines(uninterrupted, name)
        for file in ("adapter_model.safetensors", "training/optimizer.safetensors"):
            whole, resumed = (load_file(checkpoint(where, name) / file) for where in (uninterrupted, run))
            assert whole.keys() == resumed.keys()
            assert all(torch.equal(resumed[key], tensor) for key, tensor in whole.items()), file


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("agents.qwen.lora.rank=2", r"agents\.qwen\.lora needs peft.*pip install 'mmcorl\[lora\]'"),
        ("optimizer.kind=adamw_8bit", r"optimizer\.kind=adamw_8bit needs bitsandbytes"),
        ("rollouts.engine=vllm", r"rollouts\.engine=vllm needs vllm.*pip install 'mmcorl\[vllm\]'"),
    ],
)
def test_a_missing_package_is_found_before_anything_is_loaded(monkeypatch, setting, message):
    config = load_config(ROOT / "configs/quickstart.yaml", [setting])
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("mmcorl.agents.extras.find_spec", lambda package: None)
    with pytest.raises(MmcorlError, match=message):
        require_ready(config)


def test_two_ranks_begin_with_the_adapters_of_one_and_stay_with_it(tmp_path):
    """In float32: with averages in 8 bits the order of a sum is enough to round to another value."""
    plain = ("optimizer.kind=adamw", "run.steps=3", "evaluation.every=0", "agents.internvl.quantize=null")
    one = train(tmp_path / "one", *plain)
    two = train(tmp_path / "two", *plain, "agents.qwen.ranks=2")
    for ours, alone in zip(lines(two, "qwen"), lines(one, "qwen"), strict=True):
        for key in ("reward", "loss", "grad_norm", "kl"):
            assert ours[key] == pytest.approx(alone[key], rel=1e-3, abs=1e-5), key
