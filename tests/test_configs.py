"""Every shipped configuration loads; each setting of the paper has a tiny twin, and each twin trains for two steps."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mmcorl.config_loading import load_config

ROOT = Path(__file__).parents[1]
CONFIGS = sorted(
    path.relative_to(ROOT)
    for path in (ROOT / "configs").rglob("*.yaml")
    if not path.name.startswith("compare")
)
TINY = [path for path in CONFIGS if path.parent.name == "tiny" and path.name != "base.yaml"]


def kind(config):
    """What sets one method or setting apart from another, whatever the models and sizes."""
    models = [agent.model for agent in config.agents.values()]
    return (
        config.reward.rule,
        config.interaction.kind if config.interaction else None,
        min(len(models), 3),
        len(set(models)) == 1 and len(models) > 1,
        any(agent.wording == "twin" for agent in config.agents.values()),
    )


@pytest.mark.parametrize("path", CONFIGS, ids=str)
def test_every_configuration_loads(path, monkeypatch):
    monkeypatch.chdir(ROOT)
    config = load_config(path)
    if "paper" in path.parts and path.parent.name.startswith("table"):
        assert config.run.name == f"{path.parent.name}_{path.stem}"


def test_every_row_of_the_paper_has_a_tiny_twin(monkeypatch):
    monkeypatch.chdir(ROOT)
    twins = {kind(load_config(path)) for path in TINY}
    rows = [path for path in CONFIGS if path.parent.name.startswith("table")]
    assert len(rows) > 50
    assert [path for path in rows if kind(load_config(path)) not in twins] == []


@pytest.mark.parametrize("path", TINY, ids=lambda path: path.stem)
def test_tiny_twins_train(path, tmp_path):
    command = [sys.executable, "-m", "mmcorl.cli.train", str(path), f"run.dir={tmp_path}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    for name, agent in load_config(ROOT / path).agents.items():
        log = tmp_path / path.stem / "agents" / name / "metrics.jsonl"
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        steps = [line for line in lines if line["kind"] == "train"]
        assert [line["step"] for line in steps] == [1, 2]
        assert agent.frozen or all(line["grad_norm"] >= 0 for line in steps)
