"""Answers that are programs: what they put out is their answer, and what they put out decides whether they are right.

The votable answer of a program is the tuple of its outputs on the inputs in the tests (Co-RL, method section of the
release: `repr` of each); the expected outputs are never read. Two programs written differently agree if they do the
same, and a program that fails on every input concludes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from textwrap import indent
from typing import TYPE_CHECKING

from mmcorl.graders.answers import Answer
from mmcorl.problems import Problem
from mmcorl.sandbox import Limits, Outcome, Program, ProgramSpec, Sandbox
from mmcorl.sandbox.unit_tests import UnitTests, called_name, unit_tests_of
from mmcorl.sandbox.values import bounded

if TYPE_CHECKING:
    from mmcorl.config import CodeConfig

# A function that gives back recorded outputs. It is told them by calling it once for every case. They are read as literals,
# since the texts come from programs and peers: an object that is equal to everything would pass any test.
_STAND_IN = """
import ast as _ast
class _Floats(_ast.NodeTransformer):
    def visit_Name(self, node):
        return _ast.Constant(float(node.id)) if node.id in ("nan", "inf") else node
class _Unrecorded(BaseException): pass
_given, _told = {{}}, None
def _give(*inputs):
    if _told is not None:
        _given[repr(inputs)] = _told
    elif repr(inputs) not in _given:
        raise _Unrecorded
    else:
        return _ast.literal_eval(_Floats().visit(_ast.parse(_given[repr(inputs)], mode="eval")))
{definition}
for _case, _told in {recorded!r}:
    eval(_case)
_told = None
"""


def limits_of(config: CodeConfig) -> Limits:
    """What the configuration lets a program use."""
    return Limits(
        case_seconds=config.case_seconds,
        program_seconds=config.program_seconds,
        memory_bytes=config.memory_mib << 20,
        unprotected=config.unprotected,
    )


def answer_of_program(source: str, spec: ProgramSpec, sandbox: Sandbox) -> Answer | None:
    """What a program puts out on the inputs of its problem; None if it fails on all of them, or there are none."""
    return answers_of_programs([source], [spec], sandbox)[0]


def answers_of_programs(
    sources: Sequence[str | None], specs: Sequence[ProgramSpec], sandbox: Sandbox
) -> list[Answer | None]:
    """`answer_of_program` for many at the same time; the same program on the same inputs is run once."""
    wanted = [
        spec.program(source) if source is not None and spec.cases else None
        for source, spec in zip(sources, specs, strict=True)
    ]
    programs = list(dict.fromkeys(program for program in wanted if program is not None))
    answers = dict(zip(programs, map(_answer, programs, sandbox.run(programs)), strict=True))
    return [None if program is None else answers[program] for program in wanted]


def passes(source: str, tests: UnitTests, sandbox: Sandbox, before: str = "") -> bool:
    """Whether a program passes all tests, run in one process with it. `before` is source that the task gives.

    A program that sets out to deceive the tests can, since they share a process; `outputs_pass` has them apart.
    """
    return passing([(source, tests, before)], sandbox)[0]


def passing(jobs: Sequence[tuple[str, UnitTests, str]], sandbox: Sandbox) -> list[bool]:
    """`passes` for many (source, tests, before) at the same time."""
    programs = []
    for source, tests, before in jobs:
        reads = "stdin" if tests.pairs else "calls"
        cases = tuple(given for given, _ in tests.pairs) or tests.checks
        whole = "\n".join(filter(None, (before, source, tests.setup)))
        programs.append(Program(whole, cases, reads, until_failure=True))
    return [
        _all_right(outcomes, tests)
        for outcomes, (_, tests, _) in zip(sandbox.run(programs), jobs, strict=True)
    ]


def outputs_pass(answer: Answer, spec: ProgramSpec, tests: UnitTests, sandbox: Sandbox) -> bool:
    """Whether a program that puts out `answer` passes the tests, which may be a vote that came from a peer.

    The tests are run on a function that gives back these outputs, apart from any program. A check on an input that is
    not among the cases, such as a random one, ends the checks there.
    """
    outputs = _outputs(answer)
    if outputs is None or len(outputs) != len(spec.cases) or not all(isinstance(o, str) for o in outputs):
        return False
    recorded = list(zip(spec.cases, outputs, strict=True))
    if tests.pairs:
        given = dict(recorded)
        return all(_same_output(given[i], expected) for i, expected in tests.pairs if i in given)
    stand_in = _STAND_IN.format(definition=_definition(spec.cases[0]), recorded=recorded)
    checks = tuple(f"try:\n{indent(c, '    ')}\nexcept _Unrecorded:\n    pass" for c in tests.checks)
    source = "\n".join((spec.before, stand_in, tests.setup))
    [outcomes] = sandbox.run([Program(source, checks, until_failure=True)])
    return _all_right(outcomes, tests)


def _outputs(answer: Answer) -> list | None:
    """The outputs in an answer, None for a case that failed; None for what is no such answer."""
    try:
        outputs = json.loads(answer.value)
    except (ValueError, RecursionError):
        return None
    return outputs if isinstance(outputs, list) else None


def _definition(case: str) -> str:
    """The function, or the method of Solution, that a case calls, as one that gives back what was recorded."""
    name = called_name(case)
    if case.startswith("Solution()."):
        return f"class Solution:\n    def {name}(self, *a, **k): return _give(a, k)"
    return f"def {name}(*a, **k): return _give(a, k)"


def _answer(program: Program, outcomes: Sequence[Outcome]) -> Answer | None:
    if all(outcome.status != "ok" for outcome in outcomes):
        return None
    clean = _stripped if program.reads == "stdin" else str
    return Answer(
        "code", json.dumps([bounded(clean(o.value)) if o.status == "ok" else None for o in outcomes])
    )


def _all_right(outcomes: Sequence[Outcome], tests: UnitTests) -> bool:
    if len(outcomes) < len(tests.pairs or tests.checks) or any(o.status != "ok" for o in outcomes):
        return False
    return all(
        _same_output(o.value, expected) for o, (_, expected) in zip(outcomes, tests.pairs, strict=False)
    )


def _stripped(output: str) -> str:
    """An output without what judges overlook: spaces around lines and empty lines at the end."""
    return "\n".join(line.strip() for line in output.strip().splitlines())


def _same_output(output: str, expected: str) -> bool:
    """Whether a judge would take the output: the same lines, or the same numbers in them."""
    output, expected = _stripped(output), _stripped(expected)
    if output in (expected, bounded(expected)):
        return True
    lines, wanted = output.split("\n"), expected.split("\n")
    return len(lines) == len(wanted) and all(
        a == b or _numbers(a) == _numbers(b) is not None for a, b in zip(lines, wanted, strict=True)
    )


def _numbers(line: str) -> list[Decimal] | None:
    try:
        return [Decimal(word) for word in line.split()]
    except InvalidOperation:
        return None


class ProgramJudge:
    """Reads and judges the answers to code problems for `Grader`, in one sandbox. Safe to use from several threads.

    Problems without a `ProgramSpec` have the program's text as their answer, right if it is the gold's text.
    """

    def __init__(self, limits: Limits | None = None, workers: int | None = None) -> None:
        self._sandbox = Sandbox(limits, workers)
        self._correct = lru_cache(maxsize=65_536)(self._passes)

    def answers(self, asked: Sequence[tuple[str | None, Problem]]) -> list[Answer | None]:
        """The answers of many programs, each None or source, to the problems beside them; run at the same time."""
        specs = [problem.program for _, problem in asked]
        sources = [source if spec else None for (source, _), spec in zip(asked, specs, strict=True)]
        ran = answers_of_programs(sources, [spec or ProgramSpec(()) for spec in specs], self._sandbox)
        as_text = [None if spec or not source else Answer("code", source) for (source, _), spec in zip(asked, specs, strict=True)]  # fmt: skip
        return [a or b for a, b in zip(ran, as_text, strict=True)]

    def correct(self, answer: Answer, gold: Answer, problem: Problem) -> bool:
        """Whether what a program puts out passes the tests in `gold`. Raises MmcorlError where these are no tests."""
        if problem.program is None:
            return answer == gold
        return self._correct(answer, gold, problem.program)

    def _passes(self, answer: Answer, gold: Answer, spec: ProgramSpec) -> bool:
        return outputs_pass(answer, spec, unit_tests_of(gold.value, spec), self._sandbox)

    def warm(self) -> None:
        """Start the sandbox's workers. Raises MmcorlError where this machine cannot run programs safely."""
        self._sandbox.warm()

    def close(self) -> None:
        """End the sandbox's workers."""
        self._sandbox.close()
