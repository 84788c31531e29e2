"""Sandbox: a pool of workers that run programs at the same time."""

from __future__ import annotations

import dataclasses
import json
import os
import queue
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from mmcorl.errors import MmcorlError
from mmcorl.sandbox.lines import LineProcess, Lost
from mmcorl.sandbox.programs import Limits, Outcome, Program

_STARTUP_SECONDS = 60.0
_SLACK_SECONDS = 30.0  # for a worker on a busy machine, beyond what its program may take

# The hash seed makes the order of sets, and so what programs put out, the same in every worker; with -I it would be
# ignored. This environment is all that the interpreter sees, so that nothing is left of what -I keeps out.
_ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUTF8": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); from mmcorl.sandbox.server import main; "
    "del sys.path[0]; main(*sys.argv[2:])"
)
_ROOT = Path(__file__).parents[2]


class Sandbox:
    """Runs programs behind walls, `workers` at a time; safe to use from several threads.

    Workers are started when first needed, and replaced when they die. `close` (or leaving the `with` block) ends them.

    Args:
        limits: What each program may use; None for the defaults.
        workers: Programs that run at the same time; None for one a core.
    """

    def __init__(self, limits: Limits | None = None, workers: int | None = None) -> None:
        self.limits = limits or Limits()
        self.workers = workers or (len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1)
        self._slots: queue.LifoQueue[_Worker | None] = queue.LifoQueue()
        for _ in range(self.workers):
            self._slots.put(None)

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def warm(self) -> None:
        """Start the workers that are not there. Raises MmcorlError where this machine cannot raise the walls."""
        workers = [self._slots.get() for _ in range(self.workers)]
        try:
            workers[0] = workers[0] or _Worker(
                self.limits
            )  # before the others: where one may not be, none may
            with ThreadPoolExecutor(self.workers) as threads:
                workers = list(threads.map(lambda worker: worker or _Worker(self.limits), workers))
        finally:
            for worker in workers:
                self._slots.put(worker)

    def run(self, programs: Sequence[Program]) -> list[list[Outcome]]:
        """The outcomes of every program's cases, in order. A slow program keeps one worker busy and no other.

        Raises MmcorlError where this machine cannot raise the walls.
        """
        if len(programs) < 2 or self.workers == 1:
            return [self._run(program) for program in programs]
        with ThreadPoolExecutor(self.workers) as threads:
            return list(threads.map(self._run, programs))

    def close(self) -> None:
        """End the workers. Waits for programs under way; the sandbox may be used again, with new workers."""
        for worker in [self._slots.get() for _ in range(self.workers)]:
            if worker is not None:
                worker.close()
            self._slots.put(None)

    def _run(self, program: Program) -> list[Outcome]:
        worker = self._slots.get()
        try:
            worker = worker or _Worker(self.limits)
            return worker.run(program)
        except Lost as reason:
            if worker is not None:
                worker.close()
            worker = None
            return [Outcome("killed", f"the worker was lost: {reason}")] * len(program.cases)
        finally:
            self._slots.put(worker)


def run_programs(
    programs: Sequence[Program], limits: Limits | None = None, workers: int | None = None
) -> list[list[Outcome]]:
    """The outcomes of every program's cases, in order, in a sandbox for this one call. See `Sandbox`."""
    with Sandbox(limits, workers) as sandbox:
        return sandbox.run(programs)


class _Worker:
    """One server process with its scratch folder. The pool hands it to one thread at a time."""

    def __init__(self, limits: Limits) -> None:
        if sys.platform != "linux":
            raise MmcorlError(
                f"programs run only in a Linux sandbox, and this is {sys.platform}; leave code problems out"
            )
        self._patience = limits.program_seconds + _SLACK_SECONDS
        self._folder = tempfile.TemporaryDirectory(prefix="mmcorl-sandbox-")
        scratch = Path(self._folder.name) / "scratch"
        scratch.mkdir()
        settings = json.dumps(dataclasses.asdict(limits))
        command = [sys.executable, "-s", "-P", "-c", _START, str(_ROOT), str(scratch), settings]
        self._process = LineProcess(command, _ENVIRONMENT)
        try:
            missing = json.loads(self._process.receive(_STARTUP_SECONDS))
        except Lost as reason:
            self.close()
            raise MmcorlError(f"the sandbox does not start: {reason}") from None
        if missing:
            self.close()
            raise MmcorlError(
                f"this machine cannot run programs safely: {'; '.join(missing)}. "
                "Run code problems on another one, or accept the risk with code.unprotected=true"
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def run(self, program: Program) -> list[Outcome]:
        """Raises Lost, after which the worker must be closed."""
        self._process.send(json.dumps(dataclasses.asdict(program)).encode())
        answer = json.loads(self._process.receive(self._patience))
        return [Outcome(status, value) for status, value in answer]

    def close(self) -> None:
        self._process.kill()
        self._folder.cleanup()
