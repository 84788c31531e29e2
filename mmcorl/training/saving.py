"""Saver: writes checkpoints in a thread, one at a time, while the steps after them go on."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

log = logging.getLogger(__name__)


class Saver:
    """Does what it is given beside the caller, or before it returns where `background` is False.

    An error of that work is raised by the next call of `start`, `check` or `wait`.
    """

    def __init__(self, background: bool) -> None:
        self._thread = ThreadPoolExecutor(1, "saver") if background else None
        self._running: Future[object] | None = None

    def start(self, work: Callable[[], object]) -> None:
        """Begin this work, once the last is done."""
        self.wait()
        if self._thread is None:
            work()
        else:
            self._running = self._thread.submit(work)

    def check(self) -> None:
        """Raise the error of work that failed; does not wait."""
        if self._running is not None and self._running.done():
            self.wait()

    def wait(self) -> None:
        """Until nothing is left to do."""
        running, self._running = self._running, None
        if running is not None:
            running.result()

    def close(self) -> None:
        """Finish, at the end or after an error elsewhere, in whose place one of this work is only logged."""
        running, self._running = self._running, None
        if running is not None and (error := running.exception()) is not None:
            log.error("the last checkpoint was not written: %s", error)
        if self._thread is not None:
            self._thread.shutdown()
