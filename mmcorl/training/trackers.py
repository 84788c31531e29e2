"""Experiment trackers (tensorboard, wandb, trackio) through accelerate's common interface."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from mmcorl.config import Config
from mmcorl.errors import MmcorlError
from mmcorl.training.starting import leaves

if TYPE_CHECKING:
    from accelerate.tracking import GeneralTracker


def require_trackers(config: Config) -> None:
    """Raise MmcorlError when a tracker of `logging.trackers` is not installed."""
    for name in config.logging.trackers:
        if find_spec(name) is None:
            raise MmcorlError(
                f'logging.trackers names {name}, which is not installed: pip install "mmcorl[trackers]"'
            )


def open_trackers(config: Config, agent: str, folder: Path) -> list[GeneralTracker]:
    """Start the trackers that `logging.trackers` names, one tracked run an agent; local files go under `folder`.

    Call it on the agent's first rank, once accelerate's state exists.
    """
    if not config.logging.trackers:
        return []
    require_trackers(config)
    from accelerate.tracking import LOGGER_TYPE_TO_CLASS

    plain = int | float | str | bool
    settings = {
        key: value if isinstance(value, plain) else str(value) for key, value in leaves(config).items()
    }
    trackers: list[GeneralTracker] = []
    for name in config.logging.trackers:
        tracker_class = LOGGER_TYPE_TO_CLASS[name]
        place = (str(folder),) if tracker_class.requires_logging_directory else ()
        tracker = tracker_class(f"{config.run.name}-{agent}", *place)
        tracker.start()
        tracker.store_init_configuration(settings)
        trackers.append(tracker)
    return trackers
