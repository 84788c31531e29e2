"""Where a run keeps what: the one place that knows the names inside a run's folder.

RUN/config.yaml                                the resolved configuration
RUN/logs/NAME.log, NAME.rank1.log              what each process printed
RUN/agents/NAME/metrics.jsonl                  one line a step or evaluation
RUN/agents/NAME/completions.jsonl              one line a completion
RUN/agents/NAME/checkpoints/step-000030/       a `from_pretrained` folder, and `training/` to resume from
RUN/agents/NAME/best/                          the best checkpoint, and best.json that says why
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from mmcorl.config import Config


@dataclass(frozen=True)
class RunFolder:
    """The paths of one run."""

    path: Path

    @classmethod
    def of(cls, config: Config) -> RunFolder:
        return cls(config.run.dir / config.run.name)

    @property
    def config(self) -> Path:
        return self.path / "config.yaml"

    @property
    def launches(self) -> Path:
        return self.path / "launches.jsonl"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    def log(self, agent: str, rank: int = 0) -> Path:
        return self.logs / (f"{agent}.log" if rank == 0 else f"{agent}.rank{rank}.log")

    def agent(self, name: str) -> Path:
        return self.path / "agents" / name

    def checkpoints(self, name: str) -> Path:
        return self.agent(name) / "checkpoints"

    def metrics(self, name: str) -> Path:
        return self.agent(name) / "metrics.jsonl"

    def completions(self, name: str) -> Path:
        return self.agent(name) / "completions.jsonl"

    def holds_work(self, name: str) -> bool:
        """Whether this agent's folder has a metric or a checkpoint that somebody could miss."""
        metrics = self.metrics(name)
        saved = self.checkpoints(name)
        return (metrics.exists() and metrics.stat().st_size > 0) or (saved.is_dir() and any(saved.iterdir()))


def write_whole(path: Path, text: str) -> None:
    """Write a text file so that a reader, or the next run after a crash, sees the old text or the new one."""
    temporary = path.with_name(f".{path.name}.partial")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
