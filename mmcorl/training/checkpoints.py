"""Checkpoints that exist whole or not at all, and which of them to keep.

A checkpoint is a folder `step-000030`: what `from_pretrained` reads, and beside it a folder `training` with what
only resuming needs. It is written under a hidden name and renamed when it is complete, so a visible checkpoint is
always a whole one, however the process that wrote it ended. The last file written is `manifest.json`, the size and
SHA-256 of all others, by which `damage` finds what a disk or a copy made of them later.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from mmcorl.errors import MmcorlError
from mmcorl.files import writing

TRAINING = "training"
"""Subfolder of a checkpoint with optimizer and loop state; the best checkpoint goes without it."""

MANIFEST = "manifest.json"
"""Size and SHA-256 of every other file of a checkpoint."""

_HASHED_AT_ONCE = 4
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


def damage(checkpoint: Path) -> str | None:
    """Which file is not as it was written, and why, in words; None for a whole checkpoint. Reads every byte."""
    path = checkpoint / MANIFEST
    try:
        files = dict(json.loads(path.read_bytes())["files"])
        written = {name: (entry["bytes"], entry["sha256"]) for name, entry in files.items()}
    except OSError as error:
        return f"{path} is damaged ({error.strerror})"
    except (ValueError, KeyError, TypeError) as error:
        return f"{path} is damaged ({error})"

    def look(name: str) -> str | None:
        file, (size, checksum) = checkpoint / name, written[name]
        try:
            found = file.stat().st_size
            if found != size:
                return f"{file} is damaged ({found} bytes in place of {size})"
            return None if _checksum(file) == checksum else f"{file} is damaged (its checksum is another)"
        except OSError as error:
            return f"{file} is damaged ({error.strerror})"

    with ThreadPoolExecutor(_HASHED_AT_ONCE) as threads:
        return next(filter(None, threads.map(look, written)), None)


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
        best = json.loads(path.read_text(encoding="utf-8"))
        return {"step": int(best["step"]), "score": float(best["score"]), "rule": str(best["rule"])}
    except (ValueError, KeyError, TypeError) as error:
        raise MmcorlError(
            f"{path} is damaged ({error}); remove {path.parent}, and the next best replaces it"
        ) from None


def best_score(agent_dir: Path) -> float | None:
    """The score of an agent's best checkpoint; clears away what a killed run left. For its writer, before it writes."""
    _clean(agent_dir)
    best = read_best(agent_dir)
    return None if best is None else best["score"]


def keep_best(agent_dir: Path, checkpoint: Path, note: Mapping[str, Any], card: str) -> None:
    """Make `checkpoint` the agent's `best/`, as one that beats the score so far.

    Files are hard links where the file system has them, so that the copy costs nothing while the checkpoint lives.
    `note` becomes its `best.json`: `step`, `score`, and `rule`, which says in words what the score is. `card` becomes
    its README.
    """

    def write(target: Path) -> None:
        ignore = shutil.ignore_patterns(TRAINING, MANIFEST)
        shutil.copytree(checkpoint, target, ignore=ignore, copy_function=_link, dirs_exist_ok=True)
        for name, text in own.items():
            (target / name).write_text(text, encoding="utf-8")

    own = {"best.json": json.dumps(dict(note), indent=2) + "\n", "README.md": card}
    files = json.loads((checkpoint / MANIFEST).read_bytes())["files"]
    known = {name: entry for name, entry in files.items() if name not in own}
    with writing(agent_dir / "best"):
        _publish(agent_dir / "best", write, known)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _publish(final: Path, write: Callable[[Path], None], known: Mapping[str, Any] | None = None) -> None:
    """Fill a hidden sibling, sync it and rename it to `final`; an older `final` steps aside first.

    `known` has manifest entries of files that are the same already.
    """
    _clean(final.parent)
    new, old = _hidden(final, "new"), _hidden(final, "old")
    new.mkdir()
    try:
        write(new)
        _seal(new, known or {})
    except BaseException:
        shutil.rmtree(new)
        raise
    _sync(new)
    if final.exists():
        final.rename(old)
    new.rename(final)
    _sync_one(final.parent)
    shutil.rmtree(old, ignore_errors=True)


def _seal(folder: Path, known: Mapping[str, Any]) -> None:
    """Write the manifest of all that is in `folder`."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    files = {name: known.get(name) or _entry(folder / name) for name in names}
    (folder / MANIFEST).write_text(json.dumps({"files": files}, indent=2) + "\n", encoding="utf-8")


def _entry(file: Path) -> dict[str, Any]:
    return {"bytes": file.stat().st_size, "sha256": _checksum(file)}


def _checksum(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


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
