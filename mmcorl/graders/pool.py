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
import selectors
import subprocess
import sys
import threading
import time

logger = logging.getLogger(__name__)

STARTUP_SECONDS = 60.0


class Lost(Exception):
    """A worker ran out of time or died while it had a question. Never leaves the graders."""


class Worker:
    """One child process, which takes a second to be ready. Not safe for several threads at once; the pool hands it to one at a time."""

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "PYTHONHASHSEED": "0",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "mmcorl.graders.worker", str(timeout_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # Ctrl-C is for the trainer, which then closes its workers' pipes
        )
        self._buffer = b""
        self._ready = False

    def ask(self, a: str, b: str) -> bool:
        """The worker's verdict. Raises Lost, after which the worker must be killed."""
        assert self._process.stdin is not None
        if not self._ready:
            self._line(STARTUP_SECONDS)
            self._ready = True
        try:
            self._process.stdin.write(json.dumps([a, b]).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise Lost("the worker is gone") from error
        return self._line(self.timeout_s) == b"true"

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def _line(self, seconds: float) -> bytes:
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        deadline = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise Lost(f"no answer within {seconds:g} s")
                chunk = os.read(pipe, 4096)
                if not chunk:
                    raise Lost("the worker died")
                self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line


class Pool:
    """Up to `workers` processes, started when first needed and replaced when they had to be killed."""

    def __init__(self, workers: int, timeout_s: float) -> None:
        self.timeout_s = timeout_s
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
            self._slots.put(worker or Worker(self.timeout_s))

    def same(self, a: str, b: str) -> bool:
        """The workers' verdict on two formulas; False, counted and logged, when a worker times out or dies."""
        worker = self._slots.get()
        try:
            if worker is None:
                worker = Worker(self.timeout_s)
            return worker.ask(a, b)
        except Lost as reason:
            with self._count:
                self.timeouts += 1
            logger.warning("comparison given up (%s): %.80r and %.80r", reason, a, b)
            if worker is not None:
                worker.kill()
                worker = None
            return False
        finally:
            self._slots.put(worker)

    def close(self) -> None:
        """End the workers. Waits for comparisons under way; the pool may be used again, with new workers."""
        for worker in [self._slots.get() for _ in range(self._workers)]:
            if worker is not None:
                worker.kill()
            self._slots.put(None)
