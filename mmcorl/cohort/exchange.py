"""Exchange: carries ballots, and in an interaction texts, between agents that share nothing else."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from datetime import timedelta
from types import TracebackType
from typing import TypeVar

from torch.distributed import PrefixStore, Store

from mmcorl.cohort.aside import aside
from mmcorl.cohort.ballots import Ballot
from mmcorl.cohort.heartbeat import Heartbeat, first_line
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
from mmcorl.errors import CohortMismatch, PeerLost

T = TypeVar("T", Greeting, Message, Texts)

logger = logging.getLogger(__name__)

_PATIENCE = timedelta(days=7)  # for a living peer; a wait without an end is not to be had
_LONGEST_FAREWELL = 500


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
    ) -> None:
        self._agents, self._agent, self._run = tuple(agents), agent, run
        self._peers = [name for name in agents if name != agent]
        self._round = 0
        # The thread that waits has its own connection, so that this one stays free to end the wait.
        self._store = PrefixStore(f"mmcorl/{attempt}", store)
        self._waiting_store = self._store.clone()
        self._heartbeat = Heartbeat(self._store, agent, self._peers, dead_after)

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
        require_same_start(
            self._parsed(Greeting.from_json, self._swap(greeting.to_json(), "joining", appear_within))
        )

    def gather(
        self, step: int, problem_ids: Sequence[str], ballots: Sequence[Ballot], stop: bool = False
    ) -> dict[str, Message]:
        """Post this agent's ballots of a step and wait for everybody's.

        `ballots` are in the order of `problem_ids`. `stop` says that this agent was asked to end. Returns the message
        of every agent, the own one included, in the cohort's order; when any of them says stop, all end after this
        step. Raises PeerLost, and CohortMismatch when the agents are not at the same problems of the same step.
        """
        assert len(ballots) == len(problem_ids)
        hashes = tuple(problem_hash(problem_id) for problem_id in problem_ids)
        own = Message(self._run, step, self._agent, hashes, tuple(ballots), stop)
        messages = self._parsed(Message.from_json, self._swap(own.to_json(), f"step {step}"))
        require_same_step(messages)
        return {message.agent: message for message in messages}

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
        said = self._parsed(Texts.from_json, self._swap(own.to_json(), f"step {step}, {phase}"))
        require_same_phase(said)
        return {texts.agent: texts for texts in said}

    def close(self, why: str = "") -> None:
        """Leave, telling the peers `why` if not in good order, and end the heartbeat. Nobody is waited for."""
        self._heartbeat.close(why)

    def _swap(self, text: str, what: str, appear_within: float = math.inf) -> dict[str, bytes]:
        """Post a text for every peer, and collect theirs: one exchange."""
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
            return received

        waiting = aside(post_and_collect)
        try:
            received = self._watch(waiting, number, what, appear_within)
        finally:
            if not waiting.done():
                self._end(waiting, list(incoming.values()))
        return {name: text.encode() if name == self._agent else received[name] for name in self._agents}

    def _watch(
        self, waiting: Future[dict[str, bytes]], number: int, what: str, appear_within: float
    ) -> dict[str, bytes]:
        """Wait for the other thread, and look around now and then. As this waits in Python, Ctrl-C works."""
        waited, announced = 0.0, False
        while True:
            try:
                return waiting.result(timeout=self._heartbeat.interval)
            except TimeoutError:
                waited += self._heartbeat.interval
            except RuntimeError as error:  # what torch's stores raise
                raise PeerLost(f"the cohort's store is gone ({first_line(error)}); {what}") from error
            self._raise_for_trouble(number, what)
            if unseen := ", ".join(self._heartbeat.unseen()):
                if not announced:
                    logger.info("%s waits for %s to appear", self._agent, unseen)
                    announced = True
                if waited > appear_within:
                    raise PeerLost(
                        f"{unseen} did not appear within {appear_within:g} s; start every agent of the cohort with "
                        "the same cohort.store"
                    )

    def _raise_for_trouble(self, awaited: int, what: str) -> None:
        if (trouble := self._heartbeat.trouble(awaited)) is not None:
            raise PeerLost(f"{trouble}; {what}")

    def _end(self, waiting: Future[dict[str, bytes]], keys: Sequence[str]) -> None:
        """End a wait that is given up: a thread inside the store at the interpreter's exit would abort the process."""
        with suppress(RuntimeError, TimeoutError):  # where the store is gone the wait has ended or never will
            for key in keys:
                self._store.set(key, "")
            waiting.result(timeout=self._heartbeat.interval)

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
