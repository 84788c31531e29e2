"""Code benchmarks: the tests of a row, and whether the program in a completion passes them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from mmcorl.config import CodeConfig
from mmcorl.evaluation.records import ProblemRecord
from mmcorl.graders.answers import Answer
from mmcorl.graders.code import passing
from mmcorl.graders.extract import code_block
from mmcorl.sandbox import Sandbox
from mmcorl.sandbox.unit_tests import UnitTests, read_tests, unpack_tests

CODE = CodeConfig(case_seconds=6.0, program_seconds=60.0, memory_mib=4096)
"""What a program may use unless it is set: seconds a test as LiveCodeBench gives them."""


def join_tests(parts: Sequence[str]) -> str:
    """The tests in several columns, each as text or packed, as one. Raises MmcorlError for what holds none."""
    unpacked = [part if _is_json(part) or "\n" in part.strip() else unpack_tests(part) for part in parts]
    if len(unpacked) == 1:
        return unpacked[0]
    return json.dumps([test for part in unpacked for test in json.loads(part)])


def unit_tests(problem: ProblemRecord, tests: str) -> UnitTests:
    """Raises MmcorlError for tests that cannot be read."""
    return read_tests(tests, problem.fields.get("entry_point"), problem.fields.get("setup", ""))


def grade_programs(
    asked: Sequence[tuple[ProblemRecord, str, str]], prelude: str, sandbox: Sandbox
) -> list[tuple[Answer | None, bool]]:
    """The program of each (problem, its tests, completion), and whether it passes; run at the same time.

    `prelude` is source that all programs of the benchmark may rely on.
    """
    sources = [code_block(completion) for _, _, completion in asked]
    jobs = [
        (source, unit_tests(problem, tests), "\n".join(filter(None, (prelude, problem.fields.get("before")))))
        for source, (problem, tests, _) in zip(sources, asked, strict=True)
        if source
    ]
    verdicts = iter(passing(jobs, sandbox))
    return [(Answer("code", source), next(verdicts)) if source else (None, False) for source in sources]


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), list)
    except ValueError:
        return False
