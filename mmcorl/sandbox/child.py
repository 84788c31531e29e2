"""What happens in the process of one program, behind its walls. Never returns to the server's code."""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import types
from typing import NoReturn

from mmcorl.sandbox.programs import Program
from mmcorl.sandbox.values import bounded, canonical

LOADED = -1  # the index of the message that says that the source ran


def run_calls(program: Program, first: int, results: int) -> NoReturn:
    """Run the source, then the cases from `first` on; write a line `[index, status, value]` after each."""

    def tell(index: int, status: str, value: str) -> None:
        line = json.dumps([index, status, value]).encode() + b"\n"
        while line:
            line = line[os.write(results, line) :]

    module = _prepare("program")
    try:
        exec(compile(program.source, "<program>", "exec"), module.__dict__)
    except BaseException as error:
        tell(LOADED, "error", _described(error))
        os._exit(0)
    tell(LOADED, "ok", "")
    for index in range(first, len(program.cases)):
        try:
            value = bounded(_value(program.cases[index], module))
        except BaseException as error:
            tell(index, "error", _described(error))
        else:
            tell(index, "ok", value)
    os._exit(0)


def run_whole(program: Program) -> NoReturn:
    """Run the source as a script that reads standard input. Exits with 0 only if it ended well."""
    module = _prepare("__main__")
    code = 0
    try:
        exec(compile(program.source, "<program>", "exec"), module.__dict__)
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:
        code = 1
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    sys.stdout.flush()
    os._exit(code & 0xFF)


def _prepare(name: str) -> types.ModuleType:
    """A clean main module: no environment, fresh standard streams, the same random numbers in every run."""
    os.environ.clear()
    random.seed(0)
    sys.argv = ["program.py"]
    sys.stdin = open(0, encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
    module = types.ModuleType(name)
    sys.modules[name] = module
    return module


def _value(case: str, module: types.ModuleType) -> str:
    try:
        code = compile(case, "<case>", "eval")
    except SyntaxError:
        exec(compile(case, "<case>", "exec"), module.__dict__)
        return "None"
    return canonical(eval(code, module.__dict__))


def _described(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"[:200]
    except BaseException:  # its own __str__ may do anything
        return type(error).__name__
