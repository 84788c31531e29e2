"""Checkpoints that exist whole or not at all, and which of them to keep.

A checkpoint is a folder `step-000030`: what `from_pretrained` reads, and beside it a folder `training` with what
only resuming needs. It is written under a hidden name and renamed when it is complete, so a visible checkpoint is
always a whole one, however the process that wrote it ended.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from mmcorl.errors import MmcorlError
from mmcorl.files import writing

TRAINING = "training"
"""Subfolder of a checkpoint with optimizer and loop state; the best checkpoint goes without it."""

_STEP = re.compile(r"step-(\d{6,})")


def step_folder(folder: Path, step: int) -> Path:
    """Where the checkpoint of `step` lies in an agent's folder of checkpoints."""
    return folder / f"step-{step:06d}"


def save(folder: Path, step: int, write: Callable[[Path], None]) -> Path:
    """Let `write` fill a hidden folder, put it on disk, then give it its visible name. Returns the checkpoint.

    If `write` raises, no checkpoint appears. A checkpoint of the same step is replaced. Raises MmcorlError when the
    disk is full or does not let itself be written.
    """
    final = step_folder(folder, step)
    with writing(final):
        folder.mkdir(parents=True, exist_ok=True)
        _publish(final, write)
    return final


def require_whole(checkpoint: Path) -> None:
    """Raise MmcorlError when a file of tensors was damaged, as far as its size and its header tell."""
    for path in sorted(checkpoint.rglob("*.safetensors")):
        try:
            with safe_open(path, framework="numpy"):
                pass
        except (OSError, SafetensorError) as error:
            raise MmcorlError(
                f"{path} is damaged ({error}); remove {checkpoint} to resume from the checkpoint before it"
            ) from None


def steps(folder: Path) -> list[int]:
    """The steps with a whole checkpoint, in order."""
    if not folder.is_dir():
        return []
    found = (_STEP.fullmatch(path.name) for path in folder.iterdir() if path.is_dir())
    return sorted(int(match[1]) for match in found if match)


def common_step(folders: Iterable[Path]) -> int | None:
    """The last step that every one of these folders of checkpoints has, or None."""
    shared = set.intersection(*(set(steps(folder)) for folder in folders))
    return max(shared, default=None)


def remove(checkpoint: Path) -> None:
    """Hide a checkpoint, then delete its files: a visible one is whole even while it goes."""
    gone = _hidden(checkpoint, "gone")
    checkpoint.rename(gone)
    shutil.rmtree(gone)


def drop_after(folder: Path, step: int) -> None:
    """Remove checkpoints past `step`, and what killed runs left half-written: a resumed run makes them again."""
    for later in steps(folder):
        if later > step:
            remove(step_folder(folder, later))
    if folder.is_dir():
        _clean(folder)


def prune(folder: Path, keep: int, peers: Sequence[Path] = ()) -> None:
    """Keep the newest `keep` checkpoints, and any that the cohort could still have to resume from.

    `peers` are the other agents' folders of checkpoints on this machine. An agent may be ahead of a peer that dies
    before it saves the same step, so nothing from the last common step on is removed. Peers on other machines are
    out of sight; agents that wait for each other's votes are never more than one checkpoint apart, which is why
    `keep` is at least 2.
    """
    common = common_step([folder, *peers])
    if common is None:
        return
    for old in steps(folder)[:-keep]:
        if old < common:
            remove(step_folder(folder, old))


def read_best(agent_dir: Path) -> dict[str, Any] | None:
    """What `best.json` says of an agent's best checkpoint (`step`, `score`, `rule`), or None before there is one."""
    path = agent_dir / "best" / "best.json"
    if not path.exists():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise MmcorlError(
            f"{path} is damaged ({error}); remove {path.parent}, and the next best replaces it"
        ) from None


def is_best(agent_dir: Path, score: float) -> bool:
    """Whether `score` beats the best so far. Ties do not: the earliest of equals stays. For the writer only."""
    _clean(agent_dir)
    best = read_best(agent_dir)
    return best is None or score > best["score"]


def keep_best(agent_dir: Path, checkpoint: Path, note: Mapping[str, Any], card: str) -> None:
    """Make `checkpoint` the agent's `best/`, which `is_best` has found it to be.

    Files are hard links where the file system has them, so that the copy costs nothing while the checkpoint lives.
    `note` becomes its `best.json`: `step`, `score`, and `rule`, which says in words what the score is. `card` becomes
    its README.
    """

    def write(target: Path) -> None:
        ignore = shutil.ignore_patterns(TRAINING)
        shutil.copytree(checkpoint, target, ignore=ignore, copy_function=_link, dirs_exist_ok=True)
        (target / "best.json").write_text(json.dumps(dict(note), indent=2) + "\n", encoding="utf-8")
        (target / "README.md").write_text(card, encoding="utf-8")

    with writing(agent_dir / "best"):
        _publish(agent_dir / "best", write)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _publish(final: Path, write: Callable[[Path], None]) -> None:
    """Fill a hidden sibling, sync it and rename it to `final`; an older `final` steps aside first."""
    _clean(final.parent)
    new, old = _hidden(final, "new"), _hidden(final, "old")
    new.mkdir()
    try:
        write(new)
    except BaseException:
        shutil.rmtree(new)
        raise
    _sync(new)
    if final.exists():
        final.rename(old)
    new.rename(final)
    _sync_one(final.parent)
    shutil.rmtree(old, ignore_errors=True)


def _clean(folder: Path) -> None:
    """Undo what a killed `_publish` left: an old folder that had only stepped aside returns, the rest goes."""
    for old in folder.glob(".*.old"):
        final = folder / old.name.removeprefix(".").removesuffix(".old")
        if not final.exists():
            old.rename(final)
    for suffix in ("old", "new", "gone"):
        for leftover in folder.glob(f".*.{suffix}"):
            shutil.rmtree(leftover)


def _hidden(final: Path, suffix: str) -> Path:
    return final.with_name(f".{final.name}.{suffix}")


def _sync(folder: Path) -> None:
    for root, _, files in os.walk(folder):
        for name in files:
            _sync_one(Path(root) / name)
        _sync_one(Path(root))


def _sync_one(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
