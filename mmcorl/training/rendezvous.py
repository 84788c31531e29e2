"""How the launchers of one cohort find each other: one on each machine, or a single one with every agent.

The launcher of the cohort's first agent hosts the store and makes up the attempt, a word that tells this start of
the run from an earlier one. Every launcher then posts what it brings (the settings that all must share, and the
steps that each of its agents can resume from), and reads what the others brought.
"""

from __future__ import annotations

import json
import secrets
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mmcorl.cohort.store import open_store
from mmcorl.config import Config
from mmcorl.errors import CohortMismatch
from mmcorl.training import checkpoints
from mmcorl.training.folders import RunFolder
from mmcorl.training.starting import leaves

_SHARED = (
    "run.seed",
    "run.steps",
    "rollouts.problems_per_step",
    "cohort.topology",
    "cohort.threshold",
    "cohort.ties",
    "reward.rule",
)
_ATTEMPT = "launchers/attempt"
_HOST_WITHIN_SECONDS = 3600.0
_PATIENCE_SECONDS = 2.0
_LOOK_SECONDS = 0.1


class Meeting:
    """The launchers of one cohort, in agreement. Open it with `meet`.

    `url` is where this machine's agents find the store, `attempt` what they call this start of the run, and
    `resume_step` the last step that all agents of the cohort have saved (None to start from the beginning).
    """

    def __init__(self, config: Config, names: Sequence[str], url: str, resume: bool) -> None:
        self._names, self._everyone = names, tuple(config.agents)
        self._hosts = self._everyone[0] in names
        self._file = Path(urlsplit(url).path) if url.startswith("file:") and self._hosts else None
        if not self._hosts:
            print(f"looking for the store that {self._everyone[0]}'s machine hosts at {url}", file=sys.stderr)
        self._store, self.url = open_store(url, self._hosts, _HOST_WITHIN_SECONDS)
        self.attempt = self._agree_on_attempt()
        self.resume_step = self._agree(config, resume)
        if self._hosts:
            self._store.delete_key(
                _ATTEMPT
            )  # in a file it would outlive this run, and mislead who joins the next

    def part(self) -> None:
        """Say that this machine's agents have finished. The host of the store stays until all have."""
        with suppress(RuntimeError):  # what torch's stores raise: a host that is gone needs no farewell
            for name in self._names:
                self._store.set(self._key("done", name), "1")
            if self._hosts:
                self._wait({name: self._key("done", name) for name in self._everyone}, "to finish")

    def close(self) -> None:
        """Take away a store that is a file."""
        if self._file:
            self._file.unlink(missing_ok=True)

    def _agree_on_attempt(self) -> str:
        if self._hosts:
            self._store.set(_ATTEMPT, secrets.token_hex(4))
        else:
            self._wait({self._everyone[0]: _ATTEMPT}, "to start")
        return self._store.get(_ATTEMPT).decode()

    def _agree(self, config: Config, resume: bool) -> int | None:
        """Bring the settings and saved steps of this machine's agents, and see that all fit. The step to resume."""
        settings = leaves(config)
        shared = {"agents": list(self._everyone), "--resume": resume} | {
            key: settings[key] for key in _SHARED
        }
        for name in self._names:
            saved = checkpoints.steps(RunFolder.of(config).checkpoints(name))
            self._store.set(self._key("brings", name), json.dumps({"shared": shared, "steps": saved}))
        keys = {name: self._key("brings", name) for name in self._everyone}
        self._wait(keys, f"to be started (mmcorl-train CONFIG --agent NAME --store {self.url})")
        brought = {name: json.loads(self._store.get(key)) for name, key in keys.items()}
        for name in self._everyone:
            _require_equal(shared, brought[name]["shared"], self._names[0], name)
        common = set.intersection(*(set(given["steps"]) for given in brought.values()))
        return max(common, default=None) if resume else None

    def _key(self, what: str, name: str) -> str:
        return f"launchers/{self.attempt}/{what}/{name}"

    def _wait(self, keys: Mapping[str, str], what: str) -> None:
        """Until the store has every agent's key. Waits in Python, where Ctrl-C works, and says once for whom."""
        started, said = time.monotonic(), False
        while missing := [name for name, key in keys.items() if not self._store.check([key])]:
            if not said and time.monotonic() - started > _PATIENCE_SECONDS:
                print(f"waiting for {', '.join(missing)} {what}; Ctrl-C leaves", file=sys.stderr, flush=True)
                said = True
            time.sleep(_LOOK_SECONDS)


@contextmanager
def meet(config: Config, names: Sequence[str], url: str, resume: bool) -> Iterator[Meeting]:
    """Host or join the store at `url` for the agents `names`, and agree with the other launchers.

    Waits, and says so, until every agent of the cohort has a launcher. Raises MmcorlError when the store cannot be
    had, CohortMismatch when launchers were started with different settings.
    """
    meeting = Meeting(config, names, url, resume)
    try:
        yield meeting
    finally:
        meeting.close()


def _require_equal(mine: Mapping[str, Any], theirs: Mapping[str, Any], me: str, other: str) -> None:
    for key, value in mine.items():
        if theirs.get(key) != value:
            raise CohortMismatch(
                f"{me} was started with {key}={value} and {other} with {key}={theirs.get(key)}; "
                "start all agents of a cohort with the same settings"
            )
