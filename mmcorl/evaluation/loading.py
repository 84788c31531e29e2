"""The problems of a benchmark: from the hub, from a copy in the original schema, or drawn."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from mmcorl.config import ScenesConfig
from mmcorl.data.bad_rows import BadRow
from mmcorl.data.hub import Hub
from mmcorl.data.rows import Source
from mmcorl.errors import MmcorlError
from mmcorl.evaluation.declaration import Declaration, HubConfig
from mmcorl.evaluation.reading import Item, NotOfBenchmark, image_digest, read_item
from mmcorl.evaluation.records import ProblemRecord
from mmcorl.graders import Grader

SCENES = ScenesConfig(size=250, seed=2)
"""The held-out scenes of the shipped configurations."""


@dataclass(frozen=True)
class LoadedBenchmark:
    """A benchmark with its problems in the order of their source; encoded images are in memory, none is decoded."""

    declaration: Declaration
    items: list[Item]
    dropped: dict[str, int]
    """Rows that are no problem, by reason."""
    data: str
    """Where the rows came from."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all problems as they are asked and graded, in order."""
        digest = hashlib.sha256()
        for item in self.items:
            asked = item.problem.question, item.problem.choices, item.gold
            digest.update(json.dumps([item.record.to_json(), asked], sort_keys=True).encode())
        return digest.hexdigest()


def load_benchmark(
    declaration: Declaration, grader: Grader, data: Path | None = None, limit: int | None = None
) -> LoadedBenchmark:
    """Read a benchmark, from `data` if given: a file, a `save_to_disk` folder or a downloaded repository of the hub.

    Rows that are no problem are dropped and counted. Raises MmcorlError where the source, a column or an image file
    is missing, and where nothing is left.
    """
    if declaration.source == "scenes":
        return LoadedBenchmark(declaration, list(islice(_scenes(), limit)), {}, "drawn")
    hub, setting = declaration.source, f"--data {declaration.name}"
    source = Source(data, hub=Hub(hub.path, hub.split, hub.configs), split=hub.split)
    dropped: Counter[str] = Counter()
    example = ""
    items: dict[str, Item] = {}
    try:
        for number, row in enumerate(_rows(source, hub, setting)):
            if limit is not None and len(items) == limit:
                break
            try:
                item = read_item(row, number, declaration, source, grader)
            except NotOfBenchmark:
                continue
            except BadRow as bad:
                dropped[bad.reason] += 1
                example = example or f"{bad.reason}: {bad}"
                continue
            if item.problem.id in items:
                raise MmcorlError(f"two rows have the id {item.problem.id}")
            items[item.problem.id] = item
    except MmcorlError as error:
        raise MmcorlError(f"{declaration.name}: {error}") from None
    if not items:
        why = f"{example} (and {dropped.total() - 1} rows more)" if dropped else "it has no rows of it"
        raise MmcorlError(f"{declaration.name}: {source.name} holds no problem of this benchmark: {why}")
    return LoadedBenchmark(declaration, list(items.values()), dict(sorted(dropped.items())), source.name)


def _scenes() -> Iterator[Item]:
    from mmcorl.data.scenes import scenes  # drawing is needed for this source alone

    for problem, gold in scenes(SCENES):
        digests = [image_digest(image) for image in problem.images]
        record = ProblemRecord(problem.id, problem.question, None, "math", gold.answer, {}, digests)
        yield Item(problem, record, gold.answer)


def _rows(source: Source, hub: HubConfig, setting: str) -> Iterator[dict[str, Any]]:
    # `datasets` takes a second to import, which the built-in scenes need not wait for.
    from mmcorl.data.hub import hub_rows
    from mmcorl.data.opening import open_rows

    if hub.files and (source.path is None or source.path.is_dir()):
        for file in hub.files:
            yield from open_rows(Source(source.path / file if source.path else _fetched(hub, file, setting)))
    elif source.path is None:
        assert source.hub is not None
        yield from hub_rows(source.hub, setting)
    else:
        yield from open_rows(source)


def _fetched(hub: HubConfig, file: str, setting: str) -> Path:
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(hub.path, file, repo_type="dataset"))
    except (OSError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise MmcorlError(
            f"{file} of {hub.path} cannot be fetched from the hub ({reason}). Where there is network, run "
            f"`hf download {hub.path} --repo-type dataset --local-dir FOLDER`, then set {setting}=FOLDER"
        ) from None
