"""One rank of an agent whose ranks somebody else starts: torchrun, `accelerate launch` or srun, on one node or several.

What the launcher does for workers of its own, the agent's first rank does here: it meets the cohort's other launchers,
makes the run's folder ready, and tells the other ranks. Watching the ranks is left to who started them.
"""

from __future__ import annotations

import os
from contextlib import ExitStack

from mmcorl.config import Config
from mmcorl.errors import MmcorlError
from mmcorl.training import checkpoints
from mmcorl.training.folders import RunFolder
from mmcorl.training.opening import opened
from mmcorl.training.run import run_agent
from mmcorl.training.world import World

_NEEDED = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def train_as_rank(config: Config, name: str, *, store: str | None, resume: bool, overwrite: bool) -> None:
    """Train agent `name` as one of its ranks; `store`, `resume` and `overwrite` are those of `launch`.

    Raises MmcorlError where this process is no rank of that agent, or does not see the run's folder.
    """
    _require_ranks(config, name)
    with ExitStack() as stack:
        world, meeting, told = World(), None, None
        if world.is_first:
            try:
                meeting = stack.enter_context(
                    opened(config, [name], store, resume=resume, overwrite=overwrite)
                )
                told = meeting and [meeting.url, meeting.attempt, meeting.resume_step]
            except MmcorlError as error:
                world.broadcast({"refused": str(error)})
                raise
        told = world.broadcast(told)
        if isinstance(told, dict):
            raise MmcorlError(f"{name}'s first rank: {told['refused']}")
        if told is None:
            return
        url, attempt, step = told
        _require_folder(config, name, step)
        secret = meeting.secret if meeting is not None else b""
        run_agent(config, name, store=url, attempt=attempt, secret=secret, resume_step=step)
        if meeting is not None:
            meeting.part()


def _require_ranks(config: Config, name: str) -> None:
    missing = [variable for variable in _NEEDED if variable not in os.environ]
    if missing:
        raise MmcorlError(
            f"{', '.join(missing)} is not set, so that this is no rank of {name}; start it with torchrun or accelerate "
            "launch (docs/cluster.md), or use mmcorl-train"
        )
    agent, started = config.agents[name], int(os.environ["WORLD_SIZE"])
    if started != agent.ranks:
        raise MmcorlError(
            f"{started} ranks were started and agents.{name}.ranks={agent.ranks}; make them equal"
        )
    if agent.devices is not None:
        raise MmcorlError(
            f"agents.{name}.devices={list(agent.devices)} is for mmcorl-train; here each rank takes the GPU of its "
            "LOCAL_RANK: make it null, and set CUDA_VISIBLE_DEVICES where a node's GPUs are shared"
        )


def _require_folder(config: Config, name: str, step: int | None) -> None:
    """Raise MmcorlError where a rank does not see what the first one has: it resumes from the same checkpoint."""
    home = RunFolder.of(config).checkpoints(name)
    seen = home if step is None else checkpoints.step_folder(home, step)
    if not seen.is_dir():
        raise MmcorlError(
            f"{seen} is not on this node; put run.dir on a file system that all nodes of {name} share"
        )
