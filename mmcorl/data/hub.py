"""Rows of a data set on the Hugging Face hub, or of a downloaded copy of one, streamed and not decoded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict

from mmcorl.errors import MmcorlError

if TYPE_CHECKING:
    from mmcorl.data.tables import Row

_BATCH_ROWS = 32  # of images of some MB each
_PROBE_S = 10.0


@dataclass(frozen=True)
class Hub:
    """A data set on the hub. `configs` are read one after the other; without any it is the default one."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    repo: str
    split: str = "train"
    configs: tuple[str, ...] = ()
    revision: str | None = None

    def __str__(self) -> str:
        configs = f", config {' + '.join(self.configs)}" if self.configs else ""
        return f"{self.repo} on the hub (split {self.split}{configs})"


def hub_rows(hub: Hub, setting: str = "data.train.path") -> Iterator[Row]:
    """The native rows of a data set on the hub; images are the dictionaries that `datasets` stores.

    No code of the data set is run: a repository that needs its own loading code is refused. Raises MmcorlError for a
    hub that cannot be reached and for a config or split that is none; `setting` names a local copy.
    """
    from huggingface_hub import HfApi

    try:
        # Asked once, so that a machine without network says so in seconds and not after all of `datasets`' retries.
        HfApi().dataset_info(hub.repo, revision=hub.revision, timeout=_PROBE_S)
        for config in hub.configs or (None,):
            yield from _stream(hub.repo, config, hub.split, hub.revision)
    except _unreachable() as error:
        if isinstance(error, MmcorlError):
            raise
        raise MmcorlError(
            f"{hub} cannot be read ({_first_line(error)}). Where there is network, run "
            f"`hf download {hub.repo} --repo-type dataset --local-dir FOLDER`, then set {setting}=FOLDER"
        ) from None


def snapshot_rows(folder: Path, split: str | None, configs: tuple[str, ...]) -> Iterator[Row]:
    """The native rows of a folder in the layout of the hub: Parquet, JSON or CSV files, or images with their metadata.

    Without `split` the folder may have one split only. Raises MmcorlError for a folder that holds no data set, and for
    a config or split that it lacks.
    """
    import datasets

    try:
        for config in configs or (None,):
            splits = datasets.get_dataset_split_names(str(folder), config)
            if split is None and len(splits) != 1:
                raise MmcorlError(f"{folder} has the splits {', '.join(splits)}; say which by `split`")
            yield from _stream(str(folder), config, split or splits[0], None)
    except (OSError, ValueError, RuntimeError) as error:
        if isinstance(error, MmcorlError):
            raise
        raise MmcorlError(f"{folder} cannot be read as a data set ({_first_line(error)})") from None


def _stream(repo: str, config: str | None, split: str, revision: str | None) -> Iterator[Row]:
    import datasets

    from mmcorl.data.tables import arrow_rows

    stream = datasets.load_dataset(repo, config, split=split, revision=revision, streaming=True)
    arrow: Any = stream.with_format("arrow")
    features = stream.features
    if features is None:  # of JSON and CSV files, which say nothing of their columns beforehand
        first = next(arrow.iter(1), None)
        features = datasets.Features() if first is None else datasets.Features.from_arrow_schema(first.schema)
    yield from arrow_rows(arrow.iter(batch_size=_BATCH_ROWS), features)


def _unreachable() -> tuple[type[Exception], ...]:
    from huggingface_hub.errors import HfHubHTTPError

    # Its bases are the errors of the hub's network library, which differs between versions.
    return (*HfHubHTTPError.__bases__, OSError, ValueError, RuntimeError)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
