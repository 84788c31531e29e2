"""Opening the native rows of any source: a local file or folder, or a data set on the hub."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mmcorl.data.rows import Source
from mmcorl.errors import MmcorlError

if TYPE_CHECKING:
    from mmcorl.data.tables import Row

_FORMS = (
    "a prepared folder, a .jsonl, .json or .parquet file, a `save_to_disk` folder, a folder with images and "
    "metadata.jsonl, or a data set downloaded from the hub"
)


def open_rows(source: Source) -> Iterator[Row]:
    """The native rows of a source, one by one, images as they are stored.

    Local files and folders are told apart by what they hold. Raises MmcorlError for a path that is no data set, a
    split that it lacks and a hub that cannot be reached.
    """
    if source.path is None:
        assert source.hub is not None  # a source has a path or is on the hub
        from mmcorl.data.hub import hub_rows

        return hub_rows(source.hub, f"{source.prefix}path")
    return _local_rows(source.path, source)


def _local_rows(path: Path, source: Source) -> Iterator[Row]:
    # `datasets` takes a second to import, which runs on the built-in scenes need not wait for.
    from mmcorl.data.hub import snapshot_rows
    from mmcorl.data.storage import HEADER_FILE, ROWS_FILE, read_header
    from mmcorl.data.tables import json_rows, parquet_rows, saved_rows

    if not path.exists():
        raise MmcorlError(f"{path} does not exist; name {_FORMS}")
    if path.is_file():
        match path.suffixes[-2:]:
            case [*_, ".jsonl" | ".json"] | [".jsonl" | ".json", ".gz"]:
                return json_rows(path)
            case [*_, ".parquet"]:
                return parquet_rows(path)
        raise MmcorlError(f"{path} is of no known form; name {_FORMS}")
    if (path / HEADER_FILE).is_file():
        if source.quirks:
            raise MmcorlError(
                f"{path} is prepared already; name it by {source.prefix}path alone, without a source"
            )
        read_header(path)
        return parquet_rows(path / ROWS_FILE)
    if (path / "dataset_dict.json").is_file():
        splits = sorted(split.name for split in path.iterdir() if split.is_dir())
        if source.split not in splits:
            raise MmcorlError(
                f"{path} has the splits {', '.join(splits)}; name the folder of one of them, or set {source.prefix}split"
            )
        return saved_rows(path / source.split)
    if (path / "dataset_info.json").is_file() and (path / "state.json").is_file():
        return saved_rows(path)
    return snapshot_rows(path, source.split, source.hub.configs if source.hub else ())
