"""A child process that answers lines with lines, each within a time."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence


class Lost(Exception):
    """The process died, or did not answer in time. It must then be killed."""


class LineProcess:
    """A child process with pipes for its standard input and output. Not safe for several threads at once.

    It shares nothing else with this process, leads a session of its own, and can be killed at any moment.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # Ctrl-C is for the trainer, which then closes its workers' pipes
        )
        self._buffer = b""

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, line: bytes) -> None:
        """Write a line, without its end. Raises Lost."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise Lost("the worker is gone") from error

    def receive(self, seconds: float) -> bytes:
        """The next line, without its end. Raises Lost."""
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        deadline = time.monotonic() + seconds
        pieces = [self._buffer]
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while b"\n" not in pieces[-1]:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise Lost(f"no answer within {seconds:g} s")
                pieces.append(os.read(pipe, 65_536))
                if not pieces[-1]:
                    raise Lost("the worker died")
        line, _, self._buffer = b"".join(pieces).partition(b"\n")
        return line

    def kill(self) -> None:
        """End the process, and what it started in its session, at once, and wait for it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
