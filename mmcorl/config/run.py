"""Settings of the run itself: its length, and what is evaluated, kept, watched and logged."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from mmcorl.config.section import Section


class RunConfig(Section):
    name: str = "run"
    """Name of the run; its folder is `dir/name`."""
    dir: Path = Path("runs")
    """Folder that holds the folders of runs."""
    seed: int = 0
    """Seeds the order of the problems and the sampling noise of every agent."""
    steps: int = Field(default=100, ge=1)
    """Steps of each agent: rollouts, votes and `loss.updates_per_rollout` updates."""
    threads: int | None = Field(default=None, ge=1)
    """CPU threads shared by all agents on this machine; null takes every core."""

    @field_validator("name")
    @classmethod
    def _names_a_folder(cls, name: str) -> str:
        if name in ("", "..") or Path(name).name != name or not name.isprintable():
            raise ValueError(f"{name!r} cannot be the name of a folder; other folders belong into run.dir")
        return name


class CodeConfig(Section):
    case_seconds: float = Field(default=2.0, gt=0)
    """CPU seconds that a program may take for one case; three times that on the clock."""
    program_seconds: float = Field(default=10.0, gt=0)
    """Seconds on the clock for all cases of a program together."""
    memory_mib: int = Field(default=1024, ge=64)
    """Memory of a program in MiB, as address space."""
    processes: int | None = Field(default=None, ge=1)
    """Programs that each process of an agent runs at the same time; null for one a core."""
    unprotected: bool = False
    """Run programs also where this machine cannot wall them off from its files, network and processes. For machines
    that are a sandbox already."""


class EvaluationConfig(Section):
    every: int = Field(default=50, ge=0)
    """Evaluate on `data.eval` before the first step, every so many steps and after the last; 0 never does, and is
    the default of a run without `data.eval`."""
    samples: int = Field(default=8, ge=0)
    """Sampled answers a problem for avg@k, beside the greedy one; 0 takes the greedy one only."""
    temperature: float = Field(default=1.0, gt=0)
    """Temperature of those samples."""


class CheckpointsConfig(Section):
    every: int = Field(default=50, ge=1)
    """Save every so many steps, and after the last."""
    keep: int = Field(default=2, ge=2)
    """Checkpoints kept of each agent, the best one not counted."""
    background: bool = True
    """Write checkpoints while training goes on, from a copy in host memory of weights and optimizer state; false trains
    on when they are on disk."""
    best_by: Literal["accuracy", "agreement", "vote_share", "last"] = "accuracy"
    """Best checkpoint: highest held-out greedy accuracy; without labels, highest agreement with the supervising vote or
    share of the leading answer; or the last. Without evaluation the default is agreement, or vote_share under
    `cohort.topology=self`."""


class MonitorsConfig(Section):
    stop_on_collapse: bool = False
    """End the run, saved, when an alarm says that training collapses: few answers, answers cut off, or always the same."""
    patience: int = Field(default=10, ge=1)
    """Steps running in which something must be wrong before an alarm says so."""
    parsed_min: float = Field(default=0.5, ge=0, le=1)
    """Least share of completions that hold an answer."""
    truncated_max: float = Field(default=0.1, ge=0, le=1)
    """Share of completions cut off at `rollouts.max_tokens` from which a doubling within 50 steps is an alarm."""
    live_min: float = Field(default=0.2, ge=0, le=1)
    """Least share of groups whose rewards differ."""
    reward_std_min: float = Field(default=0.1, ge=0, le=1)
    """Least standard deviation of rewards within a group, as a share of that of the first steps."""
    constant_max: float = Field(default=0.3, ge=0, le=1)
    """Largest share of one answer among the labels of a step, where it also grew by half since the start."""
    length_factor: float = Field(default=3.0, gt=1)
    """Most by which completions may grow or shrink since the first steps."""
    agreement_min: float = Field(default=0.05, ge=0, le=1)
    """Least agreement of an agent's votes with the supervising ones."""
    agreement_max: float = Field(default=0.98, ge=0, le=1)
    """Most agreement with the supervising votes of another agent."""
    masked_max: float = Field(default=0.1, ge=0, le=1)
    """Largest share of tokens whose importance weight is cut or masked."""


class LoggingConfig(Section):
    trackers: tuple[Literal["tensorboard", "wandb", "trackio"], ...] = ()
    """Experiment trackers that get the metrics beside the run's own JSONL."""
    completions: bool = True
    """Write every completion with its answer, votes and reward to the run's folder, as Parquet."""
    completions_mib: float = Field(default=2048, gt=0)
    """Most that the completions of an agent take, in MiB; those of the oldest steps make room for the newest."""
    token_ids: bool = False
    """Write the token ids of every completion too; not where agents read each other's texts."""
