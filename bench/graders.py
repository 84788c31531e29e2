"""mmcorl's grader beside public ones: right verdicts on small cases, agreement on real completions, speed, hangs.

    python bench/graders.py --cases FILE --outputs DIR [--sample 300] [--peers DIR] [--wrong mmcorl]

The cases are JSON lines with `input` (answer, response or thread), `pred`, `gold`, `question`, `choices`, `expected` and
`strictness` (must or policy); the outputs are `*.jsonl.gz` with `response`, `gold`, `question`, `choices`, `answer_type`
and `official_correct`. Every grader runs in a process of its own, with a limit on time (each case) and memory; one that
is not installed is skipped. They need not be in the environment of mmcorl:

    pip install --target DIR --no-deps mathruler pylatexenc tinker-cookbook lm-eval requests sacrebleu ...
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import math
import multiprocessing
import os
import random
import resource
import signal
import statistics
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil
from public_graders import GRADERS, Item
from rich import progress
from rich.table import Table

from mmcorl.cli.console import wide_console

MEMORY_LIMIT = 4 << 30  # bytes of address space
STARTUP_SECONDS = 120

# -------------------------------------------------------------------------------------------- processes


def serve(name: str, peers: Path | None, pipe: Connection) -> None:
    """The program of a grader's process: answers items with (verdict or the name of an error, seconds)."""
    os.setsid()  # a peer may have children of its own; they end with it
    if peers:
        sys.path.append(str(peers))  # behind everything installed, so that it replaces nothing
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    try:
        judge = GRADERS[name]()
    except (ImportError, AssertionError) as error:
        pipe.send(f"{type(error).__name__}: {error}")
        return
    pipe.send(None)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    computed = 0.0  # in this process, without the sending and receiving of items
    with ThreadPoolExecutor(1) as thread:
        while True:
            item = pipe.recv()
            if item is None:
                pipe.send(computed + of_children())
                continue
            begun = time.process_time()
            started = time.perf_counter()
            try:
                threaded = item["input"] == "thread"
                verdict = thread.submit(judge, item).result() if threaded else judge(item)
                outcome = bool(verdict)
            except Exception as error:  # whatever a foreign grader raises is its verdict here
                outcome = type(error).__name__
            seconds = time.perf_counter() - started
            computed += time.process_time() - begun
            pipe.send((outcome, seconds))


def of_children() -> float:
    """CPU seconds of the processes that this one started, and that they started."""
    times = [process.cpu_times() for process in psutil.Process().children(recursive=True)]
    return sum(t.user + t.system + t.children_user + t.children_system for t in times)


class Unavailable(Exception):
    """A grader that cannot be imported here."""


@dataclass
class Outcome:
    verdict: bool
    seconds: float
    hung: bool = False
    raised: str | None = None


@dataclass
class Served:
    """A grader in its process; started again after a case that it did not finish in time."""

    name: str
    peers: Path | None
    limit: float
    _pipe: Connection | None = field(default=None, init=False)
    _process: Any = field(default=None, init=False)

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(self.name, self.peers, theirs))
        self._process.start()
        theirs.close()
        problem = self._pipe.recv() if self._pipe.poll(STARTUP_SECONDS) else "does not start"
        if problem is not None:
            self.stop()
            raise Unavailable(problem)

    def stop(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
            self._process.join()
        self._pipe = None

    def computed(self) -> float:
        """CPU seconds that its process has spent on judging so far, those of its children included."""
        if self._pipe is None:
            self.start()
        assert self._pipe is not None
        self._pipe.send(None)
        return self._pipe.recv()

    def ask(self, item: Item) -> Outcome:
        if self._pipe is None:
            self.start()
        assert self._pipe is not None
        try:
            self._pipe.send(item)
            if self._pipe.poll(self.limit):
                outcome, seconds = self._pipe.recv()
                raised = outcome if isinstance(outcome, str) else None
                return Outcome(outcome is True, seconds, raised=raised)
            hung, raised = True, None
        except (EOFError, ConnectionError):
            hung, raised = False, "died"
        self.stop()
        return Outcome(False, self.limit, hung, raised)


# --------------------------------------------------------------------------------------------- material


def read_cases(path: Path) -> list[Item]:
    cases = [json.loads(line) for line in path.read_text().splitlines()]
    for case in cases:
        case["mcq"] = bool(case["choices"]) or case["kind"].startswith("mcq")
    return cases


def read_outputs(folder: Path, sample: int) -> dict[str, list[Item]]:
    """Up to `sample` rows of every file that has an official verdict (0 for all), the same ones every time."""
    files: dict[str, list[Item]] = {}
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt") as lines:
            rows = [json.loads(line) for line in lines]
        rows = [r for r in rows if r["official_correct"] is not None and r["gold"] is not None]
        if sample and len(rows) > sample:
            rows = random.Random(0).sample(rows, sample)
        files[path.name.removesuffix(".jsonl.gz")] = [
            {
                **r,
                "file": path.name,
                "input": "response",
                "pred": r["response"],
                "mcq": r["answer_type"] == "mcq",
            }
            for r in rows
        ]
    return files


def swapped(cases: Iterable[Item]) -> Iterator[tuple[str, Item]]:
    """Cases in which answer and gold may change places, which must not change the verdict."""
    for case in cases:
        if case["input"] == "answer" and not case["mcq"]:
            yield case["id"], {**case, "pred": case["gold"], "gold": case["pred"]}


# ---------------------------------------------------------------------------------------------- tables


def tracked(items: Iterable[Any], title: str) -> Iterable[Any]:
    return progress.track(items, title, transient=True, disable=not sys.stdout.isatty())


def percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} % ({part}/{whole})" if whole else "-"


def cases_row(grader: Served, cases: list[Item], wrong: bool) -> list[str]:
    outcomes = {c["id"]: grader.ask(c) for c in tracked(cases, grader.name)}
    right = {c["id"]: outcomes[c["id"]].verdict == c["expected"] for c in cases}
    backwards = {i: grader.ask(c) for i, c in tracked(swapped(cases), f"{grader.name}, swapped")}
    asymmetric = [i for i, o in backwards.items() if o.verdict != outcomes[i].verdict]
    if wrong:
        for case in cases:
            if not right[case["id"]]:
                shown = {
                    k: str(case[k])[:100] for k in ("id", "kind", "strictness", "pred", "gold", "expected")
                }
                print(json.dumps(shown, ensure_ascii=False))
        print("asymmetric:", *asymmetric)
    counts = [
        percent(
            sum(right[c["id"]] for c in cases if c["strictness"] == s),
            sum(c["strictness"] == s for c in cases),
        )
        for s in ("must", "policy")
    ]
    seconds = [o.seconds for o in outcomes.values()]
    return [
        *counts,
        f"{1000 * statistics.median(seconds):.2f}",
        f"{1000 * max(seconds):.0f}",
        str(sum(o.hung for o in outcomes.values())),
        str(sum(o.raised is not None for o in outcomes.values())),
        f"{len(asymmetric)}/{len(backwards)}",
    ]  # fmt: skip


def outputs_row(grader: Served, files: dict[str, list[Item]]) -> tuple[list[str], float, float]:
    """Agreement with the official verdict for every file, and answers a second over all of them: by the clock, and by
    the time computed, which does not depend on what else the machine does."""
    cells, seconds, total, restarted = [], 0.0, 0, False
    before = grader.computed()
    for name, rows in files.items():
        outcomes = [grader.ask(r) for r in tracked(rows, f"{grader.name}, {name}")]
        agreeing = sum(o.verdict == r["official_correct"] for o, r in zip(outcomes, rows, strict=True))
        cells.append(f"{100 * agreeing / len(rows):.1f}")
        seconds += sum(o.seconds for o in outcomes)
        restarted = restarted or any(o.hung or o.raised == "died" for o in outcomes)
        total += len(rows)
    computed = math.nan if restarted else grader.computed() - before
    return cells, total / seconds, total / computed


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=Path, required=True, metavar="FILE", help="labelled cases")
    parser.add_argument(
        "--outputs", type=Path, required=True, metavar="DIR", help="completions with a verdict"
    )
    parser.add_argument(
        "--sample", type=int, default=300, metavar="N", help="rows of each output file; 0 for all"
    )
    parser.add_argument(
        "--peers", type=Path, metavar="DIR", help="folder of `pip install --target` with peers"
    )
    parser.add_argument("--only", metavar="A,B", help=f"some of: {'; '.join(GRADERS)}")
    parser.add_argument("--limit", type=float, default=5.0, metavar="S", help="seconds a case (default 5)")
    parser.add_argument(
        "--wrong", default="", metavar="NAME", help="list the cases that this grader gets wrong"
    )
    options = parser.parse_args()
    for path in (options.cases, options.outputs):
        if not path.exists():
            print(f"error: {path} does not exist", file=sys.stderr)
            return 2
    names = [n.strip() for n in options.only.split(",")] if options.only else list(GRADERS)
    if unknown := [n for n in names if n not in GRADERS]:
        print(f"error: --only={','.join(unknown)}: there are {', '.join(GRADERS)}", file=sys.stderr)
        return 2
    cases, files = read_cases(options.cases), read_outputs(options.outputs, options.sample)

    judged = Table("grader", "must", "policy", "median ms", "max ms", "hangs", "raised", "asymmetric", title=f"{len(cases)} cases")  # fmt: skip
    agreed = Table(
        "grader",
        *files,
        "answers/s",
        "to math-verify",
        "answers/CPU s",
        "to math-verify",
        title="agreement with the official verdict, %",
    )
    speeds: dict[str, tuple[float, float]] = {}
    rows: dict[str, list[str]] = {}
    for name in names:
        grader = Served(name, options.peers, options.limit)
        try:
            grader.start()
        except Unavailable as reason:
            print(f"skipped {name}: {reason}")
            continue
        judged.add_row(name, *cases_row(grader, cases, name == options.wrong))
        rows[name], clock, computed = outputs_row(grader, files)
        speeds[name] = (clock, computed)
        grader.stop()
    for name, cells in rows.items():
        for speed, reference in zip(speeds[name], speeds.get("math-verify", (0.0, 0.0)), strict=True):
            ratio = speed / reference if reference else math.nan
            cells += [
                f"{x:.{n}f}{sign}" if x == x else "-" for x, n, sign in ((speed, 0, ""), (ratio, 1, "x"))
            ]
        agreed.add_row(name, *cells)
    console = wide_console(200)
    console.print(judged)
    console.print(agreed)
    for name in (n for n in ("mmcorl", "mmcorl as scored") if n in speeds):
        clock, computed = (512 / speed for speed in speeds[name])
        print(f"512 answers as of a training step, {name}: {clock:.3f} s, {computed:.3f} s of it computing")
    return 0


if __name__ == "__main__":
    sys.exit(main())
