"""The tests of code benchmarks: the inputs in them, for votes, and the checks that they make, for golds.

Three forms are read: Python with a `check(candidate)` (HumanEval, EvalPlus), asserts as a JSON list or as Python (MBPP),
and a JSON list of `{"input", "output", "testtype"}` (LiveCodeBench). Nothing of a test is run here.
"""

from __future__ import annotations

import ast
import base64
import binascii
import builtins
import json
import pickletools
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from mmcorl.errors import MmcorlError
from mmcorl.sandbox.programs import ProgramSpec

MAX_CASES = 64  # of a problem; EvalPlus has a thousand for some, and a vote needs no more
MAX_UNPACKED = 256 << 20  # bytes
_BUILTINS = frozenset(dir(builtins))
_AS_LIST = "(lambda value: list(value) if isinstance(value, tuple) else value)"


@dataclass(frozen=True)
class UnitTests:
    """What a right program must do.

    `checks` are statements that must not raise, run after the program and `setup`; `pairs` are standard inputs, each with
    the output that is expected.
    """

    checks: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    setup: str = ""


def read_tests(text: str, entry_point: str | None = None, setup: str = "") -> UnitTests:
    """The tests that a benchmark's row holds.

    `entry_point` names the function under test: a `check(candidate)` and LiveCodeBench's functional tests need it.
    `setup` is source that the asserts need. Raises MmcorlError for tests of another form.
    """
    rows = _json_list(text)
    if rows is None:
        return _python_tests(text, entry_point, setup)
    if all(isinstance(row, str) for row in rows):
        return UnitTests(tuple(rows), setup=setup)
    if not all(isinstance(row, dict) and {"input", "output"} <= row.keys() for row in rows):
        raise MmcorlError(f"tests are neither asserts nor inputs with outputs: {text[:80]!r}")
    if any(row.get("testtype") == "functional" for row in rows):
        calls = [(_method_call(row["input"], entry_point), json.loads(row["output"])) for row in rows]
        return UnitTests(
            tuple(f"assert {_AS_LIST}({call}) == {value!r}" for call, value in calls), setup=setup
        )
    return UnitTests(pairs=tuple((row["input"], row["output"]) for row in rows))


def program_spec(text: str, entry_point: str | None = None, before: str = "", setup: str = "") -> ProgramSpec:
    """The inputs in a row's tests, without what is expected of them: two rows that differ in expected outputs alone
    give the same. No cases where no input stands in the tests, as where they are drawn at random.

    `before` is source that the task gives ahead of the program. Raises MmcorlError for tests of another form.
    """
    rows = _json_list(text)
    spec = ProgramSpec((), before=before, after=setup)
    if rows is None or all(isinstance(row, str) for row in rows):
        tree = _parsed(text if rows is None else "\n".join(rows))
        return replace(spec, cases=_first(_calls(tree, entry_point)))
    tests = read_tests(text, entry_point)
    if tests.pairs:
        return replace(spec, cases=_first(given for given, _ in tests.pairs), reads="stdin")
    return replace(spec, cases=_first(_method_call(row["input"], entry_point) for row in rows))


def unit_tests_of(text: str, spec: ProgramSpec) -> UnitTests:
    """The tests in a row whose `program_spec` is `spec`. Raises MmcorlError for tests of another form."""
    entry_point = called_name(spec.cases[0]) if spec.cases and spec.reads == "calls" else None
    return read_tests(text, entry_point, spec.after)


def unpack_tests(text: str) -> str:
    """LiveCodeBench's private tests: base64 of zlib of a pickled string of JSON. Nothing is unpickled: the one string
    is taken from the stream, and a stream that holds anything else is refused. Raises MmcorlError.
    """
    try:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(base64.b64decode(text, validate=True), MAX_UNPACKED)
        if not unpacker.eof:
            raise MmcorlError(f"private tests are cut off or larger than {MAX_UNPACKED} bytes")
        strings = []
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name in ("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"):
                strings.append(argument)
            elif opcode.name not in ("PROTO", "FRAME", "MEMOIZE", "BINPUT", "LONG_BINPUT", "STOP"):
                raise MmcorlError(f"private tests hold more than a string ({opcode.name})")
    except (binascii.Error, zlib.error, ValueError) as error:
        raise error if isinstance(error, MmcorlError) else MmcorlError(f"private tests: {error}") from None
    if len(strings) != 1:
        raise MmcorlError(f"private tests hold {len(strings)} strings instead of one")
    return strings[0]


def called_name(case: str) -> str:
    """The function, or the method of Solution, that a case of a `ProgramSpec` calls."""
    match ast.parse(case, mode="eval").body:
        case ast.Call(func=ast.Name(name)) | ast.Call(func=ast.Attribute(attr=name)):
            return name
    raise ValueError(f"not a call: {case}")


def _json_list(text: str) -> list | None:
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return rows if isinstance(rows, list) and rows else None


def _parsed(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise MmcorlError(f"tests that are no Python ({error}): {source[:80]!r}") from None


def _python_tests(text: str, entry_point: str | None, setup: str) -> UnitTests:
    tree = _parsed(text)
    if any(isinstance(node, ast.FunctionDef) and node.name == "check" for node in tree.body):
        if entry_point is None:
            raise MmcorlError("tests with a check(candidate) need the entry point, the function under test")
        return UnitTests((f"check({entry_point})",), setup=f"{setup}\n{text}")
    asserts = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Assert)]
    others = [ast.unparse(node) for node in tree.body if not isinstance(node, ast.Assert)]
    if not asserts:
        raise MmcorlError(f"tests without an assert: {text[:80]!r}")
    return UnitTests(tuple(asserts), setup="\n".join(filter(None, (setup, *others))))


def _method_call(text: str, name: str | None) -> str:
    """LiveCodeBench's functional input, a JSON value a line, as a call of the method under test."""
    if name is None:
        raise MmcorlError("functional tests need the entry point, the method of Solution under test")
    return f"Solution().{name}({', '.join(repr(json.loads(line)) for line in text.splitlines())})"


def _calls(tree: ast.Module, entry_point: str | None) -> Iterator[str]:
    """Calls of the function under test in asserts, as far as their arguments stand in them."""
    check = next((n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "check"), None)
    alias = check.args.args[0].arg if check and check.args.args else None
    called = [
        node for node in _asserted(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    names = [node.func.id for node in called if isinstance(node.func, ast.Name)]
    entry = entry_point or next((name for name in names if name not in _BUILTINS), next(iter(names), None))
    if entry is None:
        return
    for row in _listed_inputs(tree):
        yield f"{entry}(*{ast.unparse(row)})"
    local = _bound_within(tree)
    for node, name in zip(called, names, strict=True):
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        if name in (entry, alias) and not any(_names(argument) & local for argument in arguments):
            node.func = ast.Name(entry, ast.Load())
            yield ast.unparse(node)


def _asserted(tree: ast.Module) -> Iterator[ast.AST]:
    """The expressions in asserts, outer ones first."""
    for statement in ast.walk(tree):
        if isinstance(statement, ast.Assert):
            yield from ast.walk(statement.test)


def _listed_inputs(tree: ast.Module) -> Iterator[ast.expr]:
    """EvalPlus: `inputs = [[...], ...]`, each the arguments of one call."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name("inputs")], value=ast.List(rows)):
                yield from (row for row in rows if not _names(row))


def _bound_within(tree: ast.Module) -> set[str]:
    """Names that have a value only while a function or a loop of the tests runs, its imports included."""
    names: set[str] = set()
    for block in tree.body:
        if isinstance(block, ast.FunctionDef | ast.For | ast.While | ast.With):
            for node in ast.walk(block):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    names.add(node.id)
                elif isinstance(node, ast.Import | ast.ImportFrom):
                    names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return names


def _names(node: ast.expr) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _first(cases: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(cases))[:MAX_CASES]
