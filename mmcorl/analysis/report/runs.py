"""The runs of a report: their folders, configurations and metrics."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mmcorl.config import Config
from mmcorl.config_loading import load_config
from mmcorl.errors import MmcorlError
from mmcorl.files import read_lines
from mmcorl.training.folders import RunFolder
from mmcorl.training.metrics import Line


@dataclass(frozen=True)
class Metrics:
    """An agent's `metrics.jsonl` by kind of line, each in the order of the steps."""

    train: list[Line]
    evaluations: list[Line]
    alarms: list[Line]

    @property
    def steps(self) -> list[int]:
        """The steps that are written down."""
        return [line["step"] for line in self.train]


@dataclass(frozen=True)
class Run:
    """One run as its folder holds it now; it may be finished, going on or killed."""

    title: str
    """What the report calls it; no two runs of a report have the same title."""
    folder: RunFolder
    config: Config
    agents: dict[str, Metrics]
    launches: list[Line]

    @property
    def steps_done(self) -> int:
        """The last step that any agent has written down."""
        return max((steps[-1] for agent in self.agents.values() if (steps := agent.steps)), default=0)

    @property
    def complete(self) -> bool:
        return self.steps_done >= self.config.run.steps


def find_runs(paths: Sequence[Path]) -> list[Path]:
    """The folders of runs that `paths` name: each its own, or all that lie in it, as in the folder of a comparison.

    Raises MmcorlError for a path that is neither.
    """
    found: dict[Path, None] = {}
    for path in paths:
        inner = sorted(file.parent for file in path.glob("*/config.yaml"))
        folders = [path] if (path / "config.yaml").is_file() else inner
        if not folders:
            reason = "there is no config.yaml in it" if path.exists() else "it does not exist"
            raise MmcorlError(f"{path} is not the folder of a run ({reason}); name one, as in runs/pair")
        found |= dict.fromkeys(folder.resolve() for folder in folders)
    return list(found)


def read_runs(folders: Sequence[Path]) -> list[Run]:
    """Read the runs in these (resolved) folders. Raises MmcorlError for a damaged file or an unknown setting."""
    return [_read(folder, title) for folder, title in zip(folders, _titles(folders), strict=True)]


def _read(path: Path, title: str) -> Run:
    folder = RunFolder(path)
    config = load_config(folder.config)
    agents = {name: _metrics(folder.metrics(name)) for name in config.agents}
    return Run(title, folder, config, agents, read_lines(folder.launches))


def _metrics(path: Path) -> Metrics:
    by_kind: dict[str, list[Line]] = {"train": [], "eval": [], "alarm": []}
    for line in read_lines(path):
        by_kind.get(line["kind"], []).append(line)
    return Metrics(by_kind["train"], by_kind["eval"], by_kind["alarm"])


def _titles(folders: Sequence[Path]) -> list[str]:
    """The folders' names; where two are alike, as much of the paths as tells them apart."""
    if max(Counter(folder.name for folder in folders).values()) == 1:
        return [folder.name for folder in folders]
    common = os.path.commonpath(folders)
    return [str(folder.relative_to(common)) for folder in folders]
