"""Rollouts that were sampled one step ahead, and how a checkpoint keeps them.

They come from the weights before the step's update, which the checkpoint no longer has, so they are written down.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mmcorl.errors import MmcorlError
from mmcorl.problems import Completion, Problem, RolloutGroup

_FILE = "ahead.json"


@dataclass(frozen=True)
class Ahead:
    """This rank's rollouts for `step`, from the weights of the step before."""

    step: int
    rollouts: list[RolloutGroup]

    def completions(self) -> list[list[dict[str, Any]]]:
        """The completions of each of this rank's problems, as JSON."""
        return [[asdict(completion) for completion in group.completions] for group in self.rollouts]


def write_ahead(folder: Path, step: int, completions: Sequence[Sequence[Any]]) -> None:
    """Write the completions of all problems of `step`, from all ranks, into a checkpoint's folder."""
    text = json.dumps({"step": step, "completions": completions})
    (folder / _FILE).write_text(text, encoding="utf-8")


def read_ahead(folder: Path) -> tuple[int, list[list[Completion]]] | None:
    """The step and the completions of each of its problems, as written; None where nothing was sampled ahead.

    Raises MmcorlError when the file is damaged.
    """
    path = folder / _FILE
    if not path.exists():
        return None
    try:
        match json.loads(path.read_text(encoding="utf-8")):
            case {"step": int(step), "completions": list(rows)}:
                return step, [[_completion(**fields) for fields in row] for row in rows]
        raise ValueError("not rollouts")
    except (ValueError, TypeError) as error:
        raise MmcorlError(
            f"{path} cannot be read ({error}); remove its checkpoint to resume from the one before"
        ) from None


def groups_of(problems: Sequence[Problem], completions: Sequence[Sequence[Completion]]) -> list[RolloutGroup]:
    """Rollouts again, of problems and their completions."""
    return [RolloutGroup(p, tuple(row)) for p, row in zip(problems, completions, strict=True)]


def _completion(text: str, token_ids: list[int], logprobs: list[float], finished: bool) -> Completion:
    return Completion(text, tuple(token_ids), tuple(logprobs), finished)
