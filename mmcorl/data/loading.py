"""The problems of a run and, apart from them, their gold answers."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from mmcorl.config import ColumnsConfig, DataConfig
from mmcorl.data.rows import Source, read_row, suggest_column
from mmcorl.errors import MmcorlError
from mmcorl.problems import Gold, Problem

if TYPE_CHECKING:
    from mmcorl.data.tables import Row

logger = logging.getLogger(__name__)

Pair = tuple[Problem, Gold | None]

_FORMATS = "a prepared folder, a .jsonl, .json or .parquet file, or a `save_to_disk` folder"


@dataclass(frozen=True)
class LoadedData:
    """Problems in the order of their source, and golds by problem id.

    They are apart so that training can hand golds to the `gold` reward and to diagnostics alone.
    """

    problems: list[Problem]
    golds: Mapping[str, Gold]


def load_problems(config: DataConfig, setting: str = "data.train", require_gold: bool = False) -> LoadedData:
    """Load a data set of the configuration; `setting` is its name there, for errors.

    Encoded images are held in memory, none is decoded. Raises MmcorlError for a source that is missing, empty or of an
    unknown form, for the first row that is no problem (BadRow), for two rows of one id and, with `require_gold`, for
    a row without an answer.
    """
    problems: dict[str, Problem] = {}
    golds: dict[str, Gold] = {}
    for problem, gold in _pairs(config, setting):
        if problem.id in problems:
            raise MmcorlError(
                f"{setting}: rows {list(problems).index(problem.id)} and {len(problems)} of {config.path} have "
                f"the same id {problem.id}; set {setting}.columns.id to a column of unique ids, or to null to number the rows"
            )
        if gold is not None:
            golds[problem.id] = gold
        elif require_gold:
            raise MmcorlError(
                f"{setting}: row {len(problems)} of {config.path} has no answer in the column "
                f"`{config.columns.answer}`, and a gold answer is needed; set {setting}.columns.answer or label it"
            )
        problems[problem.id] = problem
    if not problems:
        raise MmcorlError(f"{setting}.path={config.path} holds no problems")
    return LoadedData(list(problems.values()), golds)


def open_rows(source: Source) -> Iterator[Row]:
    """The rows of a local data set, whatever its form. Raises MmcorlError for a path that is none."""
    # `datasets` takes a second to import, which runs on the built-in scenes need not wait for.
    from mmcorl.data.storage import HEADER_FILE, ROWS_FILE, read_header
    from mmcorl.data.tables import json_rows, parquet_rows, saved_rows

    path = source.path
    if not path.exists():
        raise MmcorlError(f"{path} does not exist; name {_FORMATS}")
    if path.is_file():
        match path.suffix.lower():
            case ".jsonl" | ".json":
                return json_rows(path)
            case ".parquet":
                return parquet_rows(path)
    elif (path / HEADER_FILE).is_file():
        read_header(path)
        return parquet_rows(path / ROWS_FILE)
    elif (path / "dataset_dict.json").is_file():
        splits = sorted(split.name for split in path.iterdir() if split.is_dir())
        raise MmcorlError(f"{path} has the splits {', '.join(splits)}; name the folder of one of them")
    elif (path / "dataset_info.json").is_file():
        return saved_rows(path)
    raise MmcorlError(f"{path} is of no known form; name {_FORMATS}")


def _pairs(config: DataConfig, setting: str) -> Iterable[Pair]:
    if config.scenes is not None:
        from mmcorl.data.scenes import scenes  # drawing is needed for this source alone

        return islice(scenes(config.scenes), config.limit)
    assert config.path is not None  # DataConfig has exactly one source
    source = Source(Path(config.path), config.columns, f"{setting}.")
    try:
        rows = open_rows(source)
    except MmcorlError as error:
        raise MmcorlError(f"{setting}.path: {error}") from None
    return _read(islice(rows, config.limit), source)


def _read(rows: Iterable[Row], source: Source) -> Iterator[Pair]:
    seen: dict[str, None] = {}
    for number, row in enumerate(rows):
        seen.update(dict.fromkeys(row))
        yield read_row(row, number, source)
    check_columns(seen, source)


def check_columns(seen: Collection[str], source: Source) -> None:
    """Compare the configured columns with those seen in any row.

    One that was named and is nowhere is an error: left alone, the images or answers would be missing in silence.
    Columns that look like images and are not read are worth a warning.
    """
    for field, name in source.columns:
        named = name not in (None, ColumnsConfig.model_fields[field].default)
        if seen and named and name not in seen:
            raise MmcorlError(f"{source.path} has no column `{name}`{suggest_column(field, seen, source)}")
    pictures = [column for column in seen if "image" in column.lower()]
    images = source.columns.images
    if pictures and images is not None and images not in seen:
        setting = f"{source.prefix}columns.images"
        logger.warning(
            "%s is read without the images of its column %s; set %s=%s, or %s=null to do without them",
            *(source.path, pictures[0], setting, pictures[0], setting),
        )
