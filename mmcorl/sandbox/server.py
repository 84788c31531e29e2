"""A worker: a warm Python that forks a child behind walls for every program, watches it and kills it.

Reads one JSON line a program, `{"source", "cases", "reads", "until_failure"}`, and answers with a line
`[[status, value], ...]`. Started by `pool` with the scratch folder and the limits as arguments.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import importlib
import json
import os
import selectors
import signal
import sys
import time
from pathlib import Path

from mmcorl.sandbox import child
from mmcorl.sandbox.programs import MAX_VALUE, Limits, Outcome, Program
from mmcorl.sandbox.walls import Walls

_TICK = 0.05  # seconds between two looks at what only looking can tell: files and threads
_PATIENCE = (
    3  # times the CPU seconds of a case that it may take on the clock: other processes want the cores too
)
_MAX_LINE = 16 * MAX_VALUE  # bytes of one message of a child, whose characters may all be escaped
_PRELOADED = [
    "array",
    "bisect",
    "cmath",
    "collections",
    "copy",
    "dataclasses",
    "datetime",
    "decimal",
    "enum",
    "fractions",
    "functools",
    "hashlib",
    "heapq",
    "io",
    "itertools",
    "json",
    "math",
    "operator",
    "queue",
    "random",
    "re",
    "statistics",
    "string",
    "threading",
    "typing",
]


@dataclasses.dataclass
class _Run:
    """A child that is running, and what it has said so far."""

    pid: int
    results: int
    output: int
    expected_lines: int
    lines: bytes = b""
    printed: bytes = b""
    killed: str | None = None

    def kill(self, reason: str) -> None:
        self.killed = self.killed or reason
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


class Server:
    """Runs programs one after the other, each in a child of its own."""

    def __init__(self, scratch: Path, limits: Limits) -> None:
        self.limits = limits
        self.scratch = scratch
        self.walls = Walls(scratch, limits)

    def run(self, program: Program) -> list[Outcome]:
        """The outcomes of a program's cases; fewer than there are where `until_failure` ended it."""
        deadline = time.monotonic() + self.limits.program_seconds
        outcomes: list[Outcome] = []
        step = self._calls if program.reads == "calls" else self._whole
        while len(outcomes) < len(program.cases):
            if time.monotonic() >= deadline:
                late = Outcome("killed", f"the program took more than {self.limits.program_seconds:g} s")
                outcomes += [late] * (len(program.cases) - len(outcomes))
            else:
                outcomes += step(program, len(outcomes), deadline)
            bad = next((i for i, o in enumerate(outcomes) if o.status != "ok"), None)
            if program.until_failure and bad is not None:
                return outcomes[: bad + 1]
        return outcomes

    def _calls(self, program: Program, first: int, deadline: float) -> list[Outcome]:
        """One child on the cases from `first` on. Where it dies in one of them, it is left to another to go on."""
        run, code = self._watch(program, first, deadline)
        messages = run.lines.split(b"\n")[:-1]
        outcomes: list[Outcome] = []
        for index, line in zip([child.LOADED, *range(first, len(program.cases))], messages, strict=False):
            outcome = _read(line, index)
            if outcome is None:
                return [*outcomes, *_rest(program, first + len(outcomes), "it wrote where it should not")]
            if index != child.LOADED:
                outcomes.append(outcome)
            elif outcome.status == "error":
                return [outcome] * (len(program.cases) - first)
        if not messages:
            return _rest(program, first, _reason(run, code))
        if first + len(outcomes) < len(program.cases):
            outcomes.append(Outcome("killed", _reason(run, code)))
        return outcomes

    def _whole(self, program: Program, index: int, deadline: float) -> list[Outcome]:
        """One child that reads case `index` from its standard input."""
        run, code = self._watch(program, index, deadline)
        if run.killed or code < 0:
            return [Outcome("killed", _reason(run, code))]
        if code > 0:
            return [Outcome("error", f"exit code {code}")]
        return [Outcome("ok", run.printed.decode("utf-8", "replace"))]

    def _watch(self, program: Program, first: int, deadline: float) -> tuple[_Run, int]:
        """Fork a child, hold it to its limits until it ends, and clean up after it."""
        run = self._fork(program, first)
        ended = os.pidfd_open(run.pid)
        with selectors.DefaultSelector() as selector:
            for descriptor in (run.results, run.output, ended):
                selector.register(descriptor, selectors.EVENT_READ)
            started, cpu_started = time.monotonic(), 0.0
            look = started + _TICK
            while run.killed is None:
                now, cpu = time.monotonic(), _cpu_seconds(run.pid)
                late = now >= min(started + _PATIENCE * self.limits.case_seconds, deadline)
                if late or cpu - cpu_started >= self.limits.case_seconds:
                    run.kill(f"one case took more than {self.limits.case_seconds:g} s")
                    break
                if now >= look:
                    self._look(run)
                    look = now + _TICK
                ready = {key.fd for key, _ in selector.select(_TICK)}
                for descriptor in ready & {run.results, run.output}:
                    case_ended, more = self._drain(run, descriptor)
                    if case_ended:
                        started, cpu_started = time.monotonic(), cpu
                    if not more:
                        selector.unregister(descriptor)
                if ended in ready:
                    break
        for descriptor in (run.results, run.output):
            while run.killed is None and self._drain(run, descriptor)[1]:
                pass
        _, status = os.waitpid(run.pid, 0)
        for descriptor in (run.results, run.output, ended):
            os.close(descriptor)
        for file in self.scratch.iterdir():
            file.unlink()
        return run, os.waitstatus_to_exitcode(status)

    def _drain(self, run: _Run, descriptor: int) -> tuple[bool, bool]:
        """Take what a pipe holds: whether a case ended with it, and whether more can come."""
        try:
            chunk = os.read(descriptor, 65_536)
        except BlockingIOError:
            return False, False
        if descriptor == run.output:
            run.printed += chunk
            if len(run.printed) > self.limits.output_bytes:
                run.printed = b""
                run.kill(f"it printed more than {self.limits.output_bytes} bytes")
            return False, bool(chunk)
        run.lines += chunk
        run.expected_lines -= chunk.count(b"\n")
        if run.expected_lines < 0 or len(run.lines) - run.lines.rfind(b"\n") > _MAX_LINE:
            run.kill("it wrote where it should not")
        return b"\n" in chunk, bool(chunk)

    def _look(self, run: _Run) -> None:
        """Kill a child with too many threads or files."""
        with contextlib.suppress(FileNotFoundError):  # it has just ended
            if Path(f"/proc/{run.pid}/task").stat().st_nlink - 2 > self.limits.threads:
                run.kill(f"it started more than {self.limits.threads} threads")
        used = 0
        for entry in os.scandir(self.scratch):
            with contextlib.suppress(FileNotFoundError):
                used += 4096 + entry.stat(follow_symlinks=False).st_blocks * 512
        if used > self.limits.files_bytes:
            run.kill(f"it wrote more than {self.limits.files_bytes} bytes of files")

    def _fork(self, program: Program, first: int) -> _Run:
        results, results_in = os.pipe()
        output, output_in = os.pipe()
        os.set_blocking(results, False)
        os.set_blocking(output, False)
        stdin = _stdin(program.cases[first] if program.reads == "stdin" else "")
        server = os.getpid()
        if (pid := os.fork()) == 0:
            try:
                self._become(program, first, stdin, output_in, results_in, server)
            finally:
                os._exit(70)
        for descriptor in (results_in, output_in, stdin):
            os.close(descriptor)
        return _Run(pid, results, output, expected_lines=1 + len(program.cases) - first)

    def _become(
        self, program: Program, first: int, stdin: int, output: int, results: int, server: int
    ) -> None:
        os.setsid()
        os.dup2(stdin, 0)
        os.dup2(output, 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        self.walls.raise_all(server)
        os.dup2(results, 3)
        os.closerange(4, 1 << 16)
        if program.reads == "calls":
            child.run_calls(program, first, results=3)
        child.run_whole(program)


def _cpu_seconds(pid: int) -> float:
    """CPU time that a child has had, all its threads together; 0 where it is just gone."""
    try:
        return time.clock_gettime((~pid << 3) | 2)  # the clock id that clock_getcpuclockid(3) makes
    except OSError:
        return 0.0


def _stdin(text: str) -> int:
    descriptor = os.memfd_create("stdin", os.MFD_CLOEXEC)
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(text.encode("utf-8", "replace"))
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _read(line: bytes, index: int) -> Outcome | None:
    """A child's message; None where it is not the one that is due, because the program wrote it."""
    with contextlib.suppress(ValueError, RecursionError):
        match json.loads(line):
            case [int(number), "ok" | "error" as status, str(value)] if number == index:
                return Outcome(status, value)
    return None


def _reason(run: _Run, code: int) -> str:
    if run.killed:
        return run.killed
    return f"signal {-code}" if code < 0 else f"it ended its process with exit code {code}"


def _rest(program: Program, first: int, reason: str) -> list[Outcome]:
    return [Outcome("killed", reason)] * (len(program.cases) - first)


def main(scratch: str, limits: str) -> None:
    for name in _PRELOADED:
        importlib.import_module(name)
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "w")
    server = Server(Path(scratch), Limits(**json.loads(limits)))
    missing = [] if server.limits.unprotected else server.walls.missing()
    gc.collect()
    gc.freeze()
    print(json.dumps(missing), file=answers, flush=True)
    for line in requests:
        data = json.loads(line)
        program = Program(**{**data, "cases": tuple(data["cases"])})
        outcomes = server.run(program)
        print(json.dumps([[o.status, o.value] for o in outcomes]), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
