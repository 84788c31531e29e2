"""What a run measures: JSON lines that survive a kill, and resume as if nothing had happened.

An agent's `metrics.jsonl` has a line for every step (`"kind": "train"`), every evaluation (`"kind": "eval"`) and every
alarm (`"kind": "alarm"`). A line is written whole and at once. A step's lines are written before its checkpoint, so a
run that resumes at step N finds every line up to N, drops the later ones, and ends with the file that an uninterrupted
run writes (seconds apart).
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mmcorl.files import Lines, json_line, read_lines, write_whole, writing

if TYPE_CHECKING:
    from accelerate.tracking import GeneralTracker

Line = dict[str, Any]


def read_metrics(path: Path, kind: Literal["train", "eval", "alarm"] | None = None) -> list[Line]:
    """The records of a `metrics.jsonl`, of one kind if asked."""
    return [line for line in read_lines(path) if kind is None or line["kind"] == kind]


class MetricsLog:
    """An agent's `metrics.jsonl`, open for appending, forwarded to experiment trackers where some are given.

    `resume_step` None starts an empty file. A number keeps the records up to that step and drops the later ones in
    one atomic replacement. `path` None writes nothing: the ranks of an agent other than its first.
    """

    def __init__(
        self, path: Path | None, resume_step: int | None = None, trackers: Sequence[GeneralTracker] = ()
    ) -> None:
        self._trackers = trackers
        self._lines: Lines | None = None
        if path is None:
            return
        kept = [] if resume_step is None else [r for r in read_lines(path) if r["step"] <= resume_step]
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, b"".join(map(json_line, kept)).decode())
        self._lines = Lines(path)

    def write(self, kind: Literal["train", "eval", "alarm"], step: int, **values: Any) -> None:
        """Record the values of one step or one evaluation; those that are no finite number become null.

        Raises MmcorlError on a full disk.
        """
        if self._lines is not None:
            self._lines.append([_finite({"kind": kind, "step": step, **values})])
        numbers = {f"{kind}/{key}": value for key, value in values.items() if isinstance(value, int | float)}
        for tracker in self._trackers:
            tracker.log(numbers, step=step)

    def close(self) -> None:
        if self._lines is not None:
            self._lines.close()
        for tracker in self._trackers:
            tracker.finish()


class Tail:
    """Follows a JSONL file that another process writes, from its present end: `read` gives the records added since."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file_id: int | None = None
        self._offset = 0
        if path.exists():
            state = path.stat()
            self._file_id, self._offset = state.st_ino, state.st_size

    def read(self) -> tuple[bool, list[Line]]:
        """New records, and whether they start the file anew because it was replaced (as a resumed run does)."""
        try:
            with self._path.open("rb") as file:
                file_id = os.fstat(file.fileno()).st_ino
                replaced = file_id != self._file_id
                if replaced:
                    self._file_id, self._offset = file_id, 0
                file.seek(self._offset)
                added = file.read()
        except FileNotFoundError:
            return False, []
        complete = added[: added.rfind(b"\n") + 1]
        self._offset += len(complete)
        return replaced, [json.loads(line) for line in complete.split(b"\n")[:-1]]


def _finite(record: Line) -> Line:
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in record.items()
    }
