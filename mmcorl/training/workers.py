"""The processes of a run: one an agent and rank, each its own session, started, watched and ended by the launcher."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from mmcorl.config import AgentConfig, Config
from mmcorl.errors import EXIT_PEER_LOST, EXIT_USER_ERROR, MmcorlError
from mmcorl.training.folders import RunFolder

GRACE_SECONDS = 3.0
"""Between asking a worker to end and ending it."""

_TAIL_LINES = 15


@dataclass(frozen=True)
class Worker:
    """One rank of one agent, and where its output goes. `log_start` is the log's size before it started."""

    agent: str
    rank: int
    process: subprocess.Popen[bytes]
    log: Path
    log_start: int

    @property
    def code(self) -> int | None:
        """The exit code; None while it runs."""
        return self.process.poll()

    def signal_group(self, number: signal.Signals) -> None:
        """Send a signal to the worker and all that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

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


def start(
    config: Config, agents: Sequence[str], store: str, attempt: str, resume_step: int | None, module: str
) -> list[Worker]:
    """Start every rank of these agents as `python -m MODULE RUN/config.yaml --agent NAME ...`.

    `store` is where ballots meet, `attempt` a word that tells this start of the run from any other. Threads are
    divided among the processes of this machine.
    """
    ranks = sum(config.agents[name].ranks for name in agents)
    threads = max(1, (config.run.threads or _cores()) // ranks)
    folder = RunFolder.of(config)
    workers: list[Worker] = []
    try:
        for name, port in zip(agents, _free_ports(len(agents)), strict=True):
            command = [sys.executable, "-u", "-X", "faulthandler", "-m", module, str(folder.config)]
            command += ["--agent", name, "--store", store, "--attempt", attempt]
            command += [] if resume_step is None else ["--resume-step", str(resume_step)]
            for rank in range(config.agents[name].ranks):
                environment = _environment(config.agents[name], rank, port, threads)
                workers.append(_start_one(name, rank, command, environment, folder.log(name, rank)))
    except BaseException:
        stop(workers)
        raise
    return workers


def _start_one(agent: str, rank: int, command: list[str], environment: dict[str, str], log: Path) -> Worker:
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,  # never written to: it closes when the launcher dies, see end_with_launcher
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # the terminal's Ctrl-C reaches the launcher alone
        )
        return Worker(agent, rank, process, log, output.tell())


def _environment(agent: AgentConfig, rank: int, port: int, threads: int) -> dict[str, str]:
    values = dict(os.environ) | {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(agent.ranks),
        "LOCAL_WORLD_SIZE": str(agent.ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "OMP_NUM_THREADS": str(threads),
    }
    if agent.devices is not None:
        values["CUDA_VISIBLE_DEVICES"] = ",".join(_visible(index) for index in agent.devices)
    return values


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
        worker.signal_group(signal.SIGTERM)
    deadline = time.monotonic() + GRACE_SECONDS
    while time.monotonic() < deadline and any(worker.code is None for worker in running):
        time.sleep(0.05)
    for worker in workers:
        worker.signal_group(signal.SIGKILL)  # also what a worker started and left behind
        worker.process.wait()
        if worker.process.stdin:
            worker.process.stdin.close()


def end_with_launcher() -> None:
    """Called by a worker: end it, and all that it started, when its launcher is gone for whatever reason."""

    def wait() -> None:
        while os.read(0, 1024):
            pass
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=wait, name="end-with-launcher", daemon=True).start()
