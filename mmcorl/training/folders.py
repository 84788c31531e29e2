"""Where a run keeps what: the one place that knows the names inside a run's folder.

RUN/config.yaml                                the resolved configuration
RUN/logs/NAME.log, NAME.rank1.log              what each process printed
RUN/agents/NAME/metrics.jsonl                  one line a step or evaluation
RUN/agents/NAME/completions/step-000030.parquet  one row a completion
RUN/agents/NAME/checkpoints/step-000030/       a `from_pretrained` folder, and `training/` to resume from
RUN/agents/NAME/best/                          the best checkpoint, and best.json that says why
"""

from __future__ import annotations

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

    def phase(self, name: str) -> Path:
        """What the agent is doing: a step's number and the name of a phase."""
        return self.agent(name) / "phase"

    def metrics(self, name: str) -> Path:
        return self.agent(name) / "metrics.jsonl"

    def completions(self, name: str) -> Path:
        return self.agent(name) / "completions"
