"""Whole runs of interactions through the command, as a user starts them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from mmcorl.training.completions import read_completions

ROOT = Path(__file__).parents[3]


PAIR = (  # two agents and no evaluation: half the time
    "agents.third=null", "data.train.scenes.size=12", "data.eval=null", "evaluation.every=0",
    "checkpoints.best_by=agreement", "checkpoints.every=1",
)  # fmt: skip


def train(kind, folder, *overrides):
    command = [
        sys.executable,
        "-m",
        "mmcorl.cli.train",
        f"configs/tiny/{kind}.yaml",
        f"run.dir={folder}",
        *PAIR,
    ]
    done = subprocess.run([*command, *overrides], cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / kind / "agents"


def completions(agent):
    return [row for _, rows in read_completions(agent / "completions") for row in rows]


def lines(agent):
    found = [json.loads(line) for line in (agent / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if not k.startswith("seconds")} for line in found]


def weights(agent, step):
    return load_file(agent / "checkpoints" / f"step-{step:06d}" / "model.safetensors")


def test_comas_trains_and_says_who_did_what(tmp_path):
    agents = train("comas", tmp_path)
    for agent in agents.iterdir():
        steps = lines(agent)
        assert [line["step"] for line in steps] == [1, 2]
        assert all(line["label_free"] is True and "reward_scorer" in line for line in steps)
        roles = {line["role"] for line in completions(agent)}
        assert roles == {f"{role} {at}" for role in ("solver", "evaluator", "scorer") for at in (1, 2)}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    return train("maporl", tmp_path_factory.mktemp("whole"))


def test_maporl_trains_and_says_that_it_reads_labels(uninterrupted):
    for agent in uninterrupted.iterdir():
        steps = lines(agent)
        assert [line["step"] for line in steps] == [1, 2]
        assert all(line["label_free"] is False and line["grad_norm"] >= 0 for line in steps)
        assert {line["role"] for line in completions(agent)} == {"debater 1", "debater 2"}


def test_a_resumed_run_is_the_uninterrupted_one(uninterrupted, tmp_path):
    train("maporl", tmp_path, "run.steps=1")
    agents = train("maporl", tmp_path, "--resume")
    for agent in agents.iterdir():
        whole = uninterrupted / agent.name
        assert lines(agent) == lines(whole) and completions(agent) == completions(whole)
        resumed, other = weights(agent, 2), weights(whole, 2)
        assert all(torch.equal(resumed[key], other[key]) for key in other)
        start = weights(whole, 1)
        assert not all(torch.equal(start[key], other[key]) for key in other)


def test_two_ranks_do_what_one_does(uninterrupted, tmp_path):
    [first, *_] = [agent.name for agent in uninterrupted.iterdir()]
    agents = train("maporl", tmp_path, f"agents.{first}.ranks=2", "run.steps=1")
    for agent in agents.iterdir():
        whole = uninterrupted / agent.name
        said = [line for line in completions(whole) if line["step"] == 1]
        assert completions(agent) == said
        one, two = weights(whole, 1), weights(agent, 1)
        assert all(torch.allclose(one[key], two[key], atol=1e-6) for key in one)
