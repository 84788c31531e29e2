"""Experiment trackers (tensorboard, wandb, trackio) through accelerate's common interface.

A resumed run goes on in each as the same tracked run, whose id is in the agent's folder. TensorBoard then shows no step
twice. Of the others wandb keeps what it was told of a step first, and trackio what it was told each time.
"""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmcorl.agents.extras import require_installed
from mmcorl.config import Config
from mmcorl.files import write_whole, writing
from mmcorl.training.starting import leaves

if TYPE_CHECKING:
    from accelerate.tracking import GeneralTracker

_FILE = "trackers.json"


def require_trackers(config: Config) -> None:
    """Raise MmcorlError when a tracker of `logging.trackers` is not installed."""
    for name in config.logging.trackers:
        require_installed(name, f"logging.trackers={list(config.logging.trackers)}", "trackers")


def open_trackers(
    config: Config, agent: str, folder: Path, resume_step: int | None = None
) -> list[GeneralTracker]:
    """Start the trackers that `logging.trackers` names, one tracked run an agent; local files go under `folder`.

    With `resume_step` they go on where the run left them at that step. Call it on the agent's first rank, once
    accelerate's state exists.
    """
    if not config.logging.trackers:
        return []
    require_trackers(config)
    from accelerate.tracking import LOGGER_TYPE_TO_CLASS

    plain = int | float | str | bool
    settings = {
        key: value if isinstance(value, plain) else str(value) for key, value in leaves(config).items()
    }
    tracked_run = _run_id(folder / _FILE, new=resume_step is None)
    trackers: list[GeneralTracker] = []
    for name in config.logging.trackers:
        tracker = LOGGER_TYPE_TO_CLASS[name](
            f"{config.run.name}-{agent}", **_options(name, folder, tracked_run, resume_step)
        )
        tracker.start()
        if resume_step is None:
            tracker.store_init_configuration(settings)
        trackers.append(tracker)
    return trackers


def _options(name: str, folder: Path, run_id: str, resume_step: int | None) -> dict[str, Any]:
    match name:
        case "tensorboard":
            purge = {} if resume_step is None else {"purge_step": resume_step + 1}
            return {"logging_dir": str(folder), **purge}
        case "wandb":
            return {"dir": str(folder), "id": run_id, "resume": "allow"}
        case _:
            return {"name": run_id, "resume": "allow", "embed": False}


def _run_id(path: Path, new: bool) -> str:
    """The id under which trackers know this agent's run; made up where there is none."""
    if not new and path.exists():
        return json.loads(path.read_text(encoding="utf-8"))["run"]
    made = secrets.token_hex(4)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps({"run": made}) + "\n")
    return made
