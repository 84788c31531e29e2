"""Placement by Ray, on a cluster of this machine alone; skipped where Ray is not installed."""

import os
import signal
import threading
import time
from pathlib import Path

import psutil
import pytest

from mmcorl.config import Config
from mmcorl.errors import EXIT_FAILED, EXIT_INTERRUPTED, MmcorlError
from mmcorl.training.folders import RunFolder
from mmcorl.training.launcher import launch
from mmcorl.training.metrics import read_metrics
from mmcorl.training.workers_ray import cluster

ray = pytest.importorskip("ray")
WORKER = "lockstep_worker"


@pytest.fixture(scope="module", autouse=True)
def a_cluster():
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[2])])
    ray.init(
        num_cpus=2, num_gpus=0, include_dashboard=False, log_to_driver=False, object_store_memory=80 << 20
    )
    yield
    ray.shutdown()
    if before is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = before


def a_config(tmp_path, a="good", b="good", **run):
    return Config.model_validate(
        {
            "run": {"dir": tmp_path, "name": "run", "steps": 6} | run,
            "agents": {"ann": {"model": a}, "bob": {"model": b}},
            "data": {"train": {"scenes": {"size": 24}}},
            "checkpoints": {"every": 2},
        }
    )


def start(config, **options):
    return launch(config, worker_module=WORKER, placement="ray", **options)


def steps_done(config, name):
    return [line["step"] for line in read_metrics(RunFolder.of(config).metrics(name), "train")]


def the_workers():
    """Processes of agents, wherever on this machine."""
    found = psutil.process_iter(["cmdline"])
    return [process for process in found if WORKER in (process.info["cmdline"] or ())]


def wait_for_step(config, step):
    deadline = time.monotonic() + 120
    while not any(done >= step for done in steps_done(config, "ann")):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_agents_run_in_actors_and_leave_what_they_leave_here(tmp_path, capsys):
    config = a_config(tmp_path)
    assert start(config) == 0
    assert steps_done(config, "ann") == steps_done(config, "bob") == [1, 2, 3, 4, 5, 6]
    assert "bob begins" in RunFolder.of(config).log("bob").read_text()
    assert "complete: 6 steps" in capsys.readouterr().out
    deadline = time.monotonic() + 30
    while ray.available_resources().get("CPU") != 2:  # all places are given back, in Ray's own time
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_crash_is_reported_by_name_and_the_run_can_be_resumed(tmp_path, capsys):
    config = a_config(tmp_path, b="crash@4")
    assert start(config) == EXIT_FAILED
    message = capsys.readouterr().err
    assert "bob ended with exit code 1" in message and "the weights ran away" in message
    assert "step 2 is saved; --resume continues from there" in message


def test_a_lost_actor_is_reported_by_name(tmp_path, capsys):
    config = a_config(tmp_path, a="slow", b="slow", steps=1000)

    def kill():
        wait_for_step(config, 2)
        [bob] = [process for process in the_workers() if "bob" in process.info["cmdline"]]
        psutil.Process(bob.ppid()).kill()  # the actor, as when its machine is lost

    killer = threading.Thread(target=kill)
    killer.start()
    assert start(config) == EXIT_FAILED
    killer.join()
    message = capsys.readouterr().err
    assert "bob (rank 0): Ray has lost its actor" in message
    assert "bob was killed by SIGKILL" in message and "ann stopped" in message
    assert not psutil.wait_procs(the_workers(), timeout=10)[1]


def test_ctrl_c_finishes_the_step_and_ends_all(tmp_path, capsys):
    config = a_config(tmp_path, a="slow", b="slow", steps=1000)

    def interrupt():
        wait_for_step(config, 2)
        os.kill(os.getpid(), signal.SIGINT)

    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    assert start(config) == EXIT_INTERRUPTED
    interrupter.join()
    assert "is saved; --resume continues from there" in capsys.readouterr().err
    assert steps_done(config, "ann")[-1] == steps_done(config, "bob")[-1]
    assert the_workers() == []


def test_more_ranks_than_the_cluster_has_is_told_before_anything_is_written(tmp_path):
    config = a_config(tmp_path)
    many = config.agents["bob"].model_copy(update={"ranks": 8})
    config = config.model_copy(update={"agents": {**config.agents, "bob": many}})
    with pytest.raises(MmcorlError, match=r"agents\.bob\.ranks=8 need a CPU each, and the Ray cluster has 2"):
        start(config)
    assert not (tmp_path / "run").exists()


def test_gpus_named_in_the_configuration_are_refused(tmp_path):
    config = a_config(tmp_path)
    named = config.agents["ann"].model_copy(update={"devices": (0,)})
    config = config.model_copy(update={"agents": {**config.agents, "ann": named}})
    with (
        pytest.raises(MmcorlError, match=r"agents\.ann names GPUs, and Ray chooses them"),
        cluster(config, ["ann", "bob"], "tcp://127.0.0.1:0"),
    ):
        pass
