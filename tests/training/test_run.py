"""Whole runs through the command, as a user starts them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from safetensors.torch import load_file
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from mmcorl.training.completions import read_completions

ROOT = Path(__file__).parents[2]

SMALL = (
    "data.train.scenes.size=48", "data.eval.scenes.size=12", "evaluation.every=3", "evaluation.samples=2",
    "rollouts.problems_per_step=8", "rollouts.per_problem=4", "checkpoints.every=2", "run.steps=6",
    "optimizer.lr=1e-3", "logging.completions=true",
)  # fmt: skip


def command(run_dir, *overrides, config="quickstart.yaml"):
    return [
        sys.executable, "-m", "mmcorl.cli.train", f"configs/{config}", *SMALL, f"run.dir={run_dir}", *overrides,
    ]  # fmt: skip


def train(run_dir, *overrides, **options):
    done = subprocess.run(
        command(run_dir, *overrides, **options), cwd=ROOT, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return Path(run_dir) / "pair"


def completions(run, agent):
    return [row for _, rows in read_completions(run / "agents" / agent / "completions") for row in rows]


def lines(run, agent):
    """The lines of a log without what differs from run to run: the seconds."""
    found = [json.loads(line) for line in (run / "agents" / agent / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if not k.startswith("seconds")} for line in found]


def weights(run, agent, step=6):
    return load_file(run / "agents" / agent / "checkpoints" / f"step-{step:06d}" / "model.safetensors")


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    return train(tmp_path_factory.mktemp("whole"), "logging.trackers=[tensorboard]")


def test_a_run_leaves_what_it_promises(uninterrupted):
    for agent in ("qwen", "internvl"):
        folder = uninterrupted / "agents" / agent
        kinds = [(line["kind"], line["step"]) for line in lines(uninterrupted, agent)]
        assert [step for kind, step in kinds if kind == "train"] == [1, 2, 3, 4, 5, 6]
        assert [step for kind, step in kinds if kind == "eval"] == [0, 3, 6]
        assert len(completions(uninterrupted, agent)) == 6 * 8 * 4
        assert (folder / "best" / "config.json").exists() and (folder / "best" / "best.json").exists()
        assert len(list((folder / "checkpoints").glob("step-*"))) >= 2
    assert (uninterrupted / "config.yaml").exists()


def test_a_killed_agent_ends_the_run_and_resuming_gives_the_uninterrupted_result(uninterrupted, tmp_path):
    run = tmp_path / "pair"
    process = subprocess.Popen(
        command(tmp_path), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    saved = [run / "agents" / agent / "checkpoints" / "step-000002" for agent in ("qwen", "internvl")]
    deadline = time.monotonic() + 120
    while not all(path.exists() for path in saved):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    [victim] = [int(path.name) for path in Path("/proc").glob("[0-9]*") if is_worker(path, "qwen", run)]
    os.kill(victim, signal.SIGKILL)
    out, err = process.communicate(timeout=20)  # seconds, not an hour
    assert process.returncode == 1 and "qwen" in err and "SIGKILL" in err, out + err

    train(tmp_path, "--resume")
    for agent in ("qwen", "internvl"):
        assert lines(run, agent) == lines(uninterrupted, agent)
        assert completions(run, agent) == completions(uninterrupted, agent)
        whole = weights(uninterrupted, agent)
        assert all((tensor == whole[key]).all() for key, tensor in weights(run, agent).items())


def is_worker(process, agent, run):
    try:
        words = (process / "cmdline").read_bytes().decode().split("\0")
    except OSError:
        return False
    return "--attempt" in words and agent in words and str(run / "config.yaml") in words


def assert_same_metrics(run, other):
    for agent in ("qwen", "internvl"):
        for ours, one in zip(lines(run, agent), lines(other, agent), strict=True):
            assert ours.keys() == one.keys() and ours["kind"] == one["kind"]
            numbers = [key for key, value in one.items() if isinstance(value, int | float)]
            assert len(numbers) == len(one) - 1, one
            expected = {key: one[key] for key in numbers}
            assert {key: ours[key] for key in numbers} == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory):
    return train(tmp_path_factory.mktemp("two"), "agents.qwen.ranks=2", "agents.internvl.ranks=2")


def test_two_ranks_an_agent_give_the_metrics_of_one(uninterrupted, two_ranks):
    assert_same_metrics(two_ranks, uninterrupted)


@pytest.mark.parametrize(("before", "ranks"), [("uninterrupted", 2), ("two_ranks", 1)])
def test_a_run_goes_on_with_another_number_of_ranks(uninterrupted, before, ranks, tmp_path, request):
    run = shutil.copytree(request.getfixturevalue(before), tmp_path / "pair")
    for checkpoint in run.glob("agents/*/checkpoints/step-000006"):
        shutil.rmtree(checkpoint)
    train(tmp_path, "--resume", f"agents.qwen.ranks={ranks}", f"agents.internvl.ranks={ranks}")
    assert_same_metrics(run, uninterrupted)


QUICK = ("evaluation.every=0", "checkpoints.best_by=agreement", "rollouts.problems_per_step=4")
ALONE = (*QUICK, "agents.internvl=null", "cohort.topology=self", "checkpoints.best_by=vote_share")


def test_two_ranks_give_the_token_statistics_of_one(tmp_path):
    settings = (*ALONE, "reward.rule=entropy", "run.steps=2", "loss.updates_per_rollout=2")
    one = train(tmp_path / "one", *settings)
    two = train(tmp_path / "two", *settings, "agents.qwen.ranks=2")
    for ours, theirs in zip(lines(two, "qwen"), lines(one, "qwen"), strict=True):
        numbers = [key for key, value in theirs.items() if isinstance(value, int | float)]
        assert "entropy" in numbers
        expected = {key: theirs[key] for key in numbers}
        assert {key: ours[key] for key in numbers} == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_a_frozen_agent_takes_part_and_leaves_no_weights(tmp_path):
    settings = (*QUICK, "agents.internvl.frozen=true", "checkpoints.every=1")
    run = train(tmp_path, *settings, "run.steps=1", "evaluation.every=1")
    assert [line["kind"] for line in lines(run, "internvl")] == ["eval", "train"]  # evaluated once
    assert not list((run / "agents" / "internvl").rglob("*.safetensors"))
    train(tmp_path, *settings, "run.steps=2", "evaluation.every=1", "--resume")
    assert [line["step"] for line in lines(run, "qwen") if line["kind"] == "train"] == [1, 2]


def test_an_endpoint_takes_part_as_an_agent(tmp_path):
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            choice = {"message": {"content": "<answer>3</answer>"}, "finish_reason": "stop"}
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"choices": [choice] * body.get("n", 1)}).encode())

        def log_message(self, format, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        judge = (
            "agents.internvl.model=any", "agents.internvl.freeze=[]", "agents.internvl.frozen=true",
            f"agents.internvl.endpoint=http://127.0.0.1:{server.server_port}/v1",
        )  # fmt: skip
        run = train(tmp_path, *QUICK, *judge, "run.steps=1")
        server.shutdown()
    records = completions(run, "qwen")
    assert {record["vote"] for record in records} == {"3"}
    assert all(record["reward"] == float(record["answer"] == "3") for record in records)


def test_three_agents_in_a_ring(tmp_path):
    run = train(tmp_path, "run.name=pair", "run.steps=2", "evaluation.every=0", "checkpoints.best_by=agreement",
                config="quickstart_ring.yaml")  # fmt: skip
    agents = sorted(path.name for path in (run / "agents").iterdir())
    assert len(agents) == 3
    for agent in agents:
        assert [line["step"] for line in lines(run, agent)] == [1, 2]


def test_the_page_of_metrics_names_every_one(uninterrupted):
    page = (ROOT / "docs" / "metrics.md").read_text()
    for line in (uninterrupted / "agents" / "qwen" / "metrics.jsonl").read_text().splitlines():
        unnamed = [key for key in json.loads(line) if key not in ("kind", "step") and f"`{key}`" not in page]
        assert not unnamed


def test_trackers_get_the_metrics_under_the_names_of_the_page(uninterrupted):
    page = (ROOT / "docs" / "metrics.md").read_text()
    events = EventAccumulator(str(uninterrupted / "agents" / "qwen" / "pair-qwen"))
    events.Reload()
    tags = events.Tags()["scalars"]
    assert {"train/agreement", "eval/accuracy"} <= set(tags)
    assert not [tag for tag in tags if f"`{tag.partition('/')[2]}`" not in page]
