"""From a configuration to running agents, and back: start them, watch them, stop all of them when one fails."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Literal

from mmcorl.config import Config
from mmcorl.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_PEER_LOST
from mmcorl.files import writing
from mmcorl.training import checkpoints, workers
from mmcorl.training.environment import environment
from mmcorl.training.folders import RunFolder
from mmcorl.training.live import LiveView
from mmcorl.training.opening import opened
from mmcorl.training.workers import Job, Worker

Placement = Literal["here", "ray"]

_TICK_SECONDS = 0.1
_BLAME_SECONDS = 2.0
"""How long to wait, when an agent ends because it lost a peer, for the death that it is about."""


def launch(
    config: Config,
    *,
    agents: Sequence[str] | None = None,
    store: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    placement: Placement = "here",
    worker_module: str = "mmcorl.training.worker",
) -> int:
    """Train the agents of `config` until the last step. Returns the exit code of the command.

    `agents` (all by default) are those that this launcher starts; the others are started elsewhere with the same
    `store` (default `cohort.store`), which the launcher of the cohort's first agent hosts. `placement` is on this
    machine or on those of a Ray cluster. `worker_module` is what each process runs. 0 is a finished run, 1 a failed
    one, 130 one that was interrupted or that an alarm stopped. Raises MmcorlError, before anything is written, when the
    run cannot start.
    """
    names = tuple(agents or config.agents)
    folder = RunFolder.of(config)
    with ExitStack() as stack:
        start = stack.enter_context(_placed(placement, config, names, store or config.cohort.store))
        meeting = stack.enter_context(opened(config, names, store, resume=resume, overwrite=overwrite))
        if meeting is None:
            return 0
        step = meeting.resume_step
        started = time.monotonic()
        interrupts = stack.enter_context(_interrupts())
        crew = start(Job(config, meeting.url, meeting.attempt, step, meeting.secret, worker_module), names)
        try:
            with LiveView(config, names, step) as view:
                failed = _watch(crew, view, interrupts)
        finally:
            workers.stop(crew)
        code = _report(config, names, failed, asked=bool(interrupts))
        seconds = time.monotonic() - started
        note = {"from_step": step or 0, "seconds": seconds, "code": code, "environment": environment()}
        with writing(folder.launches), folder.launches.open("a", encoding="utf-8") as file:
            file.write(json.dumps(note) + "\n")
        if code == 0:
            meeting.part()
    return code


@contextmanager
def _placed(
    placement: Placement, config: Config, names: Sequence[str], store: str
) -> Iterator[Callable[[Job, Sequence[str]], list[Worker]]]:
    """What starts the workers."""
    if placement == "here":
        yield workers.start
        return
    from mmcorl.training.workers_ray import cluster

    with cluster(config, names, store) as start:
        yield start


def _watch(crew: Sequence[Worker], view: LiveView, interrupts: Sequence[int]) -> list[Worker]:
    """Until all have finished, or one has failed or had to be killed. Returns those that failed, the cause first."""
    answered = 0
    while any(worker.code is None for worker in crew):
        if _failed(crew):
            break
        if len(interrupts) > answered:
            answered = len(interrupts)
            if answered > 1:
                return []
            view.say("finishing this step, then saving; Ctrl-C again stops at once")
            for worker in crew:
                if worker.rank == 0 and worker.code is None:
                    worker.process.terminate()
        view.update()
        time.sleep(_TICK_SECONDS)
    failed = _blame(crew)
    if interrupts:
        # A worker that has not begun its first step ends by the very signal that asks it to finish.
        return [worker for worker in failed if worker.code not in (-signal.SIGTERM, EXIT_PEER_LOST)]
    return failed


def _failed(crew: Sequence[Worker]) -> list[Worker]:
    return [worker for worker in crew if worker.code not in (None, 0)]


def _blame(crew: Sequence[Worker]) -> list[Worker]:
    """The failed workers, those that did not merely lose a peer first; the cause may take a moment to end."""
    deadline = time.monotonic() + _BLAME_SECONDS
    while {worker.code for worker in _failed(crew)} == {EXIT_PEER_LOST} and time.monotonic() < deadline:
        time.sleep(_TICK_SECONDS)
    return sorted(_failed(crew), key=lambda worker: worker.code == EXIT_PEER_LOST)


def _report(config: Config, names: Sequence[str], failed: Sequence[Worker], asked: bool) -> int:
    """Say how the run ended, and return the exit code. `asked` tells whether it was interrupted here."""
    folder = RunFolder.of(config)
    saved = checkpoints.common_step(folder.checkpoints(name) for name in names)
    if not failed and saved == config.run.steps:
        print(f"{folder.path} is complete: {config.run.steps} steps")
        return 0
    advice = (
        "nothing is saved yet" if saved is None else f"step {saved} is saved; --resume continues from there"
    )
    if not failed:
        by_alarm = config.monitors.stop_on_collapse and not asked
        how = "stopped at an alarm (monitors.stop_on_collapse)" if by_alarm else "was interrupted"
        print(f"{folder.path} {how}: {advice}", file=sys.stderr)
        return EXIT_INTERRUPTED
    cause, *also = [worker for worker in failed if worker.code != EXIT_PEER_LOST] or failed[:1]
    dead = dict.fromkeys(
        f"{worker.agent} {worker.how_it_ended()}." for worker in also if worker.agent != cause.agent
    )
    others = [name for name in names if name not in {cause.agent, *(worker.agent for worker in also)}]
    stopped = [f"{', '.join(others)} stopped."] if others else []
    lines = [f"error: {cause.last_words()}", *dead, *stopped, f"{folder.path}: {advice}"]
    print("\n".join(lines), file=sys.stderr)
    return EXIT_FAILED


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """A list that grows by one with every Ctrl-C and SIGTERM, instead of their usual effect."""
    received: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        received.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
