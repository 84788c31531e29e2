"""How the launchers of one cohort find each other: one on each machine, or a single one with every agent.

The launcher of the cohort's first agent hosts the store and makes up the attempt, a word that tells this start of
the run from an earlier one. Every launcher then posts what it brings (the settings that all must share, and the
steps that each of its agents can resume from), and reads what the others brought.

All that is posted bears the cohort's seal. So that nobody can lead a launcher astray with what was recorded at an
earlier start, each brings a word of its own that it has just made up, and the host repeats the words of all.
"""

from __future__ import annotations

import json
import secrets
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mmcorl.cohort.heartbeat import first_line
from mmcorl.cohort.sealed import Sealed, read_secret, require_secret
from mmcorl.cohort.store import is_reached_from_elsewhere, open_store
from mmcorl.config import Config
from mmcorl.errors import CohortMismatch, MmcorlError, PeerLost
from mmcorl.training import checkpoints
from mmcorl.training.folders import RunFolder
from mmcorl.training.starting import leaves

_SHARED = (
    "run.seed",
    "run.steps",
    "data.train.scenes*",
    "data.train.limit",
    "rollouts.problems_per_step",
    "cohort.topology",
    "cohort.threshold",
    "cohort.ties",
    "cohort.weigh",
    "reward.rule",
)
"""Settings, as patterns, without which agents would not vote on the same problems by the same rules."""

_ATTEMPT = "attempt"
_HOST_WITHIN_SECONDS = 3600.0
_PATIENCE_SECONDS = 2.0
_READ_WITHIN_SECONDS = 5.0
"""A launcher that has read and left may have taken a file store along, with its word that it had."""
_LOOK_SECONDS = 0.1


class Meeting:
    """The launchers of one cohort, in agreement. Open it with `meet`.

    `url` is where this machine's agents find the store, `attempt` what they call this start of the run, `secret` what
    their messages are sealed with, and `resume_step` the last step that all agents of the cohort have saved (None to
    start from the beginning).
    """

    def __init__(self, config: Config, names: Sequence[str], url: str, resume: bool) -> None:
        self._names, self._everyone, self.attempt = names, tuple(config.agents), ""
        self._word = secrets.token_hex(16)
        self.secret = _secret(config, names, url)
        self._hosts = self._everyone[0] in names
        self._file = Path(urlsplit(url).path) if url.startswith("file:") and self._hosts else None
        if not self._hosts:
            print(f"looking for the store that {self._everyone[0]}'s machine hosts at {url}", file=sys.stderr)
        store, self.url = open_store(url, self._hosts, _HOST_WITHIN_SECONDS)
        self._store = Sealed(store, self.secret, "launchers")
        try:
            brought = self._gather(config, resume)
        except RuntimeError as error:  # what torch's stores raise
            raise PeerLost(
                f"{self._everyone[0]}, which hosts the cohort's store, has left ({first_line(error)})"
            ) from None
        self.resume_step = self._agree(brought, resume)

    def part(self) -> None:
        """Say that this machine's agents have finished. The host of the store stays until all have."""
        with suppress(RuntimeError):  # a host that is gone needs no farewell
            for name in self._names:
                self._store.set(self._key("done", name), "1")
            if self._hosts:
                self._wait({name: self._key("done", name) for name in self._everyone}, "to finish")

    def close(self) -> None:
        """Take away a store that is a file."""
        if self._file:
            self._file.unlink(missing_ok=True)

    def _gather(self, config: Config, resume: bool) -> dict[str, Any]:
        """What the launcher of every agent brings: the settings that all must share, and the steps it has saved."""
        shared = {"agents": list(self._everyone), "--resume": resume} | {
            key: value
            for key, value in leaves(config).items()
            if any(fnmatch(key, pattern) for pattern in _SHARED)
        }
        saved = {name: checkpoints.steps(RunFolder.of(config).checkpoints(name)) for name in self._names}
        while True:
            if self._hosts:
                self._store.set(_ATTEMPT, secrets.token_hex(8))
            else:
                self._wait({self._everyone[0]: _ATTEMPT}, "to start")
            self.attempt = self._store.get(_ATTEMPT).decode()
            for name, steps in saved.items():
                brings = {"shared": shared, "steps": steps, "word": self._word}
                self._store.set(self._key("brings", name), json.dumps(brings))
            if (brought := self._collect()) is not None:
                return brought

    def _collect(self) -> dict[str, Any] | None:
        """Wait for all. None, at a guest, when the attempt was that of an earlier host, left behind in a file."""
        brings = {name: self._key("brings", name) for name in self._everyone}
        what = f"to be started (mmcorl-train CONFIG --agent NAME --store {self.url})"
        self._wait(brings, what)
        if self._hosts:
            brought = self._read(brings)
            self._store.set(_ATTEMPT, "")
            self._store.set(
                self._key("heard", "all"), json.dumps([given["word"] for given in brought.values()])
            )
        else:
            self._wait({self._everyone[0]: self._key("heard", "all")}, what)
            if self._outdated():
                return None
            if self._word not in json.loads(self._store.get(self._key("heard", "all"))):
                raise CohortMismatch(
                    f"what answers at {self.url} repeats an earlier start of the run, of which {self._names[0]} was no "
                    "part; start all agents again, and look who else reaches cohort.store"
                )
            brought = self._read(brings)
        for name in self._names:
            self._store.set(self._key("knows", name), "1")
        if self._hosts:  # which may leave over what it has read, and take the store along
            knows = {name: self._key("knows", name) for name in self._everyone}
            self._wait(knows, "to read the settings", _READ_WITHIN_SECONDS)
        return brought

    def _agree(self, brought: Mapping[str, Any], resume: bool) -> int | None:
        """See that what all have brought fits. The step to resume."""
        me = self._names[0]
        for name in self._everyone:
            _require_equal(brought[me]["shared"], brought[name]["shared"], me, name)
        common = set.intersection(*(set(given["steps"]) for given in brought.values()))
        return max(common, default=None) if resume else None

    def _read(self, keys: Mapping[str, str]) -> dict[str, Any]:
        return {name: json.loads(self._store.get(key)) for name, key in keys.items()}

    def _there(self, key: str) -> bool:
        """Whether a launcher has put something under `key`; nothing counts as not there, and a forgery raises."""
        return self._store.check([key]) and self._store.get(key) != b""

    def _key(self, what: str, name: str) -> str:
        return f"{self.attempt}/{what}/{name}"

    def _wait(self, keys: Mapping[str, str], what: str, at_most: float = float("inf")) -> None:
        """Until the store has every agent's key, or another attempt, or `at_most` seconds. Says once for whom it waits.

        It waits in Python, where Ctrl-C works.
        """
        started, said = time.monotonic(), False
        while missing := [name for name, key in keys.items() if not self._there(key)]:
            if self._outdated() or time.monotonic() - started > at_most:
                return
            if not said and time.monotonic() - started > _PATIENCE_SECONDS:
                print(f"waiting for {', '.join(missing)} {what}; Ctrl-C leaves", file=sys.stderr, flush=True)
                said = True
            time.sleep(_LOOK_SECONDS)

    def _outdated(self) -> bool:
        """Whether a host has begun an attempt after the one that was read."""
        return self._there(_ATTEMPT) and self._store.get(_ATTEMPT).decode() not in ("", self.attempt)


@contextmanager
def meet(config: Config, names: Sequence[str], url: str, resume: bool) -> Iterator[Meeting]:
    """Host or join the store at `url` for the agents `names`, and agree with the other launchers.

    Waits, and says so, until every agent of the cohort has a launcher. Raises MmcorlError when the store cannot be
    had, PeerLost when its host leaves, CohortMismatch when launchers were started with different settings.
    """
    if url.startswith("memory:"):
        raise MmcorlError(
            f"cohort.store={url} is for threads, and agents are processes; use tcp://host:port or file:///path"
        )
    meeting = Meeting(config, names, url, resume)
    try:
        yield meeting
    finally:
        meeting.close()


def _secret(config: Config, names: Sequence[str], url: str) -> bytes:
    """What this cohort's messages are sealed with: the secret of its file, or one made up where all agents are here.

    Launchers that meet on one machine need none; its users are trusted as far as the store's port goes.
    """
    if config.cohort.secret_file is not None:
        return read_secret(config.cohort.secret_file)
    if set(names) == set(config.agents):
        return secrets.token_bytes(32)
    if is_reached_from_elsewhere(url):
        raise require_secret(url)
    return b""


def _require_equal(mine: Mapping[str, Any], theirs: Mapping[str, Any], me: str, other: str) -> None:
    for key, value in mine.items():
        if theirs.get(key) != value:
            raise CohortMismatch(
                f"{me} was started with {key}={value} and {other} with {key}={theirs.get(key)}; "
                "start all agents of a cohort with the same settings"
            )
