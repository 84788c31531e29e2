"""The batch scripts, run without a scheduler: `srun` and `scontrol` are stood in for on this machine alone.

What stands in starts as many tasks as asked, with the variables that the scripts read; all else is real.
"""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from mmcorl.training import checkpoints
from mmcorl.training.metrics import read_metrics

ROOT = Path(__file__).parents[2]
SLURM = ROOT / "scripts" / "slurm"
SRUN = """#!/bin/bash
trap 'kill $(jobs -p)' TERM
tasks=1
while [[ $1 == --* ]]; do
    [[ $1 == --ntasks=* ]] && tasks=${1#--ntasks=}
    shift
done
for ((task = 0; task < tasks; task++)); do
    SLURM_PROCID=$task "$@" &
done
code=0
for ((task = 0; task < tasks; task++)); do
    wait -n || code=$?
done
exit $code
"""
SCONTROL = "#!/bin/bash\nfor ((node = 0; node < NODES; node++)); do echo 127.0.0.1; done\n"
LAUNCHER = f"""#!{sys.executable}
import functools, sys
from mmcorl.cli.train import main
from mmcorl.training import launcher

launcher.launch = functools.partial(launcher.launch, worker_module="lockstep_worker")
sys.exit(main())
"""
LOCKSTEP = """
agents: {ann: {model: good}, bob: {model: good}}
data: {train: {scenes: {size: 24}}}
checkpoints: {every: 2}
run: {steps: 6}
"""


@pytest.fixture
def batch(tmp_path):
    """`batch(script, nodes, *arguments)`: submit, wait, and give what it printed; `tmp_path` is the shared folder."""
    programs = tmp_path / "bin"
    programs.mkdir()
    torchrun = f'#!/bin/bash\nexec {sys.executable} -m torch.distributed.run "$@"\n'
    for name, text in {
        "srun": SRUN, "scontrol": SCONTROL, "mmcorl-train": LAUNCHER, "torchrun": torchrun,
    }.items():  # fmt: skip
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)

    def run(script, nodes, *arguments, **variables):
        environment = os.environ | {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": f"{ROOT}:{ROOT / 'tests' / 'training'}",
            "NODES": str(nodes),
            "SLURM_JOB_ID": str(random.randrange(10_000)),  # ports come from it
            "SLURM_JOB_NODELIST": "here",
            "OMP_NUM_THREADS": "1",
            **variables,
        }
        return subprocess.run(
            ["bash", str(SLURM / script), *arguments],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240,
        )  # fmt: skip

    return run


@pytest.mark.parametrize("script", sorted(SLURM.glob("*.sbatch")), ids=lambda path: path.name)
def test_scripts_are_bash(script):
    done = subprocess.run(["bash", "-n", str(script)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_agents_on_nodes_of_their_own_train_and_a_requeued_job_goes_on(batch, tmp_path):
    (tmp_path / "run.yaml").write_text(LOCKSTEP)
    for steps, variables in ((6, {}), (8, {"SLURM_RESTART_COUNT": "1"})):
        done = batch(
            "agents_on_nodes.sbatch", 2, "run.yaml", "ann", "bob", "--", f"run.steps={steps}", **variables
        )
        assert done.returncode == 0, done.stdout + done.stderr
    agents = tmp_path / "runs" / "run" / "agents"
    for name in ("ann", "bob"):
        lines = read_metrics(agents / name / "metrics.jsonl", "train")
        assert [line["step"] for line in lines] == list(range(1, 9))
    assert not list(tmp_path.glob(".mmcorl*"))  # the secret goes with the job


def test_an_agent_that_cannot_start_ends_the_job_of_all(batch, tmp_path):
    (tmp_path / "run.yaml").write_text(LOCKSTEP.replace("bob: {model: good}", "bob: {model: ./none}"))
    done = batch("agents_on_nodes.sbatch", 2, "run.yaml", "ann", "bob")
    assert done.returncode != 0
    assert "error: agents.bob.model=./none does not exist" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_a_wrong_number_of_nodes_is_told(batch):
    done = batch("agents_on_nodes.sbatch", 3, "run.yaml", "ann", "bob")
    assert (done.returncode, done.stderr) == (2, "2 agents and 3 nodes: start with --nodes=2\n")
    done = batch("agents_over_nodes.sbatch", 3, "run.yaml", "ann", "bob")
    assert (done.returncode, done.stderr) == (2, "3 nodes do not divide among 2 agents\n")


def test_torchrun_trains_one_agent_over_two_nodes(batch, tmp_path):
    (tmp_path / "data_tools").symlink_to(ROOT / "data_tools")
    done = batch(
        "agents_over_nodes.sbatch", 2, str(ROOT / "configs" / "quickstart.yaml"), "qwen", "--",
        "agents.internvl=null", "cohort.topology=self", "data.eval=null", "evaluation.every=0", "run.steps=2",
        "rollouts.problems_per_step=4", "rollouts.per_problem=2", "data.train.scenes.size=8",
        SLURM_GPUS_ON_NODE="1",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    home = tmp_path / "runs" / "pair" / "agents" / "qwen"
    assert [line["step"] for line in read_metrics(home / "metrics.jsonl", "train")] == [1, 2]
    assert checkpoints.steps(home / "checkpoints") == [2]
