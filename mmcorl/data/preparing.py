"""From any source to a prepared folder: streamed, in parallel, in bounded memory, and going on where it was stopped.

Finished parts lie in a hidden folder beside the one to be written, each with a note of how far the source had been read.
A run that is killed loses the part that it was at. The prepared folder appears when it is whole.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mmcorl.data.bad_rows import BadRow
from mmcorl.data.images import DECODE_LIMIT, load_image
from mmcorl.data.opening import open_rows
from mmcorl.data.reading import check_columns, repeated_id
from mmcorl.data.rows import Source, read_row
from mmcorl.data.storage import (
    FEATURES,
    FORMAT_VERSION,
    GROUP_BYTES,
    GROUP_ROWS,
    OUT_SETTING,
    ROWS_FILE,
    WRITING,
    Header,
    image_bytes,
    require_new,
    stored_row,
    write_header,
)
from mmcorl.data.tables import Row
from mmcorl.errors import MmcorlError
from mmcorl.files import write_whole, writing

_BATCH_ROWS = 8  # that a worker takes at once
_PROGRESS_FILE = "progress.json"


@dataclass(frozen=True)
class Progress:
    """How far a source has been read: native rows, problems kept, rows dropped by reason, and the parts written."""

    source: str
    rows: int = 0
    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    parts: int = 0
    columns: list[str] = field(default_factory=list)
    """Columns seen in any row."""
    example: str = ""
    """What is wrong with the first row that was dropped."""


def prepare(
    source: Source,
    folder: Path,
    workers: int = 2,
    limit: int | None = None,
    report: Callable[[Progress], None] = lambda progress: None,
) -> Header:
    """Write the problems of a source, with every image decoded once to see that it can be, as a prepared folder.

    Rows that are no problems are dropped and counted. `limit` takes only the first so many native rows. In memory are
    one part of at most `GROUP_ROWS` rows and `GROUP_BYTES` of images, and a few rows for each worker. `report` is told
    of the progress after every batch. Raises MmcorlError where `folder` holds something, where an unfinished
    preparation of another source lies beside it, where it cannot be written, and where no row is a problem.
    """
    require_new(folder)
    unfinished = folder.parent / f".{folder.name}.unfinished"
    progress = _begin(unfinished, describe(source, limit))
    try:
        progress = _read(source, unfinished, progress, workers, limit, report)
        return _finish(unfinished, folder, progress)
    finally:
        if unfinished.is_dir() and not any(unfinished.iterdir()):
            unfinished.rmdir()  # nothing to go on from


def _read(
    source: Source,
    unfinished: Path,
    progress: Progress,
    workers: int,
    limit: int | None,
    report: Callable[[Progress], None],
) -> Progress:
    """Read what is left of the source and write its parts."""
    report(progress)
    ids = dict.fromkeys(_written_ids(unfinished, progress))
    rows = enumerate(islice(open_rows(source), limit))
    rest = islice(rows, progress.rows, None)
    part: list[Row] = []
    size = 0
    for batch in _mapped(rest, source, workers):
        dropped, columns = Counter(progress.dropped), dict.fromkeys(progress.columns)
        example = progress.example
        for number, names, result in batch:
            columns.update(dict.fromkeys(names))
            if not isinstance(result, BadRow) and result["id"] in ids:
                result = repeated_id(result["id"], number, source)
            if isinstance(result, BadRow):
                dropped[result.reason] += 1
                example = example or str(result)
                continue
            ids[result["id"]] = None
            part.append(result)
            size += image_bytes(result)
        progress = replace(
            progress,
            rows=progress.rows + len(batch),
            kept=len(ids),
            dropped=dict(dropped),
            columns=list(columns),
            example=example,
        )
        if len(part) >= GROUP_ROWS or size >= GROUP_BYTES:
            progress = _write_part(part, unfinished, progress)
            part, size = [], 0
        report(progress)
    if part:
        progress = _write_part(part, unfinished, progress)
    if not source.quirks:  # quirks read columns that only some releases of a set have
        check_columns(progress.columns, source)
    return progress


def describe(source: Source, limit: int | None = None) -> str:
    """A source in words, with what decides which problems its rows become; for headers, and to know it again."""
    words = [source.name]
    if source.path is not None and source.path.is_file():
        words.append(f"{source.path.stat().st_size} bytes")
    elif source.path is not None and source.split:
        words.append(f"split {source.split}")
    columns = source.columns.model_dump_json(exclude_defaults=True)
    words += [f"columns {columns}"] if columns != "{}" else []
    words += [f"quirks {json.dumps(source.quirks)}"] if source.quirks else []
    words += [f"first {limit} rows"] if limit is not None else []
    return "; ".join(words)


def _mapped(
    rows: Iterable[tuple[int, Row]], source: Source, workers: int
) -> Iterator[list[tuple[int, list[str], Row | BadRow]]]:
    """Batches of rows with what they become, in their order; only a few batches are under way at any time."""
    waiting: deque[Future[list[tuple[int, list[str], Row | BadRow]]]] = deque()
    rows = iter(rows)
    with ThreadPoolExecutor(workers) as pool:
        while batch := list(islice(rows, _BATCH_ROWS)):
            waiting.append(pool.submit(_stored, batch, source))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _stored(batch: list[tuple[int, Row]], source: Source) -> list[tuple[int, list[str], Row | BadRow]]:
    return [(number, list(row), _stored_row(number, row, source)) for number, row in batch]


def _stored_row(number: int, row: Row, source: Source) -> Row | BadRow:
    try:
        problem, gold = read_row(row, number, source)
    except BadRow as bad:
        return bad
    try:
        stored = stored_row(problem, gold)
        for place, image in enumerate(stored["images"], start=1):
            load_image(image["bytes"], DECODE_LIMIT, 1, f"image {place}")
    except MmcorlError as error:
        return BadRow("unreadable image", f"row {number} of {source.name}: {error}")
    return stored


def _begin(unfinished: Path, source: str) -> Progress:
    """The progress of an earlier run, or none. What that run wrote after its last note is removed."""
    note = unfinished / _PROGRESS_FILE
    with writing(unfinished, OUT_SETTING):
        unfinished.mkdir(parents=True, exist_ok=True)
    if not note.is_file():
        return Progress(source)
    progress = Progress(**json.loads(note.read_text(encoding="utf-8")))
    if progress.source != source:
        raise MmcorlError(
            f"{unfinished} is an unfinished preparation of something else ({progress.source}); remove it, or name "
            "another folder"
        )
    for path in unfinished.glob("part-*"):
        if path not in _parts(unfinished, progress):
            path.unlink()
    return progress


def _parts(unfinished: Path, progress: Progress) -> list[Path]:
    return [unfinished / f"part-{number:05}.parquet" for number in range(progress.parts)]


def _written_ids(unfinished: Path, progress: Progress) -> Iterator[str]:
    for part in _parts(unfinished, progress):
        yield from pq.read_table(part, columns=["id"])["id"].to_pylist()


def _write_part(rows: list[Row], unfinished: Path, progress: Progress) -> Progress:
    schema: Any = FEATURES.arrow_schema
    progress = replace(progress, parts=progress.parts + 1)
    with writing(unfinished, OUT_SETTING):
        pq.write_table(pa.Table.from_pylist(rows, schema), _parts(unfinished, progress)[-1], **WRITING)
        write_whole(unfinished / _PROGRESS_FILE, json.dumps(asdict(progress)))
    return progress


def _finish(unfinished: Path, folder: Path, progress: Progress) -> Header:
    if not progress.kept:
        shutil.rmtree(unfinished)
        first = f"; the first: {progress.example}" if progress.example else ""
        raise MmcorlError(f"none of the {progress.rows} rows of {progress.source} is a problem{first}")
    whole = unfinished / "whole"
    header = Header(FORMAT_VERSION, progress.source, progress.kept, progress.dropped)
    with writing(folder, OUT_SETTING):
        whole.mkdir(exist_ok=True)
        with pq.ParquetWriter(whole / ROWS_FILE, FEATURES.arrow_schema, **WRITING) as writer:
            for part in _parts(unfinished, progress):
                writer.write_table(pq.read_table(part))
        write_header(header, whole)
        whole.replace(folder)
    shutil.rmtree(unfinished)
    return header
