"""Files that survive a kill: written whole, or line by line with a torn last line left out when read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

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


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file beside `path` to write to; it takes the place of `path` when the block ends without an error."""
    # Launchers that share a run's folder may write the same file at once.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    yield temporary
    temporary.replace(path)


def write_whole(path: Path, text: str) -> None:
    """Write a text file so that a reader, or the next run after a crash, sees the old text or the new one."""
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def json_line(record: Mapping[str, Any]) -> bytes:
    """A record as a line of a JSONL file."""
    # A lone surrogate cannot be encoded; as a backslash escape, JSON reads it back as what it was.
    return json.dumps(record, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


class Lines:
    """A JSONL file open for appending; a last line that a killed process could not finish is cut off.

    What `append` was given is with the operating system when it returns. `setting` is that of `writing`; every method
    raises MmcorlError where there is no room.
    """

    def __init__(self, path: Path, setting: str = "run.dir") -> None:
        self._path, self._setting = path, setting
        with writing(path, setting):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab")
            self._file.truncate(path.read_bytes().rfind(b"\n") + 1)

    def append(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Write these in one go."""
        with writing(self._path, self._setting):
            self._file.write(b"".join(map(json_line, records)))
            self._file.flush()

    def close(self) -> None:
        with writing(self._path, self._setting):  # it tries once more to write what there was no room for
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The records of a JSONL file; no file is no records.

    A last line that a killed process could not finish is left out. Raises MmcorlError for damage anywhere else.
    """
    return list(stream_lines(path))


def stream_lines(path: Path) -> Iterator[dict[str, Any]]:
    """`read_lines`, one by one: a file may be larger than the memory."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                yield json.loads(line)
            except ValueError as error:
                raise MmcorlError(
                    f"{path}, line {number} is not JSON ({error}); the file was changed or damaged"
                ) from None
