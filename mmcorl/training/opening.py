"""The opening of a run at one launcher: what it finds is checked, the cohort's launchers meet, the folder is made ready."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from mmcorl.config import Config
from mmcorl.config_loading import load_config, to_yaml
from mmcorl.errors import MmcorlError
from mmcorl.files import write_whole, writing
from mmcorl.training import checkpoints, starting
from mmcorl.training.folders import RunFolder
from mmcorl.training.rendezvous import Meeting, meet


@contextmanager
def opened(
    config: Config, names: Sequence[str], store: str | None, *, resume: bool, overwrite: bool
) -> Iterator[Meeting | None]:
    """The meeting of a start of the run for the agents `names`, whose folders are ready and held; None if all is done.

    `store` is where the launchers meet, by default `cohort.store`. Raises MmcorlError, before anything is written,
    when the run cannot start.
    """
    folder = RunFolder.of(config)
    if resume:
        if not folder.config.exists():
            raise MmcorlError(f"{folder.path} holds no run to resume; start it without --resume")
        starting.require_same(load_config(folder.config), config)
        starting.require_readable(folder, names)
    elif not overwrite:
        starting.require_new(config, names)

    with ExitStack() as stack:
        meeting = stack.enter_context(meet(config, names, store or config.cohort.store, resume))
        step = meeting.resume_step
        if resume and step is None:
            raise MmcorlError(
                f"{folder.path} has no checkpoint that all agents completed; start again with --overwrite"
            )
        if step is not None and step >= config.run.steps:
            print(f"{folder.path} is complete: step {step} of {config.run.steps}")
            yield None
            return
        if step is not None:
            starting.require_whole(folder, names, step)
        with writing(folder.path):
            stack.enter_context(starting.locked(folder, names))
            _prepare(config, names, step)
        yield meeting


def _prepare(config: Config, names: Sequence[str], step: int | None) -> None:
    """Make the run's folder what it was after `step`, or empty, for these agents."""
    folder = RunFolder.of(config)
    if step is None:
        starting.clear(config, names)
    else:
        for name in names:
            checkpoints.drop_after(folder.checkpoints(name), step)
    for name in names:
        folder.checkpoints(name).mkdir(exist_ok=True)  # tells peers that this agent's are on this machine
        folder.phase(name).unlink(missing_ok=True)
    folder.logs.mkdir(exist_ok=True)
    write_whole(folder.config, to_yaml(config))
