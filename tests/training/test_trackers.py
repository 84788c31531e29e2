import json

import pytest
from accelerate import PartialState

from mmcorl.config import Config
from mmcorl.errors import MmcorlError
from mmcorl.training import trackers
from mmcorl.training.metrics import MetricsLog


def a_config(*names):
    return Config.model_validate(
        {
            "run": {"name": "run"},
            "agents": {"ann": {"model": "a"}, "bob": {"model": "b"}},
            "data": {"train": {"scenes": {"size": 24}}},
            "logging": {"trackers": names},
        }
    )


def log_steps(folder, steps, resume_step=None, reward=0.0):
    PartialState(cpu=True)
    opened = trackers.open_trackers(a_config("tensorboard"), "ann", folder, resume_step)
    log = MetricsLog(folder / "metrics.jsonl", resume_step, opened)
    for step in steps:
        log.write("train", step, reward=reward + step, kl=None)
    log.close()


def scalars(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder / "run-ann"))
    events.Reload()
    return {
        tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]
    }


def test_numbers_go_to_tensorboard_under_their_kind(tmp_path):
    pytest.importorskip("tensorboard")
    log_steps(tmp_path, [1, 2])
    assert scalars(tmp_path) == {"train/reward": [(1, 1.0), (2, 2.0)]}


def test_a_resumed_run_goes_on_in_tensorboard_and_no_step_is_there_twice(tmp_path):
    pytest.importorskip("tensorboard")
    log_steps(tmp_path, [1, 2, 3, 4])
    log_steps(tmp_path, [3, 4, 5], resume_step=2, reward=0.5)
    assert scalars(tmp_path) == {"train/reward": [(1, 1.0), (2, 2.0), (3, 3.5), (4, 4.5), (5, 5.5)]}


def test_a_new_run_gets_an_id_and_a_resumed_one_keeps_it(tmp_path):
    pytest.importorskip("tensorboard")
    log_steps(tmp_path, [1])
    first = json.loads((tmp_path / "trackers.json").read_text())
    log_steps(tmp_path, [2], resume_step=1)
    assert json.loads((tmp_path / "trackers.json").read_text()) == first
    log_steps(tmp_path, [1])
    assert json.loads((tmp_path / "trackers.json").read_text()) != first


def test_wandb_goes_on_offline_under_one_id(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    PartialState(cpu=True)
    for resume_step in (None, 1):
        opened = trackers.open_trackers(a_config("wandb"), "ann", tmp_path, resume_step)
        log = MetricsLog(tmp_path / "metrics.jsonl", resume_step, opened)
        log.write("train", (resume_step or 0) + 1, reward=0.5)
        log.close()
    run = json.loads((tmp_path / "trackers.json").read_text())["run"]
    folders = list((tmp_path / "wandb").glob("offline-run-*"))
    assert folders and all(folder.name.endswith(f"-{run}") for folder in folders)


def test_trackio_goes_on_in_one_run(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    trackio = pytest.importorskip("trackio")
    PartialState(cpu=True)
    for resume_step in (None, 1):
        opened = trackers.open_trackers(a_config("trackio"), "ann", tmp_path, resume_step)
        log = MetricsLog(tmp_path / "metrics.jsonl", resume_step, opened)
        log.write("train", (resume_step or 0) + 1, reward=0.5)
        log.close()
    [run] = trackio.Api().runs("run-ann")
    assert run.name == json.loads((tmp_path / "trackers.json").read_text())["run"]


def test_a_tracker_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr("mmcorl.agents.extras.find_spec", lambda package: None)
    with pytest.raises(
        MmcorlError, match=r"logging.trackers=.* needs wandb, which is not installed: pip install"
    ):
        trackers.require_trackers(a_config("wandb"))
