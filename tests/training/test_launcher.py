import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from mmcorl.config import Config
from mmcorl.config_loading import to_yaml
from mmcorl.errors import MmcorlError
from mmcorl.training import checkpoints
from mmcorl.training.folders import RunFolder
from mmcorl.training.launcher import EXIT_FAILED, EXIT_INTERRUPTED, launch
from mmcorl.training.metrics import read_metrics

HERE = Path(__file__).parent
WORKER = "lockstep_worker"


@pytest.fixture(autouse=True)
def worker_can_be_imported(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(HERE))


def a_config(tmp_path, a="good", b="good", **run):
    return Config.model_validate(
        {
            "run": {"dir": tmp_path, "name": "run", "steps": 6, "threads": 2} | run,
            "agents": {"ann": {"model": a}, "bob": {"model": b}},
            "data": {"train": {"scenes": {"size": 24}}},
            "checkpoints": {"every": 2},
        }
    )


def start(config, **options):
    return launch(config, worker_module=WORKER, **options)


def in_its_own_process(config, *alone):
    """The launcher as a program, so that signals can be sent to it; `alone` is an agent and a store."""
    path = config.run.dir / "asked.yaml"
    path.write_text(to_yaml(config))
    return subprocess.Popen(
        [sys.executable, "-u", str(HERE / "lockstep_launch.py"), str(path), *alone],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def steps_done(config, name):
    return [line["step"] for line in read_metrics(RunFolder.of(config).metrics(name), "train")]


def free_port():
    """A port below those that the system gives to connections, one of which could take it before the store does."""
    while True:
        port = random.randint(20_000, 30_000)
        with socket.socket() as free, suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port


def wait_for_step(config, step, name="ann"):
    deadline = time.monotonic() + 120
    while not any(done >= step for done in steps_done(config, name)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def workers_of(pid):
    return [child for child in psutil.Process(pid).children() if WORKER in " ".join(child.cmdline())]


def the_agent(pid, name):
    return next(child for child in workers_of(pid) if name in child.cmdline())


def without_seconds(path):
    return [{k: v for k, v in line.items() if not k.startswith("seconds")} for line in read_metrics(path)]


def test_a_run_ends_with_code_0_and_leaves_its_configuration_logs_and_checkpoints(tmp_path, capsys):
    config = a_config(tmp_path)
    assert start(config) == 0
    folder = RunFolder.of(config)
    assert folder.config.read_text() == to_yaml(config)
    assert "bob begins" in folder.log("bob").read_text()
    assert steps_done(config, "ann") == steps_done(config, "bob") == [1, 2, 3, 4, 5, 6]
    assert checkpoints.steps(folder.checkpoints("ann")) == [2, 4, 6]
    assert "complete: 6 steps" in capsys.readouterr().out


def test_a_crash_stops_the_others_and_shows_the_end_of_the_log(tmp_path, capsys):
    config = a_config(tmp_path, b="crash@4")
    assert start(config) == EXIT_FAILED
    message = capsys.readouterr().err
    assert "bob ended with exit code 1" in message
    assert "the weights ran away" in message
    assert "ann stopped" in message
    assert "step 2 is saved; --resume continues from there" in message


def test_an_agent_that_lost_a_peer_is_not_blamed_for_it(tmp_path, capsys):
    assert start(a_config(tmp_path, a="nervous", b="late@3")) == EXIT_FAILED
    message = capsys.readouterr().err
    assert message.startswith("error: bob ended with exit code 1")
    assert "out of numbers" in message and "lost a peer" not in message


def test_a_mistake_of_the_user_is_shown_alone(tmp_path, capsys):
    assert start(a_config(tmp_path, a="mistake@1")) == EXIT_FAILED
    message = capsys.readouterr().err
    assert message.startswith("error: ann: the picture of problem p7 is broken\n")
    assert "Traceback" not in message and "exit code" not in message


def test_a_killed_agent_is_named_and_the_resumed_run_equals_an_uninterrupted_one(tmp_path, capsys):
    config = a_config(tmp_path, a="slow", b="slow", steps=12)
    victims = []

    def kill():
        wait_for_step(config, 5)
        victims.append(the_agent(os.getpid(), "bob"))
        victims[0].kill()

    killer = threading.Thread(target=kill)
    killer.start()
    assert start(config) == EXIT_FAILED
    killer.join()
    assert "bob was killed by SIGKILL" in capsys.readouterr().err
    assert workers_of(os.getpid()) == []

    assert start(config, resume=True) == 0
    whole = a_config(tmp_path, a="slow", b="slow", steps=12, name="whole")
    assert start(whole) == 0
    for name in ("ann", "bob"):
        resumed, uninterrupted = RunFolder.of(config), RunFolder.of(whole)
        assert without_seconds(resumed.metrics(name)) == without_seconds(uninterrupted.metrics(name))
        saved = [
            json.loads((f.checkpoints(name) / "step-000012" / "weight.json").read_text())
            for f in (resumed, uninterrupted)
        ]
        assert saved[0] == saved[1]


def test_ctrl_c_at_one_launcher_finishes_the_step_and_saves_it_for_all_agents(tmp_path):
    config = a_config(tmp_path, a="slow", b="slow", steps=1000)
    url = f"tcp://127.0.0.1:{free_port()}"
    launchers = [in_its_own_process(config, name, url) for name in config.agents]
    wait_for_step(config, 3)
    launchers[1].send_signal(signal.SIGINT)
    outputs = [launcher.communicate(timeout=60)[0] for launcher in launchers]
    assert [launcher.returncode for launcher in launchers] == [EXIT_INTERRUPTED] * 2, outputs
    assert "finishing this step" in outputs[1]
    folder = RunFolder.of(config)
    last = steps_done(config, "ann")[-1]
    assert all(f"step {last} is saved; --resume continues from there" in output for output in outputs)
    assert steps_done(config, "bob")[-1] == last
    assert checkpoints.common_step(folder.checkpoints(name) for name in config.agents) == last


def test_a_second_ctrl_c_stops_at_once(tmp_path):
    config = a_config(tmp_path, a="slow", b="deaf", steps=1000)
    launcher = in_its_own_process(config)
    wait_for_step(config, 1)
    children = workers_of(launcher.pid)
    launcher.send_signal(signal.SIGINT)
    assert launcher.stdout is not None
    assert any("finishing this step" in line for line in launcher.stdout)
    launcher.send_signal(signal.SIGINT)
    assert launcher.wait(timeout=60) == EXIT_INTERRUPTED
    assert not psutil.wait_procs(children, timeout=10)[1]


def test_workers_end_when_the_launcher_is_killed(tmp_path):
    config = a_config(tmp_path, a="slow", b="slow", steps=1000)
    launcher = in_its_own_process(config)
    wait_for_step(config, 1)
    children = workers_of(launcher.pid)
    assert len(children) == 2
    launcher.kill()
    launcher.communicate(timeout=60)
    assert not psutil.wait_procs(children, timeout=10)[1]


def test_an_existing_run_is_not_overwritten_unless_asked(tmp_path):
    config = a_config(tmp_path, steps=2)
    assert start(config) == 0
    before = RunFolder.of(config).metrics("ann").read_bytes()
    with pytest.raises(
        MmcorlError, match=r"already holds a run of ann, bob: continue it with --resume, .*--overwrite"
    ):
        start(config)
    assert RunFolder.of(config).metrics("ann").read_bytes() == before
    assert start(config, overwrite=True) == 0
    assert steps_done(config, "ann") == [1, 2]


def test_resuming_needs_a_run_and_a_checkpoint_of_all_agents(tmp_path):
    config = a_config(tmp_path, b="crash@2")
    with pytest.raises(MmcorlError, match="holds no run to resume"):
        start(config, resume=True)
    assert not tmp_path.joinpath("run").exists()
    assert start(config) == EXIT_FAILED
    with pytest.raises(MmcorlError, match="no checkpoint that all agents completed"):
        start(config, resume=True)


def test_a_finished_run_can_be_made_longer_but_not_changed(tmp_path, capsys):
    config = a_config(tmp_path, steps=4)
    assert start(config) == 0
    assert start(config, resume=True) == 0
    assert "is complete: step 4 of 4" in capsys.readouterr().out
    with pytest.raises(MmcorlError, match=r"run\.seed is 0 in the run and 7 now"):
        start(a_config(tmp_path, steps=4, seed=7), resume=True)
    home = RunFolder.of(config).checkpoints("bob")
    (home / "step-000004" / "weight.json").write_text("7")
    with pytest.raises(
        MmcorlError, match=r"weight\.json is damaged .*; remove \S*bob\S*step-000004 to resume from step 2"
    ):
        start(a_config(tmp_path, steps=8), resume=True)
    checkpoints.remove(home / "step-000004")
    assert start(a_config(tmp_path, steps=8), resume=True) == 0
    assert steps_done(config, "bob") == list(range(1, 9))


def test_a_store_port_in_use_is_one_clear_error_and_leaves_nothing(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        url = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(
            MmcorlError, match=f"cohort.store={url} cannot be served here: Address already in use"
        ):
            start(a_config(tmp_path), store=url)
    assert not (tmp_path / "run").exists()


def test_agents_started_one_by_one_find_each_other(tmp_path):
    config = a_config(tmp_path)
    url = f"tcp://127.0.0.1:{free_port()}"
    launchers = [in_its_own_process(config, name, url) for name in ("bob", "ann")]
    outputs = [launcher.communicate(timeout=60)[0] for launcher in launchers]
    assert [launcher.returncode for launcher in launchers] == [0, 0], outputs
    assert steps_done(config, "ann") == steps_done(config, "bob") == [1, 2, 3, 4, 5, 6]
