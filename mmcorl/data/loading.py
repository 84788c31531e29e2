"""The problems of a run and, apart from them, their gold answers."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from mmcorl.config import DataConfig
from mmcorl.data.bad_rows import BadRow
from mmcorl.data.opening import open_rows
from mmcorl.data.reading import Pair, read_rows, source_of
from mmcorl.data.rows import Source
from mmcorl.errors import MmcorlError
from mmcorl.problems import Gold, Problem

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LoadedData:
    """Problems in the order of their source, and golds by problem id.

    They are apart so that training can hand golds to the `gold` reward and to diagnostics alone.
    """

    problems: list[Problem]
    golds: Mapping[str, Gold]


def load_problems(config: DataConfig, setting: str = "data.train", require_gold: bool = False) -> LoadedData:
    """Load a data set of the configuration; `setting` is its name there, for errors.

    Encoded images are held in memory, none is decoded. Rows of a public source that are no problems are left out and
    logged by reason; in a file of one's own the first of them (BadRow) is an error. Raises MmcorlError for a source
    that is missing, empty or of an unknown form and, with `require_gold`, for a row without an answer.
    """
    problems: list[Problem] = []
    golds: dict[str, Gold] = {}
    name = config.source or config.path
    for problem, gold in _pairs(config, setting):
        if gold is not None:
            golds[problem.id] = gold
        elif require_gold:
            raise MmcorlError(
                f"{setting}: row {len(problems)} of {name} has no answer in the column "
                f"`{config.columns.answer}`, and a gold answer is needed; set {setting}.columns.answer or label it"
            )
        problems.append(problem)
    if not problems:
        raise MmcorlError(
            f"{setting}.{'path' if config.path else 'source'}={config.path or name} holds no problems"
        )
    return LoadedData(problems, golds)


def _pairs(config: DataConfig, setting: str) -> Iterable[Pair]:
    if config.scenes is not None:
        from mmcorl.data.scenes import scenes  # drawing is needed for this source alone

        return islice(scenes(config.scenes), config.limit)
    source = source_of(config, f"{setting}.")
    try:
        rows = open_rows(source)
    except MmcorlError as error:
        raise MmcorlError(f"{setting}.path: {error}") from None
    if config.source is None:
        return _all(read_rows(islice(rows, config.limit), source))
    return islice(_usable(read_rows(rows, source), source), config.limit)


def _all(read: Iterable[Pair | BadRow]) -> Iterator[Pair]:
    for pair in read:
        if isinstance(pair, BadRow):
            raise pair
        yield pair


def _usable(read: Iterable[Pair | BadRow], source: Source) -> Iterator[Pair]:
    dropped: Counter[str] = Counter()
    first: BadRow | None = None
    kept = 0
    for pair in read:
        if isinstance(pair, BadRow):
            dropped[pair.reason] += 1
            first = first or pair
        else:
            kept += 1
            yield pair
    if first is not None and not kept:
        raise MmcorlError(
            f"none of the {dropped.total()} rows of {source.name} can be used; the first: {first}"
        )
    if first is not None:
        reasons = ", ".join(f"{reason}: {count}" for reason, count in dropped.most_common())
        logger.warning(
            "%s: %d rows are problems, %d are left out (%s)", source.name, kept, dropped.total(), reasons
        )
