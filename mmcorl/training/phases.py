"""The phases of a step: how long each took, and which one goes on."""

from __future__ import annotations

import time
from collections.abc import Callable

PHASES = ("rollout", "grading", "exchange", "signal", "update")
"""All that a step can have, in the order in which they first begin."""


class Phases:
    """Seconds of each phase of one step; `tell` is called with the name of each as it begins."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell, self._seconds = tell, dict[str, float]()
        self._phase, self._since = "", time.monotonic()

    def enter(self, phase: str) -> None:
        """End the phase that goes on, and begin another; a phase may come back."""
        now = time.monotonic()
        if self._phase:
            self._seconds[self._phase] = self._seconds.get(self._phase, 0.0) + now - self._since
        self._phase, self._since = phase, now
        if phase:
            self._tell(phase)

    def end(self) -> dict[str, float]:
        """End the last phase. Seconds by phase, in the order in which they began."""
        self.enter("")
        return self._seconds
