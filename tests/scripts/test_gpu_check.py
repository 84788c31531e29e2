import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PARTS = (
    "matrix product",
    "model",
    "rollout",
    "update",
    "shared prefix",
    "output head",
    "gradient checkpointing",
    "attention",
    "memory",
)


def test_every_part_of_the_small_check_runs_on_a_cpu():
    command = [sys.executable, "scripts/gpu_check.py", "--parameters", "small"]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    head, *lines = done.stdout.splitlines()
    assert head.startswith("CPU, torch ")
    assert list(dict.fromkeys(line[:22].strip() for line in lines)) == list(PARTS)
    assert [line for line in lines if "not measured" in line] == []
    assert any("flash_attention_2: skipped" in line for line in lines)
    assert "the peak is measured on a GPU only" in lines[-1]
