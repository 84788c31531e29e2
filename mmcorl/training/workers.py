"""The processes of a run: one an agent and rank, each its own session, started, watched and ended by the launcher."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mmcorl.config import AgentConfig, Config
from mmcorl.errors import EXIT_PEER_LOST, EXIT_USER_ERROR, MmcorlError
from mmcorl.training.folders import RunFolder

GRACE_SECONDS = 3.0
"""Between asking a worker to end and ending it."""

_TAIL_LINES = 15


@dataclass(frozen=True)
class Job:
    """What all workers of one start of a run are told.

    `store` is where ballots meet, `attempt` a word that tells this start from any other, `secret` what messages are
    sealed with, `module` what each process runs: `python -m MODULE RUN/config.yaml --agent NAME ...`.
    """

    config: Config
    store: str
    attempt: str
    resume_step: int | None
    secret: bytes
    module: str

    def arguments(self, agent: str) -> list[str]:
        """Of the interpreter, for a rank of this agent. The secret is not among them: everybody can read those."""
        chosen = [self.module, str(RunFolder.of(self.config).config), "--agent", agent]
        chosen += ["--store", self.store, "--attempt", self.attempt]
        chosen += [] if self.resume_step is None else ["--resume-step", str(self.resume_step)]
        return ["-u", "-X", "faulthandler", "-m", *chosen]


class Process(Protocol):
    """A worker's process, wherever it runs."""

    def poll(self) -> int | None:
        """The exit code; None while it runs."""
        ...

    def terminate(self) -> None:
        """Ask it, and it alone, to end."""
        ...

    def signal_group(self, number: int) -> None:
        """Send a signal to it and all that it started."""
        ...

    def close(self) -> None:
        """Wait for its end, and let go of what it held here."""
        ...


class LocalProcess:
    """A process on this machine, which ends when this one does: see `end_with_launcher`.

    It has this process's environment with `changes`, and appends to `log`, which was `log_start` bytes long before.
    """

    def __init__(
        self, arguments: Sequence[str], changes: Mapping[str, str], log: Path, secret: bytes
    ) -> None:
        with log.open("ab") as output:
            self.log_start = output.tell()
            self._popen = subprocess.Popen(
                [sys.executable, *arguments],
                env=dict(os.environ) | dict(changes),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # the terminal's Ctrl-C reaches the launcher alone
            )
        assert self._popen.stdin is not None
        with suppress(BrokenPipeError):  # it ended at once; its exit code will tell
            self._popen.stdin.write(secret.hex().encode() + b"\n")
            self._popen.stdin.flush()

    def poll(self) -> int | None:
        return self._popen.poll()

    def terminate(self) -> None:
        self._popen.terminate()

    def signal_group(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._popen.pid, number)

    def close(self) -> None:
        self._popen.wait()
        with suppress(BrokenPipeError):
            assert self._popen.stdin is not None
            self._popen.stdin.close()


@dataclass(frozen=True)
class Worker:
    """One rank of one agent, and where its output goes. `log_start` is the log's size before it started."""

    agent: str
    rank: int
    process: Process
    log: Path
    log_start: int

    @property
    def code(self) -> int | None:
        """The exit code; None while it runs."""
        return self.process.poll()

    def how_it_ended(self) -> str:
        """`ended with exit code 1` or `was killed by SIGKILL ...`."""
        code = self.code
        assert code is not None
        if code >= 0:
            return f"ended with exit code {code}"
        name = signal.Signals(-code).name
        hint = " (the system does this when memory runs out)" if name == "SIGKILL" else ""
        return f"was killed by {name}{hint}"

    def output(self) -> list[str]:
        """What this process printed, not counting earlier attempts in the same log."""
        with self.log.open("rb") as file:
            file.seek(self.log_start)
            return file.read().decode("utf-8", errors="replace").splitlines()

    def last_words(self) -> str:
        """A message to the user alone where that is how it ended, else how it ended and its last lines."""
        lines = self.output()
        starts = [index for index, line in enumerate(lines) if line.startswith("error: ")]
        if self.code in (EXIT_USER_ERROR, EXIT_PEER_LOST) and starts:
            return f"{self.agent}: " + "\n".join(
                [lines[starts[-1]].removeprefix("error: "), *lines[starts[-1] + 1 :]]
            )
        rank = f" (rank {self.rank})" if self.rank else ""
        shown = "\n".join(f"  | {line}" for line in lines[-_TAIL_LINES:])
        return f"{self.agent}{rank} {self.how_it_ended()}" + (
            f". The end of {self.log}:\n{shown}" if shown else ""
        )


def start(job: Job, agents: Sequence[str]) -> list[Worker]:
    """Start every rank of these agents on this machine, and divide its threads among them."""
    config, folder = job.config, RunFolder.of(job.config)
    threads = max(1, (config.run.threads or _cores()) // sum(config.agents[name].ranks for name in agents))
    workers: list[Worker] = []
    try:
        for name, port in zip(agents, _free_ports(len(agents)), strict=True):
            for rank in range(config.agents[name].ranks):
                changes = placed_at(config.agents[name], rank, f"127.0.0.1:{port}", rank) | devices_of(
                    config.agents[name]
                )
                changes["OMP_NUM_THREADS"] = str(threads)
                log = folder.log(name, rank)
                process = LocalProcess(job.arguments(name), changes, log, job.secret)
                workers.append(Worker(name, rank, process, log, process.log_start))
    except BaseException:
        stop(workers)
        raise
    return workers


def placed_at(agent: AgentConfig, rank: int, first: str, local_rank: int) -> dict[str, str]:
    """What torch.distributed reads from the environment of a rank; `first` is the host:port of the agent's first."""
    host, _, port = first.rpartition(":")
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(local_rank),
        "WORLD_SIZE": str(agent.ranks),
        "LOCAL_WORLD_SIZE": str(agent.ranks),
        "MASTER_ADDR": host,
        "MASTER_PORT": port,
    }


def devices_of(agent: AgentConfig) -> dict[str, str]:
    """The GPUs of an agent; none is named where the configuration names none."""
    if agent.devices is None:
        return {}
    return {"CUDA_VISIBLE_DEVICES": ",".join(_visible(index) for index in agent.devices)}


def _visible(index: int) -> str:
    """The GPU's own name where a scheduler gave this process only some: device 0 is the first of those."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if not given:
        return str(index)
    names = given.split(",")
    if index >= len(names):
        raise MmcorlError(f"devices names GPU {index}, and CUDA_VISIBLE_DEVICES={given} leaves {len(names)}")
    return names[index]


def _cores() -> int:
    """The cores that this process may use, which a container or scheduler may have limited."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for held in sockets:
            held.bind(("127.0.0.1", 0))
        return [held.getsockname()[1] for held in sockets]


def stop(workers: Sequence[Worker]) -> None:
    """End these workers and what they started: ask with SIGTERM, and kill what still runs a few seconds later."""
    running = [worker for worker in workers if worker.code is None]
    for worker in running:
        worker.process.signal_group(signal.SIGTERM)
    deadline = time.monotonic() + GRACE_SECONDS
    while time.monotonic() < deadline and any(worker.code is None for worker in running):
        time.sleep(0.05)
    for worker in workers:
        worker.process.signal_group(signal.SIGKILL)  # also what a worker started and left behind
        worker.process.close()


def end_with_launcher() -> bytes:
    """Called by a worker: end it, and all that it started, when its launcher is gone for whatever reason.

    Returns the secret that the launcher has for it. Both come through the standard input, which others cannot read and
    which closes with the launcher.
    """
    secret = b""
    while not secret.endswith(b"\n"):
        if not (read := os.read(0, 1024)):
            raise MmcorlError(
                "this is started by mmcorl-train, which tells it what to do; see docs/cluster.md"
            )
        secret += read

    def wait() -> None:
        while os.read(0, 1024):
            pass
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=wait, name="end-with-launcher", daemon=True).start()
    return bytes.fromhex(secret.decode())
