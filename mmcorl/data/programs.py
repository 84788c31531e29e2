"""What the programs that answer a code problem are run on, out of a row's columns.

A row has tests, which are its gold answer and whose inputs are the problem's `ProgramSpec`. Or it has a spec of its own, as
rows of prepared folders do; then it needs no tests, and has perhaps some as its answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from mmcorl.config import ColumnsConfig
from mmcorl.data.bad_rows import BadRow
from mmcorl.errors import MmcorlError
from mmcorl.problems import Gold
from mmcorl.sandbox import ProgramSpec
from mmcorl.sandbox.unit_tests import called_name, program_spec, read_tests, unit_tests_of

Row = Mapping[str, Any]


def has_program(row: Row, columns: ColumnsConfig) -> bool:
    """Whether a row has tests or a spec, and so is a code problem where it does not say what it is."""
    return bool(_tests(row, columns.tests)) or isinstance(_cell(row, columns.program), Mapping)


def read_program(row: Row, columns: ColumnsConfig) -> tuple[ProgramSpec | None, Gold | None]:
    """What programs are run on, which never depends on what the tests expect of them, and the tests; None for either
    where the row does not have it.

    Raises BadRow for tests that cannot be read, for tests without inputs (as where all are drawn at random), which
    would leave every program without an answer, and for what is no `ProgramSpec`.
    """
    tests = _tests(row, columns.tests)
    if (value := _cell(row, columns.program)) is not None:
        spec, tests = _spec(value, columns.program), tests or _tests(row, columns.answer)
        with _readable():
            return spec, Gold(tests) if tests and unit_tests_of(tests, spec) else None
    if not tests:
        return None, None
    entry_point = _text(row, columns.entry_point) or None
    before, setup = _text(row, columns.before), _text(row, columns.setup)
    with _readable():
        read_tests(tests, entry_point, setup)
        spec = program_spec(tests, entry_point, before, setup)
    if not spec.cases:
        raise BadRow(
            "tests without inputs", f"no call with its arguments stands in the tests {_shown(tests)}"
        )
    return spec, Gold(tests)


def stored_program(spec: ProgramSpec | None) -> dict[str, Any] | None:
    """A spec as `read_program` takes it."""
    return None if spec is None else {**asdict(spec), "cases": list(spec.cases)}


def _spec(value: Any, column: str | None) -> ProgramSpec:
    match value:
        case {"cases": [str(), *_] as cases, **others} if (
            others.keys() <= {"reads", "before", "after"}
            and others.get("reads", "calls") in ("calls", "stdin")
            and all(isinstance(text, str) for text in (*cases, *others.values()))
        ):
            spec = ProgramSpec(tuple(cases), **others)
            if spec.reads == "stdin" or _is_call(cases[0]):
                return spec
    raise BadRow(
        "program cannot be read",
        f"the column `{column}` holds {_shown(value)}, not `cases` (calls as text, or with `reads: stdin` what is read) "
        "and perhaps `before` and `after` (source around the program)",
    )


def _is_call(case: str) -> bool:
    try:
        return bool(called_name(case))
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return False


@contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except MmcorlError as error:
        raise BadRow("tests cannot be read", str(error)) from None


def _tests(row: Row, column: str | None) -> str:
    """Tests as text, a list of them as JSON; empty where there are none."""
    value = _cell(row, column)
    if value is None or value != value or value == []:  # NaN is a missing value
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def _text(row: Row, column: str | None) -> str:
    value = _cell(row, column)
    if value is None or isinstance(value, str):
        return value or ""
    raise BadRow("source is not text", f"the column `{column}` holds {_shown(value)}, not text")


def _cell(row: Row, column: str | None) -> Any:
    return None if column is None else row.get(column)


def _shown(value: Any) -> str:
    return f"{value!r:.120}"
