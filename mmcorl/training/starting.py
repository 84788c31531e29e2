"""The beginning of a run: a new folder, a replaced one, or one that is continued. Nothing here is left half-done."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from mmcorl.config import Config
from mmcorl.errors import MmcorlError
from mmcorl.training import checkpoints
from mmcorl.training.folders import RunFolder
from mmcorl.training.metrics import read_metrics

CHANGEABLE = (
    "run.dir",
    "run.steps",
    "run.threads",
    "agents.*.ranks",
    "agents.*.sharding",
    "agents.*.offload",
    "agents.*.devices",
    "agents.*.batch_tokens",
    "agents.*.gradient_checkpointing",
    "agents.*.endpoint",
    "agents.*.api_key_env",
    "rollouts.batch_tokens",
    "cohort.store",
    "cohort.secret_file",
    "cohort.dead_after",
    "evaluation.*",
    "checkpoints.*",
    "logging.*",
)
"""Settings that may differ when a run is resumed: where it runs, how long, and what is written on the way."""

_LOCK = ".lock"


def leaves(config: Config) -> dict[str, Any]:
    """The configuration as one level of dotted keys with plain values."""

    def walk(tree: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
        for key, value in tree.items():
            if isinstance(value, dict):
                yield from walk(value, f"{prefix}{key}.")
            else:
                yield prefix + key, value

    return dict(walk(config.model_dump(mode="json"), ""))


def require_new(config: Config, agents: Collection[str]) -> None:
    """Raise MmcorlError when the run's folder has work of these agents, or is no folder of a run."""
    folder = RunFolder.of(config)
    if not folder.path.exists():
        return
    if not folder.path.is_dir() or (not folder.config.exists() and any(folder.path.iterdir())):
        raise MmcorlError(
            f"{folder.path} exists and is not the folder of a run; choose another run.name or run.dir"
        )
    worked = [name for name in agents if _holds_work(folder, name)]
    if worked:
        raise MmcorlError(
            f"{folder.path} already holds a run of {', '.join(worked)}: continue it with --resume, "
            "replace it with --overwrite, or choose another run.name"
        )


def _holds_work(folder: RunFolder, name: str) -> bool:
    """Whether this agent has made a step or a checkpoint that somebody could miss."""
    return bool(read_metrics(folder.metrics(name), "train") or checkpoints.steps(folder.checkpoints(name)))


def require_same(saved: Config, requested: Config) -> None:
    """Raise MmcorlError when `requested` changes a setting that a resumed run must keep."""
    before, after = leaves(saved), leaves(requested)
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        if old != new and not any(fnmatch(key, pattern) for pattern in CHANGEABLE):
            raise MmcorlError(
                f"{key} is {old!r} in the run and {new!r} now; a resumed run keeps it. Set {key}={_written(old)}, or "
                f"start another run with run.name=... (what may change: {', '.join(CHANGEABLE)})"
            )


def require_readable(folder: RunFolder, agents: Collection[str]) -> None:
    """Raise MmcorlError when a file that a resumed run adds to was damaged."""
    for name in agents:
        read_metrics(folder.metrics(name))
        checkpoints.read_best(folder.agent(name))


def require_whole(folder: RunFolder, agents: Collection[str], step: int) -> None:
    """Raise MmcorlError when a file of a checkpoint of `step` was damaged, and say which step there is in its place."""
    homes = {name: folder.checkpoints(name) for name in agents}
    for home in homes.values():
        checkpoint = checkpoints.step_folder(home, step)
        found = checkpoints.damage(checkpoint)
        if found is None:
            continue
        shared = set.intersection(*(set(checkpoints.steps(other)) for other in homes.values()))
        earlier = max((s for s in shared if s < step), default=None)
        advice = (
            f"remove {checkpoint} to resume from step {earlier}"
            if earlier is not None
            else f"no earlier step of {', '.join(agents)} is kept, so start again with --overwrite"
        )
        raise MmcorlError(f"{found}; {advice}")


def clear(config: Config, agents: Collection[str]) -> None:
    """Remove what earlier runs of these agents left in the run's folder; other files there are not touched.

    If they are all the agents of the run, agents that only the earlier run had go too.
    """
    folder = RunFolder.of(config)
    home = folder.path / "agents"
    names = set(agents)
    if names == set(config.agents):
        names.update(path.name for path in home.glob("*"))
        folder.launches.unlink(missing_ok=True)
    for name in names:
        remains = [path for path in folder.agent(name).glob("*") if path.name != _LOCK]
        for path in [*remains, *folder.logs.glob(f"{name}.log"), *folder.logs.glob(f"{name}.rank*.log")]:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


@contextmanager
def locked(folder: RunFolder, agents: Collection[str]) -> Iterator[None]:
    """Hold the folders of these agents, so that no second launcher writes to them; the system lets go at our death."""
    with ExitStack() as stack:
        for name in agents:
            path: Path = folder.agent(name) / _LOCK
            path.parent.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(path.open("w"))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise MmcorlError(
                    f"another process is training {name} in {folder.path}; wait for it or end it"
                ) from None
        yield


def _written(value: Any) -> str:
    return "null" if value is None else str(value)
