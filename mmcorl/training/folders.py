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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError

from mmcorl.config import Config
from mmcorl.errors import MmcorlError


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


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise MmcorlError, without a traceback for the user, when `path` cannot be written: no room, no right, no folder."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        number = error.errno if isinstance(error, OSError) else None
        reason = os.strerror(number) if number else str(error)
        raise MmcorlError(
            f"{path} cannot be written ({reason}); make room there, or choose another run.dir"
        ) from error


def write_whole(path: Path, text: str) -> None:
    """Write a text file so that a reader, or the next run after a crash, sees the old text or the new one."""
    # Launchers that share a run's folder may write the same file at once.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
