"""Rows, as dictionaries, out of JSONL, JSON and Parquet files and `save_to_disk` folders, a part at a time.

Only a JSON file that is one list is read whole, and of Parquet a row group. Images stay as they are stored; nothing is
decoded.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq

from mmcorl.errors import MmcorlError

Row = dict[str, Any]

_BATCH_ROWS = 32  # of images of some MB each


def json_rows(path: Path) -> Iterator[Row]:
    """Rows of a file, gzipped or not, that holds one object a line, one list of objects or one object of objects."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8-sig") as file:
        try:
            rows = _whole(file, path) if _is_whole(file, path) else _lines(file, path)
            for number, row in enumerate(rows):
                if not isinstance(row, dict):
                    raise MmcorlError(
                        f"row {number} of {path} is a {type(row).__name__}, not an object of columns"
                    )
                yield row
        except UnicodeDecodeError as error:
            raise MmcorlError(f"{path} is not UTF-8 text ({error}); convert it") from None
        except (gzip.BadGzipFile, EOFError) as error:
            raise MmcorlError(f"{path} is not a whole gzip file ({error}); fetch it again") from None


def parquet_rows(path: Path) -> Iterator[Row]:
    """Rows of a Parquet file. A class label comes as its name, an image as the dictionary `datasets` stores."""
    try:
        with pq.ParquetFile(path) as file:
            features = datasets.Features.from_arrow_schema(file.schema_arrow)
            for group in range(file.num_row_groups):  # all at once, Arrow would hold on to the whole file
                batches = file.iter_batches(batch_size=_BATCH_ROWS, row_groups=[group])
                yield from arrow_rows(batches, features)
    except (pa.ArrowException, OSError) as error:
        raise MmcorlError(f"{path} is not a whole Parquet file ({error}); write it again") from None


def saved_rows(folder: Path) -> Iterator[Row]:
    """Rows of a folder written by `Dataset.save_to_disk`."""
    try:
        dataset = datasets.Dataset.load_from_disk(str(folder))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise MmcorlError(f"{folder} is not a whole `save_to_disk` folder ({error}); save it again") from None
    yield from arrow_rows(dataset.with_format("arrow").iter(batch_size=_BATCH_ROWS), dataset.features)


def arrow_rows(batches: Iterable[Any], features: datasets.Features) -> Iterator[Row]:
    labels = {name: label for name, label in features.items() if isinstance(label, datasets.ClassLabel)}
    for batch in batches:
        for row in batch.to_pylist():
            for name, label in labels.items():
                row[name] = None if row[name] is None or row[name] < 0 else label.int2str(row[name])
            yield row


def _is_whole(file: IO[str], path: Path) -> bool:
    """Whether the file is one JSON value, and not a row a line."""
    character = file.read(1)
    while character.isspace():
        character = file.read(1)
    file.seek(0)
    if character != "{" or ".json" not in path.suffixes:
        return character == "["
    first = next((line for line in file if line.strip()), "")
    file.seek(0)
    try:
        values = json.loads(first).values()
    except (json.JSONDecodeError, RecursionError):  # the object goes on in the next line, or is none
        return True
    return bool(values) and all(isinstance(value, dict) for value in values)


def _whole(file: IO[str], path: Path) -> list[Any]:
    try:
        value = json.load(file)
    except json.JSONDecodeError as error:
        raise MmcorlError(f"{path} is not valid JSON in line {error.lineno} ({error.msg})") from None
    except RecursionError:
        raise MmcorlError(f"{path} is nested too deeply to be rows") from None
    if isinstance(value, dict):
        return list(value.values()) if all(isinstance(row, dict) for row in value.values()) else [value]
    return value


def _lines(file: IO[str], path: Path) -> Iterator[Any]:
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
        except RecursionError:
            raise MmcorlError(f"{path}, line {number}, is nested too deeply to be a row") from None
