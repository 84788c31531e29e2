"""Files that survive a kill: written whole, or line by line with a torn last line left out when read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from mmcorl.errors import MmcorlError


@contextmanager
def writing(path: Path, setting: str = "run.dir") -> Iterator[None]:
    """Raise MmcorlError, without a traceback for the user, when `path` cannot be written: no room, no right, no folder.

    `setting` is what the user would change to write elsewhere.
    """
    try:
        yield
    except (OSError, SafetensorError) as error:
        number = error.errno if isinstance(error, OSError) else None
        reason = os.strerror(number) if number else str(error)
        raise MmcorlError(
            f"{path} cannot be written ({reason}); make room there, or choose another {setting}"
        ) from error


def write_whole(path: Path, text: str) -> None:
    """Write a text file so that a reader, or the next run after a crash, sees the old text or the new one."""
    # Launchers that share a run's folder may write the same file at once.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The records of a JSONL file; no file is no records.

    A last line that a killed process could not finish is left out. Raises MmcorlError for damage anywhere else.
    """
    if not path.exists():
        return []
    whole = path.read_bytes().split(b"\n")[:-1]  # what follows the last line end is empty, or a torn line
    lines: list[dict[str, Any]] = []
    for number, line in enumerate(whole, start=1):
        try:
            lines.append(json.loads(line))
        except ValueError as error:
            raise MmcorlError(
                f"{path}, line {number} is not JSON ({error}); the file was changed or damaged"
            ) from None
    return lines
