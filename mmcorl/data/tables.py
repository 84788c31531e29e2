"""Rows, as dictionaries, out of JSONL, JSON and Parquet files and `save_to_disk` folders, a part at a time.

Only a JSON file that is one list is read whole, and of Parquet a row group. Images stay as they are stored; nothing is
decoded.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

import datasets
import pyarrow as pa
import pyarrow.parquet as pq

from mmcorl.errors import MmcorlError

Row = dict[str, Any]

_BATCH_ROWS = 32  # of images of some MB each


def json_rows(path: Path) -> Iterator[Row]:
    """Rows of a file that holds one object a line, or one list of objects."""
    with path.open(encoding="utf-8-sig") as file:
        try:
            rows = _listed(file, path) if _first_character(file) == "[" else _lines(file, path)
            for number, row in enumerate(rows):
                if not isinstance(row, dict):
                    raise MmcorlError(
                        f"row {number} of {path} is a {type(row).__name__}, not an object of columns"
                    )
                yield row
        except UnicodeDecodeError as error:
            raise MmcorlError(f"{path} is not UTF-8 text ({error}); convert it") from None


def parquet_rows(path: Path) -> Iterator[Row]:
    """Rows of a Parquet file. A class label comes as its name, an image as the dictionary `datasets` stores."""
    try:
        with pq.ParquetFile(path) as file:
            features = datasets.Features.from_arrow_schema(file.schema_arrow)
            for group in range(file.num_row_groups):  # all at once, Arrow would hold on to the whole file
                batches = file.iter_batches(batch_size=_BATCH_ROWS, row_groups=[group])
                yield from _arrow_rows(batches, features)
    except (pa.ArrowException, OSError) as error:
        raise MmcorlError(f"{path} is not a whole Parquet file ({error}); write it again") from None


def saved_rows(folder: Path) -> Iterator[Row]:
    """Rows of a folder written by `Dataset.save_to_disk`."""
    try:
        dataset = datasets.Dataset.load_from_disk(str(folder))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise MmcorlError(f"{folder} is not a whole `save_to_disk` folder ({error}); save it again") from None
    yield from _arrow_rows(dataset.with_format("arrow").iter(batch_size=_BATCH_ROWS), dataset.features)


def _arrow_rows(batches: Iterable[Any], features: datasets.Features) -> Iterator[Row]:
    labels = {name: label for name, label in features.items() if isinstance(label, datasets.ClassLabel)}
    for batch in batches:
        for row in batch.to_pylist():
            for name, label in labels.items():
                row[name] = None if row[name] is None or row[name] < 0 else label.int2str(row[name])
            yield row


def _first_character(file: TextIO) -> str:
    character = file.read(1)
    while character.isspace():
        character = file.read(1)
    file.seek(0)
    return character


def _listed(file: TextIO, path: Path) -> list[Any]:
    try:
        return json.load(file)
    except json.JSONDecodeError as error:
        raise MmcorlError(f"{path} is not valid JSON in line {error.lineno} ({error.msg})") from None


def _lines(file: TextIO, path: Path) -> Iterator[Any]:
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        try:
            yield json.loads(line)
        except json.JSONDecodeError as error:
            raise MmcorlError(
                f"{path}, line {number}, is not one JSON object ({error.msg}); "
                "a JSON or JSONL file holds a list of rows, or a row a line"
            ) from None
