"""What a cohort gains by sampling one step ahead: seconds a step and seconds of waiting, with and without.

    python bench/lockstep.py [--steps 20]

Both runs train the quickstart's two agents, one thread each. They take turns within one call, so that other work on the
machine slows both. The first step, which warms caches, is not counted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

_ROOT = Path(__file__).parents[1]
_PHASES = [f"seconds_{phase}" for phase in ("rollout", "grading", "exchange", "signal", "update")]
_ROUNDS = 2


def main() -> int:
    parser = argparse.ArgumentParser(
        description="A cohort that waits against one that samples one step ahead."
    )
    parser.add_argument("--steps", type=int, default=20, metavar="N", help="steps of each run")
    steps = parser.parse_args().steps
    seconds: dict[int, list[float]] = {0: [], 1: []}
    waiting: dict[int, list[float]] = {0: [], 1: []}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(_ROUNDS):
            for staleness in (0, 1):
                name = f"stale{staleness}-{turn}"
                lines = _run(Path(folder), name, staleness, steps)
                seconds[staleness].append(
                    sum(line[phase] for line in lines["qwen"][1:] for phase in _PHASES) / (steps - 1)
                )
                waiting[staleness].append(
                    sum(line["seconds_waiting"] for agent in lines.values() for line in agent[1:])
                    / (steps - 1)
                )
    print("max_staleness   s a step   s of waiting a step, both agents")
    for staleness in (0, 1):
        print(f"{staleness:>13}   {median(seconds[staleness]):8.3f}   {median(waiting[staleness]):8.3f}")
    print(f"ratio of time a step, waiting to stale: {median(seconds[0]) / median(seconds[1]):.2f}")
    return 0


def _run(folder: Path, name: str, staleness: int, steps: int) -> dict[str, list[dict[str, float]]]:
    command = [
        sys.executable, "-m", "mmcorl.cli.train", "configs/quickstart.yaml", f"run.dir={folder}", f"run.name={name}",
        f"run.steps={steps}", "run.threads=2", "evaluation.every=0", "checkpoints.best_by=agreement",
        f"checkpoints.every={steps}", f"cohort.max_staleness={staleness}", "logging.completions=false",
    ]  # fmt: skip
    subprocess.run(command, cwd=_ROOT, check=True, stdout=subprocess.DEVNULL)
    return {
        agent: [
            line
            for text in (folder / name / "agents" / agent / "metrics.jsonl").read_text().splitlines()
            if (line := json.loads(text))["kind"] == "train"
        ]
        for agent in ("qwen", "internvl")
    }


if __name__ == "__main__":
    sys.exit(main())
