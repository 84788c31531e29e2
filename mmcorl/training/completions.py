"""What agents wrote and what became of it: one Parquet file a step, in an agent's folder `completions`.

A file appears whole, before the checkpoint of its step, and never changes. So a killed run has every step up to its
last checkpoint, and a run that resumes at step N removes the files of later steps and writes them again. Pictures are
not in them: a problem's id leads to those in `data.train`.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mmcorl.errors import MmcorlError
from mmcorl.files import replacing, writing

SCHEMA = pa.schema(
    {
        "step": pa.int32(),
        "problem": pa.string(),
        "role": pa.string(),
        "text": pa.string(),
        "tokens": pa.int32(),
        "finished": pa.bool_(),
        "answer": pa.string(),
        "own_vote": pa.string(),
        "vote": pa.string(),
        "reward": pa.float64(),
        "advantage": pa.float64(),
        "token_ids": pa.list_(pa.int32()),
    }
)
"""The columns of every file; `step` and the fields of `CompletionRecord`."""

_NAME = re.compile(r"step-(\d{6,})\.parquet")


@dataclass(frozen=True, kw_only=True)
class CompletionRecord:
    """One completion and what became of it. Votes and answers are canonical forms; None is an abstention."""

    problem: str
    text: str
    tokens: int | None
    """Its length; None where an endpoint told no tokens."""
    finished: bool
    """False where it was cut off at `rollouts.max_tokens`."""
    answer: str | None
    reward: float | None
    """None where the problem had no label."""
    vote: str | None
    """What the supervisor elected."""
    own_vote: str | None
    """What the agent's own completions elected."""
    advantage: float
    role: str | None = None
    """What the agent was to do, such as `solver 1`, in a run whose agents read each other's texts."""
    token_ids: tuple[int, ...] | None = None


class CompletionsLog:
    """An agent's folder of completions, open for writing.

    `resume_step` None starts an empty folder; a number keeps the steps up to that. `path` None writes nothing: the
    ranks of an agent other than its first. Where the files come to more than `limit_mib`, those of the oldest steps go.
    """

    def __init__(
        self, path: Path | None, resume_step: int | None = None, limit_mib: float = math.inf
    ) -> None:
        self._path, self._limit = path, limit_mib * 2**20
        self._sizes: dict[int, int] = {}
        if path is None:
            return
        with writing(path):
            path.mkdir(parents=True, exist_ok=True)
            for leftover in path.glob(".*.partial"):
                leftover.unlink()
            for step, file in completion_files(path).items():
                if resume_step is None or step > resume_step:
                    file.unlink()
                else:
                    self._sizes[step] = file.stat().st_size

    def write(self, step: int, records: Iterable[CompletionRecord]) -> None:
        """Record all completions of one step. Raises MmcorlError on a full disk."""
        if self._path is None:
            return
        rows = [_row(step, record) for record in records]
        file = self._path / f"step-{step:06d}.parquet"
        with writing(file):
            with replacing(file) as temporary, temporary.open("wb") as opened:
                pq.write_table(pa.Table.from_pylist(rows, SCHEMA), opened, compression="zstd")
                opened.flush()
                os.fsync(opened.fileno())
            self._sizes[step] = file.stat().st_size
            self._make_room(step)

    def _make_room(self, newest: int) -> None:
        assert self._path is not None
        total = sum(self._sizes.values())
        for step in sorted(self._sizes):
            if total <= self._limit or step == newest:
                return
            total -= self._sizes.pop(step)
            (self._path / f"step-{step:06d}.parquet").unlink(missing_ok=True)


def completion_files(folder: Path) -> dict[int, Path]:
    """The files of an agent's completions by step, in order; none where there is no folder."""
    found = {int(match[1]): file for file in folder.glob("step-*") if (match := _NAME.fullmatch(file.name))}
    return dict(sorted(found.items()))


def read_completions(
    folder: Path, texts_of: Collection[int] | None = None
) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Each step and its completions, by the names of `SCHEMA` without `token_ids`; a step at a time.

    Of steps that are not in `texts_of` `text` is left out too, which is most of a file; None asks for all. A run may
    write while this reads. Raises MmcorlError for a damaged file.
    """
    for step, file in completion_files(folder).items():
        left_out = {"token_ids"} if texts_of is None or step in texts_of else {"token_ids", "text"}
        columns = [name for name in SCHEMA.names if name not in left_out]
        try:
            # `read` skips columns that are not there, `select` raises.
            table = pq.ParquetFile(file).read(columns).select(columns)
        except FileNotFoundError:  # it made room for later ones, or the run was resumed before it
            continue
        except (OSError, pa.ArrowInvalid, KeyError) as error:
            raise MmcorlError(f"{file} is damaged ({error}); remove it to go on without that step") from None
        yield step, table.to_pylist()


def _row(step: int, record: CompletionRecord) -> dict[str, Any]:
    row = {"step": step, **asdict(record)}
    for key, value in row.items():
        if isinstance(value, float) and not math.isfinite(value):
            row[key] = None
        elif isinstance(value, str):
            # Of a lone surrogate, which has no UTF-8, what is left is its number.
            row[key] = value.encode("utf-8", "backslashreplace").decode()
    return row
