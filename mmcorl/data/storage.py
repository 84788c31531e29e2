"""The one form in which prepared problems lie on disk: a folder with a Parquet file and a small JSON header.

The Parquet file holds a row a problem in the columns of `FEATURES`, and can be opened by anything that reads Parquet:
`datasets.load_dataset("parquet", data_files="FOLDER/problems.parquet")` shows the images as images.
"""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq

from mmcorl.data.programs import stored_program
from mmcorl.data.rows import Source, read_row
from mmcorl.data.tables import Row, parquet_rows
from mmcorl.errors import MmcorlError
from mmcorl.files import writing
from mmcorl.problems import Gold, ImageSource, Problem

FORMAT_VERSION = 1
HEADER_FILE = "problems.json"
ROWS_FILE = "problems.parquet"
OUT_SETTING = "OUT"
"""What a folder to write is called on the command line, for errors."""

FEATURES = datasets.Features(
    {
        "id": datasets.Value("string"),
        "question": datasets.Value("string"),
        "images": [datasets.Image()],
        "choices": [datasets.Value("string")],
        "kind": datasets.Value("string"),
        "answer": datasets.Value("string"),
        "program": {
            "cases": [datasets.Value("string")],
            **dict.fromkeys(("reads", "before", "after"), datasets.Value("string")),
        },
    }
)

GROUP_ROWS, GROUP_BYTES = 1000, 2**26
"""What a Parquet row group holds at most, and so what is kept in memory; bytes are those of images."""
# Images are compressed already, and a dictionary of them would only be built to be thrown away.
WRITING: dict[str, Any] = {"use_dictionary": ["kind"], "compression": {"question": "zstd", "answer": "zstd"}}
"""How Parquet files of problems are written."""
_NO_PNG_MODES = {"CMYK", "YCbCr", "LAB", "HSV", "F"}


@dataclass(frozen=True)
class Header:
    """What a prepared folder says about itself."""

    format_version: int
    source: str
    count: int
    dropped: dict[str, int] = field(default_factory=dict)
    """Rows of the source that are no problems, by reason."""


def write_problems(pairs: Iterable[tuple[Problem, Gold | None]], folder: Path, source: str = "") -> Header:
    """Write problems with their golds as a prepared folder; `source` says in words where they come from.

    Encoded images are stored byte for byte, PIL images as PNG. Pairs are consumed one by one, and the folder appears
    only when it is whole. Raises MmcorlError when `folder` exists and is not empty, there are no problems, two share
    an id, an image file cannot be read or `folder` cannot be written.
    """
    require_new(folder)
    with writing(folder, OUT_SETTING):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as scratch:
            whole = Path(scratch) / folder.name
            whole.mkdir()
            count = _write_rows(pairs, whole / ROWS_FILE)
            if not count:
                raise MmcorlError(f"there are no problems to write to {folder}")
            header = Header(FORMAT_VERSION, source, count)
            write_header(header, whole)
            whole.rename(folder)
    return header


def require_new(folder: Path) -> None:
    """Raise MmcorlError for a folder that holds something."""
    with writing(folder, OUT_SETTING):
        there = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    if there:
        raise MmcorlError(f"{folder} exists already; remove it or name another folder")


def write_header(header: Header, folder: Path) -> None:
    """Write the header of a prepared folder."""
    (folder / HEADER_FILE).write_text(json.dumps(asdict(header), indent=2) + "\n", encoding="utf-8")


def read_header(folder: Path) -> Header:
    """The header of a prepared folder. Raises MmcorlError for one that is broken, newer than this code or not whole."""
    path = folder / HEADER_FILE
    try:
        header = Header(**json.loads(path.read_text(encoding="utf-8")))
        count = pq.read_metadata(folder / ROWS_FILE).num_rows
    except (OSError, ValueError, TypeError, pa.ArrowException) as error:
        raise MmcorlError(f"{folder} is not a whole prepared folder ({error}); prepare it again") from None
    if header.format_version != FORMAT_VERSION:
        raise MmcorlError(
            f"{path} has format version {header.format_version}, this mmcorl reads {FORMAT_VERSION}; "
            "prepare it again with this version"
        )
    if header.count != count:
        raise MmcorlError(f"{folder} should hold {header.count} problems and holds {count}; prepare it again")
    return header


def read_problems(folder: Path) -> Iterator[tuple[Problem, Gold | None]]:
    """What `write_problems` wrote, one by one, images as encoded bytes."""
    read_header(folder)
    source = Source(folder)
    for number, row in enumerate(parquet_rows(folder / ROWS_FILE)):
        yield read_row(row, number, source)


def _write_rows(pairs: Iterable[tuple[Problem, Gold | None]], path: Path) -> int:
    ids: set[str] = set()
    rows: list[Row] = []
    size = 0
    schema = FEATURES.arrow_schema
    with pq.ParquetWriter(path, schema, **WRITING) as writer:
        for problem, gold in pairs:
            if problem.id in ids:
                raise MmcorlError(
                    f"two problems have the id {problem.id}; ids name problems, so make them unique"
                )
            ids.add(problem.id)
            row = stored_row(problem, gold)
            rows.append(row)
            size += image_bytes(row)
            if len(rows) == GROUP_ROWS or size >= GROUP_BYTES:
                writer.write_table(pa.Table.from_pylist(rows, schema))
                rows, size = [], 0
        if rows:
            writer.write_table(pa.Table.from_pylist(rows, schema))
    return len(ids)


def image_bytes(row: Row) -> int:
    """Bytes of the images of a stored row."""
    return sum(len(image["bytes"]) for image in row["images"])


def stored_row(problem: Problem, gold: Gold | None) -> Row:
    """A problem with its gold in the columns of `FEATURES`. Raises MmcorlError where an image file cannot be read."""
    return {
        "id": problem.id,
        "question": problem.question,
        "images": [{"bytes": _encoded(image, problem.id), "path": None} for image in problem.images],
        "choices": None if problem.choices is None else list(problem.choices),
        "kind": problem.kind,
        "answer": None if gold is None else gold.answer,
        "program": stored_program(problem.program),
    }


def _encoded(image: ImageSource, problem_id: str) -> bytes:
    if isinstance(image, bytes):
        return image
    if isinstance(image, Path):
        try:
            return image.read_bytes()
        except OSError as error:
            raise MmcorlError(f"the image of problem {problem_id} cannot be read ({error})") from None
    buffer = io.BytesIO()
    (image.convert("RGB") if image.mode in _NO_PNG_MODES else image).save(buffer, "PNG")
    return buffer.getvalue()
