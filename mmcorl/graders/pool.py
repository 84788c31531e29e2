"""Worker processes for symbolic comparison, each with a hard limit on time and memory.

A worker is a plain child process that speaks JSON lines over its pipes: it shares nothing with the trainer, imports
neither torch nor the caller's main module, and can be killed at any moment from any thread.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import sys
import threading

from mmcorl.sandbox.lines import LineProcess, Lost

logger = logging.getLogger(__name__)

STARTUP_SECONDS = 60.0
GRACE_SECONDS = 2.0  # in which a worker that is alive says that it gave up


class Worker:
    """One child process, which takes a second to be ready. Not safe for several threads at once; the pool hands it to one at a time."""

    def __init__(self) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "PYTHONHASHSEED": "0",
        }
        self._process = LineProcess([sys.executable, "-m", "mmcorl.graders.worker"], environment)
        self._ready = False

    def wait(self) -> None:
        """Wait until the worker is ready. Raises Lost."""
        if not self._ready:
            self._process.receive(STARTUP_SECONDS)
            self._ready = True

    def ask(self, a: str, b: str, seconds: float) -> bool | None:
        """The worker's verdict, None if it gave up. Raises Lost, after which the worker must be killed."""
        self.wait()
        self._process.send(json.dumps([a, b, seconds]).encode())
        return {b"true": True, b"false": False}.get(self._process.receive(seconds + GRACE_SECONDS))

    def kill(self) -> None:
        self._process.kill()


class Pool:
    """Up to `workers` processes, started when first needed and replaced when they had to be killed."""

    def __init__(self, workers: int) -> None:
        self.timeouts = 0
        self._slots: queue.LifoQueue[Worker | None] = queue.LifoQueue()
        self._workers = workers
        self._count = threading.Lock()
        for _ in range(workers):
            self._slots.put(None)

    def start(self) -> None:
        """Start a worker without waiting for it, unless one was started before or all are at work."""
        with contextlib.suppress(queue.Empty):
            worker = self._slots.get_nowait()
            self._slots.put(worker or Worker())

    def warm(self) -> None:
        """Start all workers and wait until they are ready."""
        workers = [self._slots.get() or Worker() for _ in range(self._workers)]
        for worker in workers:
            with contextlib.suppress(Lost):  # the first question finds out, and replaces it
                worker.wait()
            self._slots.put(worker)

    def same(self, a: str, b: str, seconds: float) -> bool | None:
        """The workers' verdict on two formulas; None, counted and logged, when one is out of time or memory."""
        worker = self._slots.get() or Worker()
        alive: Worker | None = worker
        try:
            verdict, reason = worker.ask(a, b, seconds), f"more than {seconds:.2g} s, or out of memory"
        except Lost as lost:
            verdict, reason = None, str(lost)
            worker.kill()
            alive = None
        finally:
            self._slots.put(alive)
        if verdict is None:
            with self._count:
                self.timeouts += 1
            logger.warning("comparison given up (%s): %.80r and %.80r", reason, a, b)
        return verdict

    def close(self) -> None:
        """End the workers. Waits for comparisons under way; the pool may be used again, with new workers."""
        for worker in [self._slots.get() for _ in range(self._workers)]:
            if worker is not None:
                worker.kill()
            self._slots.put(None)
