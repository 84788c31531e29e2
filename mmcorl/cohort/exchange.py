"""Exchange: carries ballots, and in an interaction texts, between agents that share nothing else."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType
from typing import TypeVar

from torch.distributed import Store

from mmcorl.cohort.aside import aside
from mmcorl.cohort.ballots import Ballot
from mmcorl.cohort.heartbeat import Heartbeat
from mmcorl.cohort.messages import (
    LONGEST_TEXT,
    Greeting,
    Message,
    Texts,
    problem_hash,
    require_same_phase,
    require_same_start,
    require_same_step,
)
from mmcorl.cohort.parcels import collect, post
from mmcorl.cohort.sealed import Sealed
from mmcorl.errors import CohortMismatch, PeerLost

T = TypeVar("T", Greeting, Message, Texts)

logger = logging.getLogger(__name__)

_PATIENCE = timedelta(days=7)  # for a living peer; a wait without an end is not to be had
_LONGEST_FAREWELL = 500


@dataclass(frozen=True)
class _Swap:
    """One exchange under way: its number, what it is for, the keys that are waited for, and what comes of it."""

    number: int
    what: str
    incoming: list[str]
    received: Future[dict[str, bytes]]


class Exchange:
    """One agent's place at the table where the cohort's ballots meet.

    Agents go in lockstep: they join, gather step after step, and leave. Each exchange has a number, counted from the
    join; each agent posts a copy of its message for every peer under that number, waits for the peers' copies for
    itself, and removes them once read. So nothing is left behind, and two agents that are at different steps still
    meet and find out.

    A peer that is slow is waited for. One that stops beating is reported by name within `dead_after` seconds, and so is
    a store that is gone or does not answer. Open from construction on; use it as a context manager.

    Args:
        store: Where messages meet; `open_store` gives one.
        agents: All agents of the cohort, in the order that the topology uses.
        agent: The one this object speaks for.
        run: Name of the run, to be the same for all.
        attempt: Names this start of the run. The same for all agents and new at every restart, so that nothing is read
            that an earlier attempt left in the store.
        dead_after: Seconds.
        secret: What messages are sealed with, the same for all agents; see `Sealed`.
    """

    def __init__(
        self,
        store: Store,
        agents: Sequence[str],
        agent: str,
        *,
        run: str,
        attempt: str,
        dead_after: float,
        secret: bytes = b"",
    ) -> None:
        self._agents, self._agent, self._run = tuple(agents), agent, run
        self._peers = [name for name in agents if name != agent]
        self._round = 0
        self._swap: _Swap | None = None
        self.waited = 0.0
        """Seconds spent in waiting for peers so far."""
        # The thread that waits has its own connection, so that this one stays free to end the wait.
        self._store = Sealed(store, secret, f"mmcorl/{attempt}")
        self._waiting_store = self._store.clone()
        self._heartbeat = Heartbeat(self._store, agent, self._peers, dead_after, agents[0])

    def __enter__(self) -> Exchange:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        why = "" if kind is None else f"{kind.__name__}: {error}".partition("\n")[0]
        self.close(why[:_LONGEST_FAREWELL])

    def join(self, problems: str, appear_within: float = 600.0) -> None:
        """Wait until all agents have joined, and check that they start the same thing.

        `problems` is a digest of what they train on. Raises PeerLost when an agent has not been seen after
        `appear_within` seconds (one that has is waited for), and CohortMismatch when runs, cohorts or problems differ.
        """
        greeting = Greeting(self._run, self._agent, self._agents, problems)
        self._start(greeting.to_json(), "joining")
        require_same_start(self._parsed(Greeting.from_json, self._finish(appear_within)))

    def post(
        self, step: int, problem_ids: Sequence[str], ballots: Sequence[Ballot], stop: bool = False
    ) -> None:
        """Send this agent's ballots of a step on their way; `collect` must follow, and much can be done before it.

        `ballots` are in the order of `problem_ids`. `stop` says that this agent was asked to end.
        """
        assert len(ballots) == len(problem_ids)
        hashes = tuple(problem_hash(problem_id) for problem_id in problem_ids)
        own = Message(self._run, step, self._agent, hashes, tuple(ballots), stop)
        self._start(own.to_json(), f"step {step}")

    def collect(self) -> dict[str, Message]:
        """Wait for everybody's ballots of the step that `post` was called for.

        Returns the message of every agent, the own one included, in the cohort's order; when any of them says stop, all
        end after this step. Raises PeerLost, and CohortMismatch when the agents are not at the same problems of the
        same step.
        """
        messages = self._parsed(Message.from_json, self._finish())
        require_same_step(messages)
        return {message.agent: message for message in messages}

    def gather(
        self, step: int, problem_ids: Sequence[str], ballots: Sequence[Ballot], stop: bool = False
    ) -> dict[str, Message]:
        """`post` and `collect`, with nothing in between."""
        self.post(step, problem_ids, ballots, stop)
        return self.collect()

    def gather_texts(
        self, step: int, phase: str, problem_ids: Sequence[str], texts: Sequence[Sequence[str]]
    ) -> dict[str, Texts]:
        """Post this agent's texts of one phase of a step and wait for everybody's.

        `texts` has a row for each of `problem_ids`, all of one length; a text beyond `LONGEST_TEXT` characters is cut
        there, in what the sender itself gets too. Returns and raises as `gather`; a step may have any number of phases.
        """
        assert len(texts) == len(problem_ids)
        hashes = tuple(problem_hash(problem_id) for problem_id in problem_ids)
        rows = tuple(tuple(text[:LONGEST_TEXT] for text in row) for row in texts)
        own = Texts(self._run, step, self._agent, phase, hashes, rows)
        self._start(own.to_json(), f"step {step}, {phase}")
        said = self._parsed(Texts.from_json, self._finish())
        require_same_phase(said)
        return {texts.agent: texts for texts in said}

    def close(self, why: str = "") -> None:
        """Leave, telling the peers `why` if not in good order, and end the heartbeat. Nobody is waited for."""
        self._give_up()
        self._heartbeat.close(why)

    def _start(self, text: str, what: str) -> None:
        """Begin one exchange: post a text for every peer and wait for theirs, on a thread aside."""
        assert self._swap is None
        number = self._round
        self._round += 1
        incoming = {peer: f"{number}/{peer}/{self._agent}" for peer in self._peers}

        def post_and_collect() -> dict[str, bytes]:
            store = self._waiting_store
            for peer in self._peers:
                post(store, f"{number}/{self._agent}/{peer}", text)
            store.wait(list(incoming.values()), _PATIENCE)
            received = {peer: collect(store, key) for peer, key in incoming.items()}
            self._heartbeat.rounds = number + 1
            return received | {self._agent: text.encode()}

        self._swap = _Swap(number, what, list(incoming.values()), aside(post_and_collect))

    def _finish(self, appear_within: float = math.inf) -> dict[str, bytes]:
        """Every agent's text of the exchange that was begun, in the cohort's order."""
        assert self._swap is not None
        started = time.monotonic()
        try:
            received = self._watch(self._swap, appear_within)
        finally:
            self.waited += time.monotonic() - started
            self._give_up()
        return {name: received[name] for name in self._agents}

    def _watch(self, swap: _Swap, appear_within: float) -> dict[str, bytes]:
        """Wait for the other thread, and look around now and then. As this waits in Python, Ctrl-C works."""
        waited, announced = 0.0, False
        while True:
            try:
                return swap.received.result(timeout=self._heartbeat.interval)
            except TimeoutError:
                waited += self._heartbeat.interval
            except RuntimeError as error:  # what torch's stores raise
                raise PeerLost(f"{self._heartbeat.gone(error)}; {swap.what}") from error
            self._raise_for_trouble(swap)
            if unseen := ", ".join(self._heartbeat.unseen()):
                if not announced:
                    logger.info("%s waits for %s to appear", self._agent, unseen)
                    announced = True
                if waited > appear_within:
                    raise PeerLost(
                        f"{unseen} did not appear within {appear_within:g} s; start every agent of the cohort with "
                        "the same cohort.store"
                    )

    def _raise_for_trouble(self, swap: _Swap) -> None:
        if (trouble := self._heartbeat.trouble(swap.number)) is not None:
            raise PeerLost(f"{trouble}; {swap.what}")

    def _give_up(self) -> None:
        """End a wait that still goes on: a thread inside the store at the interpreter's exit would abort the process."""
        swap, self._swap = self._swap, None
        if swap is None or swap.received.done():
            return
        with suppress(RuntimeError, TimeoutError):  # where the store is gone the wait has ended or never will
            for key in swap.incoming:
                self._store.set(key, "")
            swap.received.result(timeout=self._heartbeat.interval)

    def _parsed(self, read: Callable[[bytes], T], texts: dict[str, bytes]) -> list[T]:
        """Every agent's text, read; CohortMismatch for one that is none of ours."""
        parsed = []
        for name, text in texts.items():
            try:
                parsed.append(read(text))
            except ValueError as error:
                raise CohortMismatch(
                    f"agent {name} sent what is not of this version of mmcorl: {error}"
                ) from None
        return parsed
