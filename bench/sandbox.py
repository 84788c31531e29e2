"""The sandbox against starting a Python for every program: programs a second, and their ratio.

    python bench/sandbox.py [--programs 512] [--workers N]

Both run the same small functions on four inputs each, and have to give the same outputs. The Python of its own is
`python -I` with a time limit and nothing else: no wall at all. At last, one program in 32 never ends.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from mmcorl.sandbox import Limits, Outcome, Program, Sandbox

T = TypeVar("T")

INPUTS = ("f([3, 1, 2])", "f([])", "f([5] * 10)", "f(list(range(100)))")
BODIES = ("sorted(x)", "sum(x)", "[y * y for y in x]", "max(x, default=None)", "len(set(x))", "x[::-1]")
ENDLESS = "def f(x):\n    while True: pass"


def programs(count: int) -> list[Program]:
    return [
        Program(f"import math\n\n\ndef f(x):\n    return {BODIES[i % len(BODIES)]}  # {i}", INPUTS)
        for i in range(count)
    ]


def own_python(program: Program) -> list[str]:
    calls = "\n".join(f"print(repr({case}))" for case in program.cases)
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"{program.source}\n{calls}"],
        capture_output=True,
        text=True,
        timeout=10,
        check=True,
    )
    return done.stdout.splitlines()


def timed(work: Callable[[], T]) -> tuple[T, float]:
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started


def values(outcomes: list[list[Outcome]]) -> list[list[str]]:
    return [[outcome.value for outcome in row] for row in outcomes]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--programs", type=int, default=512)
    parser.add_argument("--workers", type=int)
    options = parser.parse_args()
    batch = programs(options.programs)
    with Sandbox(Limits(), options.workers) as sandbox, ThreadPoolExecutor(sandbox.workers) as threads:
        _, start = timed(lambda: sandbox.run([Program("", ("1",))] * sandbox.workers))
        inside, sandboxed = timed(lambda: sandbox.run(batch))
        outside, plain = timed(lambda: list(threads.map(own_python, batch)))
        if values(inside) != outside:
            raise SystemExit("the two do not give the same outputs")
        mixed = [Program(ENDLESS, INPUTS[:1]) if i % 32 == 0 else program for i, program in enumerate(batch)]
        ended, slow = timed(lambda: sandbox.run(mixed))
    quick = [row for i, row in enumerate(values(ended)) if i % 32]
    if quick != [row for i, row in enumerate(outside) if i % 32]:
        raise SystemExit("endless programs changed the outputs of others")
    print(f"{len(batch)} programs, {sandbox.workers} at a time; workers were ready after {start:.2f} s")
    print(f"sandbox:               {sandboxed:6.2f} s, {len(batch) / sandboxed:6.1f} programs/s")
    print(f"a Python for each:     {plain:6.2f} s, {len(batch) / plain:6.1f} programs/s")
    print(f"ratio:                 {plain / sandboxed:6.2f}")
    print(
        f"1 in 32 never ends:    {slow:6.2f} s, {len(mixed) / slow:6.1f} programs/s (2 s each until they are killed)"
    )


if __name__ == "__main__":
    main()
