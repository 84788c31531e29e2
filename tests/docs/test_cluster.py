"""What docs/cluster.md says, done as far as one machine allows."""

from __future__ import annotations

import os
import random
import re
import shlex
import subprocess
import sys
from pathlib import Path

from mmcorl.config_loading import load_config
from mmcorl.training.metrics import read_metrics

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
_PYTHON = shlex.quote(sys.executable)
_COMMANDS = f"""
torchrun() {{ {_PYTHON} -m torch.distributed.run "$@"; }}
mmcorl-train() {{ {_PYTHON} -m mmcorl.cli.train "$@"; }}
"""


def test_an_agent_of_two_ranks_trains_with_one_that_is_started_by_itself(tmp_path):
    commands = "\n".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL))
    first = random.randrange(20_000, 29_000)  # below the ports that the system gives to connections
    commands = commands.replace("29500", str(first)).replace("29501", str(first + 1))
    for name in ("configs", "data_tools"):
        (tmp_path / name).symlink_to(ROOT / name)
    done = subprocess.run(
        ["bash", "-e"],
        input=_COMMANDS + commands,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    run = tmp_path / "runs" / "pair"
    for name in ("qwen", "internvl"):
        lines = read_metrics(run / "agents" / name / "metrics.jsonl", "train")
        assert [line["step"] for line in lines] == [1, 2]
    secret = (tmp_path / "cohort.secret").read_text().strip()
    written = [path.read_bytes() for path in run.rglob("*") if path.suffix in (".yaml", ".log", ".jsonl")]
    assert written and not any(secret.encode() in content for content in written)


def test_scripts_and_settings_of_the_page_exist():
    for script in set(re.findall(r"scripts/\S+\.sbatch", PAGE)):
        assert (ROOT / script).is_file()
    config = load_config(ROOT / "configs" / "quickstart.yaml")
    for section, key in re.findall(r"`(run|cohort)\.(\w+)`", PAGE):
        assert hasattr(getattr(config, section), key)
    for key in re.findall(r"agents\.\w+\.(\w+)", PAGE):
        assert all(hasattr(agent, key) for agent in config.agents.values())
