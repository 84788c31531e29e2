"""The program that a worker process runs: symbolic comparison of two formulas with math-verify and sympy.

Reads one JSON line a question, `[a, b]`, and answers `true` or `false` on a line. Text is only ever parsed as LaTeX,
never evaluated. The caller kills a worker that takes too long; the alarm ends one whose caller is gone.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import signal
import sys

MEMORY_LIMIT = 2 << 30  # bytes of address space


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


def main(seconds: str) -> None:
    logging.disable(logging.CRITICAL)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    # The answers own the original stdout; whatever a library prints goes to stderr.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    same("1", "1")  # imports and warms the parser, outside of any time limit
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        a, b = json.loads(line)
        signal.setitimer(signal.ITIMER_REAL, 2 * float(seconds) + 1)
        verdict = same(a, b)
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(json.dumps(verdict), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
