"""Workers on the machines of a Ray cluster: Ray chooses where, and each is the process that it would be here.

An actor for every rank holds its GPU, and has the worker as a child. Metrics, logs and checkpoints are files as always,
so that the run's folder has to be on a file system that all machines share.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from mmcorl.agents.extras import require_installed
from mmcorl.cohort.store import is_reached_from_elsewhere
from mmcorl.config import Config
from mmcorl.errors import MmcorlError
from mmcorl.training.folders import RunFolder
from mmcorl.training.workers import Job, LocalProcess, Worker, placed_at, stop

_ANSWER_SECONDS = 10.0
_PATIENCE_SECONDS = 2.0


class Seat:
    """Inside an actor: one rank's place on a machine, and its process once that has begun."""

    def place(self) -> tuple[str, str]:
        """The node's id, and a host:port on it that is free."""
        import ray.exceptions  # pyright: ignore[reportMissingImports]

        with socket.socket() as free:
            free.bind(("", 0))
            return (
                ray.get_runtime_context().get_node_id(),
                f"{ray.util.get_node_ip_address()}:{free.getsockname()[1]}",
            )

    def begin(
        self, folder: str, arguments: Sequence[str], changes: Mapping[str, str], log: str, secret: bytes
    ) -> int | None:
        """Start the process in `folder`; how long its log was before, or None where this machine has no such folder."""
        if not Path(folder).is_dir() or not Path(folder, log).parent.is_dir():
            return None
        os.chdir(folder)
        self._process = LocalProcess(arguments, changes, Path(log), secret)
        return self._process.log_start

    def poll(self) -> int | None:
        return self._process.poll()

    def terminate(self) -> None:
        self._process.terminate()

    def signal_group(self, number: int) -> None:
        self._process.signal_group(number)

    def close(self) -> None:
        self._process.close()


class RemoteProcess:
    """The process of a seat, as `workers.Process`. One whose actor is lost, with its machine or not, counts as killed."""

    def __init__(self, seat: Any, name: str) -> None:
        self._seat, self._name = seat, name
        self._code: int | None = None

    def poll(self) -> int | None:
        if self._code is None:
            code = self._ask("poll")
            self._code = code if self._code is None else self._code
        return self._code

    def terminate(self) -> None:
        self._ask("terminate")

    def signal_group(self, number: int) -> None:
        self._ask("signal_group", int(number))

    def close(self) -> None:
        self._ask("close")

    def _ask(self, method: str, *arguments: Any) -> Any:
        """What the seat answers; None where it does not."""
        import ray.exceptions  # pyright: ignore[reportMissingImports]

        try:
            return ray.get(getattr(self._seat, method).remote(*arguments), timeout=_ANSWER_SECONDS)
        except ray.exceptions.GetTimeoutError:  # Ray itself finds out whether the machine is gone
            return None
        except ray.exceptions.RayActorError as error:
            if self._code is None:
                self._code = -signal.SIGKILL
                print(f"{self._name}: Ray has lost its actor: {error}".partition("\n")[0], file=sys.stderr)
            return None


@contextmanager
def cluster(
    config: Config, names: Sequence[str], store: str
) -> Iterator[Callable[[Job, Sequence[str]], list[Worker]]]:
    """Hold a place for every rank of these agents in a Ray cluster, and give what starts their workers there.

    It is the cluster that `RAY_ADDRESS` names or that runs on this machine, else a new one of this machine alone. A
    rank gets a GPU where the cluster has any, else a CPU; the ranks of an agent are put together as far as they fit.
    Raises MmcorlError where Ray is not installed, the cluster is too small, or `store` is out of its machines' reach.
    """
    ray = _ray()
    for name in names:
        agent = config.agents[name]
        if agent.devices is not None or agent.server_devices is not None:
            raise MmcorlError(
                f"agents.{name} names GPUs, and Ray chooses them; make its devices and server_devices null"
            )
    with ExitStack() as stack:
        if not ray.is_initialized():
            ray.init(include_dashboard=False, log_to_driver=False)
            stack.callback(ray.shutdown)
        seats = {name: stack.enter_context(_seats(ray, config, name)) for name in names}
        places = {name: ray.get([seat.place.remote() for seat in row]) for name, row in seats.items()}
        here = ray.get_runtime_context().get_node_id()
        away = any(node != here for row in places.values() for node, _ in row)
        if away and store.startswith("tcp:") and not is_reached_from_elsewhere(store):
            raise MmcorlError(
                f"Ray places agents on other machines, which do not reach cohort.store={store}; set "
                "cohort.store=tcp://HOST:0 with a name or address of this machine"
            )

        def start(job: Job, names: Sequence[str]) -> list[Worker]:
            workers: list[Worker] = []
            try:
                for name in names:
                    _, first = places[name][0]
                    for rank, seat in enumerate(seats[name]):
                        workers.append(_begin(ray, job, name, rank, seat, first))
            except BaseException:
                stop(workers)
                raise
            return workers

        yield start


def _begin(ray: Any, job: Job, name: str, rank: int, seat: Any, first: str) -> Worker:
    log, folder = RunFolder.of(job.config).log(name, rank), Path.cwd()
    changes = placed_at(job.config.agents[name], rank, first, 0)  # each rank sees its own GPU alone
    log_start = ray.get(seat.begin.remote(str(folder), job.arguments(name), changes, str(log), job.secret))
    if log_start is None:
        raise MmcorlError(
            f"{folder / log.parent} is not on every machine of the Ray cluster; start in a folder, and with a run.dir, "
            "that they share"
        )
    return Worker(name, rank, RemoteProcess(seat, f"{name} (rank {rank})"), log, log_start)


@contextmanager
def _seats(ray: Any, config: Config, name: str) -> Iterator[list[Any]]:
    """An actor for every rank of an agent, all at once or not yet: says so once while the cluster is busy."""
    agent, total = config.agents[name], ray.cluster_resources()
    unit = "GPU" if total.get("GPU", 0) and agent.endpoint is None else "CPU"
    if total.get(unit, 0) < agent.ranks:
        raise MmcorlError(
            f"agents.{name}.ranks={agent.ranks} need a {unit} each, and the Ray cluster has {total.get(unit, 0):g}; "
            "lower it, or add machines"
        )
    group = ray.util.placement_group([{unit: 1}] * agent.ranks, strategy="PACK")
    actors: list[Any] = []
    try:
        ready, started, said = group.ready(), time.monotonic(), False
        while not ray.wait([ready], timeout=0.5)[0]:
            if not said and time.monotonic() - started > _PATIENCE_SECONDS:
                print(
                    f"waiting for {agent.ranks} {unit} of the Ray cluster for {name}; Ctrl-C leaves",
                    file=sys.stderr,
                )
                said = True
        for rank in range(agent.ranks):
            where = ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(
                group, placement_group_bundle_index=rank
            )
            wanted = {"num_gpus": 1, "num_cpus": 0} if unit == "GPU" else {"num_cpus": 1}
            actors.append(ray.remote(Seat).options(scheduling_strategy=where, **wanted).remote())
        yield actors
    finally:
        for actor in actors:
            ray.kill(actor)
        ray.util.remove_placement_group(group)


def _ray() -> Any:
    require_installed("ray", "--placement ray", "ray")
    import ray.exceptions  # pyright: ignore[reportMissingImports]
    import ray.util.scheduling_strategies  # pyright: ignore[reportMissingImports]

    return ray
