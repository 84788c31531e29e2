"""Heartbeats: every agent shows that it lives, and watches the others do so."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from mmcorl.cohort.sealed import Sealed

_BEATS = 10  # in `dead_after` seconds
_SILENT_BEATS = 8  # after so many without a sign the verdict falls, which leaves time to deliver it


@dataclass
class _Sign:
    """The last that was seen of a peer, its beat number `beats`. `silent` counts the own beats since then.

    `farewell` is None as long as the peer stays; then why it left, "" in good order.
    """

    beats: int
    rounds: int
    farewell: str | None
    silent: int = 0


class Heartbeat:
    """A thread that writes this agent's sign of life and reads its peers', some times in `dead_after` seconds.

    It has a connection to the store of its own, as one that waits for a key cannot be shared. Time is counted in own
    beats and not by the clock: a machine that was suspended does not take its peers for dead when it wakes.

    `rounds` is how many exchanges this agent has completed, told to the peers with each beat. `host` is the agent beside
    which a TCP store is.
    """

    def __init__(self, store: Sealed, agent: str, peers: Sequence[str], dead_after: float, host: str) -> None:
        self.rounds = 0
        self.interval = dead_after / _BEATS
        self._store = store.clone()
        self._agent, self._peers = agent, peers
        self._hosted = "" if host == agent else f"; a tcp store is where agent {host} was started"
        self._signs: dict[str, _Sign] = {}
        self._farewell: str | None = None
        self._unanswered = 0
        self._failure: Exception | None = None
        self._awake, self._ending = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"heartbeat-{agent}", daemon=True)
        self._thread.start()

    def close(self, why: str = "") -> None:
        """Tell the peers that this agent posts nothing more, in good order or `why`, and end the thread.

        A store that does not answer is not waited for.
        """
        if self._farewell is None:
            self._farewell = why
        self._ending.set()
        self._awake.set()
        self._thread.join(timeout=self.interval)

    def unseen(self) -> list[str]:
        """The peers that have never shown up."""
        return [peer for peer in self._peers if peer not in self._signs]

    def gone(self, error: Exception) -> str:
        """What to say of a store that raised `error`."""
        return f"the cohort's store is gone ({first_line(error)}{self._hosted})"

    def trouble(self, awaited: int) -> str | None:
        """Why the peers' posts of exchange number `awaited` will not all come, or None as long as they may.

        To be asked once in each `interval` of waiting.
        """
        self._unanswered += 1
        if isinstance(self._failure, ValueError):
            return first_line(self._failure)
        if self._failure is not None:
            return self.gone(self._failure)
        if self._unanswered > _SILENT_BEATS:
            return f"the cohort's store does not answer (within {self._unanswered * self.interval:.3g} s{self._hosted})"
        signs = list(self._signs.items())
        for peer, sign in signs:
            if sign.farewell is None and sign.silent >= _SILENT_BEATS:
                return f"agent {peer} has given no sign of life for {sign.silent * self.interval:.3g} s"
        for peer, sign in signs:
            # In good order an agent leaves when all have come and it has read what all have posted.
            if sign.farewell is not None and (sign.rounds <= awaited or self.unseen()):
                return f"agent {peer} has left the cohort" + (f" ({sign.farewell})" if sign.farewell else "")
        return None

    def _run(self) -> None:
        beats = 0
        try:
            while True:
                ending = self._ending.is_set()
                self._store.set(f"beat/{self._agent}", json.dumps([beats, self.rounds, self._farewell]))
                if ending:
                    return
                for peer in self._peers:
                    self._look_at(peer)
                self._unanswered = 0
                beats += 1
                self._awake.wait(self.interval)
                self._awake.clear()
        except (RuntimeError, ValueError) as error:  # torch's stores raise the one, a foreign text the other
            self._failure = error

    def _look_at(self, peer: str) -> None:
        key = f"beat/{peer}"
        if not self._store.check([key]):
            return
        text = self._store.get(key)
        match json.loads(text):
            case [int(beats), int(rounds), str() | None as farewell]:
                known = self._signs.get(peer)
                if known is not None and known.beats >= beats:  # an older one was put back by a stranger
                    known.silent += 1
                else:
                    self._signs[peer] = _Sign(beats, rounds, farewell)
            case _:
                raise ValueError(f"not a heartbeat of {peer}: {text!r}")


def first_line(error: Exception) -> str:
    """What a store's error says, without the C++ frames below it."""
    return str(error).partition("\n")[0]
