"""From the native rows of a source to problems with their golds, and what is wrong with the rows that are none."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mmcorl.config import ColumnsConfig, DataConfig
from mmcorl.data.bad_rows import BadRow
from mmcorl.data.rows import Source, read_row, suggest_column
from mmcorl.data.sources import declaration_of
from mmcorl.errors import MmcorlError
from mmcorl.problems import Gold, Problem

if TYPE_CHECKING:
    from mmcorl.data.tables import Row

logger = logging.getLogger(__name__)

Pair = tuple[Problem, Gold | None]


def source_of(config: DataConfig, prefix: str = "data.train.") -> Source:
    """The source that a data set of the configuration names, by a declaration or by a path and its columns."""
    path = None if config.path is None else Path(config.path)
    if config.source is None:
        return Source(path, config.columns, prefix, split=config.split, fetch_urls=config.fetch_urls)
    declared = declaration_of(config.source, f"{prefix}source")
    hub = declared.hub
    if hub is not None:
        hub = replace(hub, split=config.split or hub.split)
    elif path is None:
        raise MmcorlError(
            f"{prefix}source={declared.name} is not on the hub; set {prefix}path to a copy of it. {declared.facts}"
        )
    split = config.split if hub is None else hub.split
    return Source(path, declared.columns, prefix, declared.quirks, hub, split, config.fetch_urls)


def read_rows(rows: Iterable[Row], source: Source, first: int = 0) -> Iterator[Pair | BadRow]:
    """Every row as a problem with its gold, or as what is wrong with it; the rows are numbered from `first`.

    A row with the id of an earlier one is bad. Raises MmcorlError where a named column is in none of the rows.
    """
    seen: dict[str, None] = {}
    ids: dict[str, int] = {}
    for number, row in enumerate(rows, start=first):
        seen.update(dict.fromkeys(row))
        try:
            pair = read_row(row, number, source)
        except BadRow as bad:
            yield bad
            continue
        earlier = ids.setdefault(pair[0].id, number)
        yield pair if earlier == number else repeated_id(pair[0].id, number, source, earlier)
    if not source.quirks:  # quirks read columns that only some releases of a set have
        check_columns(seen, source)


def repeated_id(id_: str, number: int, source: Source, earlier: int | str = "another") -> BadRow:
    """What is wrong with row `number`, which has the id of an earlier row."""
    return BadRow(
        "duplicate id",
        f"rows {earlier} and {number} of {source.name} have the same id {id_}; set {source.prefix}columns.id to a "
        "column of unique ids, or to null to number the rows",
    )


def check_columns(seen: Collection[str], source: Source) -> None:
    """Compare the configured columns with those seen in any row.

    One that was named and is nowhere is an error: left alone, the images or answers would be missing in silence.
    Columns that look like images and are not read are worth a warning.
    """
    for field, name in source.columns:
        named = name not in (None, ColumnsConfig.model_fields[field].default)
        if seen and named and name not in seen:
            raise MmcorlError(f"{source.name} has no column `{name}`{suggest_column(field, seen, source)}")
    pictures = [column for column in seen if "image" in column.lower()]
    images = source.columns.images
    if pictures and images is not None and images not in seen:
        setting = f"{source.prefix}columns.images"
        logger.warning(
            "%s is read without the images of its column %s; set %s=%s, or %s=null to do without them",
            *(source.name, pictures[0], setting, pictures[0], setting),
        )
