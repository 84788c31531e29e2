"""Agents on one device take turns, so that only one of them holds activations and a key-value cache at a time."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import torch

from mmcorl.training.world import World


class Turns:
    """The right of an agent to compute on its devices. Weights stay where they are between turns.

    The first rank holds a lock for each device, taken in one order by all agents, and the others wait for its word. The
    system lets go of the locks of a process that dies.
    """

    def __init__(self, folder: Path, devices: Sequence[int], world: World) -> None:
        self._locks = [folder / f".device-{device}.lock" for device in sorted(set(devices))]
        self._world = world

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Wait for the turn, and hold it while open. All ranks open it together, and none waits for a peer inside."""
        with ExitStack() as stack:
            if self._world.is_first:
                for path in self._locks:
                    fcntl.flock(stack.enter_context(path.open("w")), fcntl.LOCK_EX)
            self._world.broadcast(None)
            yield
            if self._world.device.type == "cuda":
                torch.cuda.empty_cache()  # what this process holds unused is the next one's
            self._world.broadcast(None)  # all ranks have finished
