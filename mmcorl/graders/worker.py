"""The program that a worker process runs: symbolic comparison of two formulas with math-verify and sympy.

Reads one JSON line a question, `[a, b, seconds]`, and answers `true`, `false` or, where the comparison was given up, `null`. The
questions are worked on in a child forked from this process, which is killed when it runs out of time; the next child
needs no imports, so a hostile formula costs its time limit and no more. Text is only ever parsed as LaTeX, never
evaluated.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import resource
import sys
from multiprocessing.connection import Connection

MEMORY_LIMIT = 384 << 20  # bytes of address space, of which 80 MB are taken from the start


def same(a: str, b: str) -> bool:
    """Whether math-verify takes two formulas for the same, whichever of them it is told is the gold."""
    from math_verify import LatexExtractionConfig, parse, verify

    def read(formula: str) -> list[object]:
        return parse(
            f"${formula}$", [LatexExtractionConfig()], fallback_mode="no_fallback", parsing_timeout=0
        )

    left, right = read(a), read(b)
    if not left or not right or any(_undefined(e) for e in (*left, *right)):
        return False

    def matches(gold: list[object], prediction: list[object]) -> bool:
        return bool(
            verify(gold, prediction, float_rounding=12, allow_set_relation_comp=True, timeout_seconds=None)  # type: ignore[arg-type]
        )

    return matches(left, right) or matches(right, left)


def _undefined(parsed: object) -> bool:
    """Division by zero: sympy takes every such expression for the same complex infinity."""
    from sympy import Basic, nan, zoo

    return isinstance(parsed, Basic) and parsed.has(nan, zoo)


_WARMING = (r"\frac{1}{2}", r"\int_0^1 2x dx", r"\sum_{k=1}^{3} k", r"\{1, x\}", r"x \in (1, 2]", r"\sin x = \sqrt{2}",
            r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", r"\lim_{x\to 0} \frac{\sin x}{x}", r"\cotx")  # fmt: skip


class _Child:
    """A forked process that answers questions one after another."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("fork")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, self.pipe), daemon=True)
        self.process.start()
        theirs.close()

    def ask(self, a: str, b: str, seconds: float) -> bytes | None:
        """The answer in JSON; None if there is none in time, or the child ran out of memory."""
        try:
            self.pipe.send_bytes(json.dumps([a, b]).encode())
            return self.pipe.recv_bytes() if self.pipe.poll(seconds) else None
        except (EOFError, ConnectionError):
            return None

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _serve(pipe: Connection, other_end: Connection) -> None:
    other_end.close()  # else this process would not notice that the other one is gone
    while True:
        a, b = json.loads(pipe.recv_bytes())
        pipe.send_bytes(json.dumps(same(a, b)).encode())


def main() -> None:
    logging.disable(logging.CRITICAL)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    # The answers own the original stdout; whatever a library prints goes to stderr.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for formula in _WARMING:  # imports what sympy imports late, outside of any time limit
        same(formula, "1")
    print("ready", file=answers, flush=True)
    child = None
    for line in sys.stdin:
        child = child or _Child()
        verdict = child.ask(*json.loads(line))
        print("null" if verdict is None else verdict.decode(), file=answers, flush=True)
        if verdict is None:
            child.end()
            child = None


if __name__ == "__main__":
    main()
