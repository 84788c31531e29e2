"""What the sandbox is given and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MAX_VALUE = 10_000  # characters of one value that a call gives back


@dataclass(frozen=True)
class Limits:
    """What one program may use. A program that goes past a limit is killed.

    `case_seconds` is CPU time for one case, which may take three times that on the clock; `program_seconds` is on the clock,
    for all of a program's cases together. `output_bytes` is what one
    process may print, `files_bytes` what may lie in its scratch folder, and `threads` how many it may have. Memory is
    address space. With `unprotected`, walls that this machine cannot raise are left out instead of refused.
    """

    case_seconds: float = 2.0
    program_seconds: float = 10.0
    memory_bytes: int = 1 << 30
    output_bytes: int = 1 << 20
    files_bytes: int = 16 << 20
    threads: int = 16
    unprotected: bool = False


@dataclass(frozen=True)
class Program:
    """Python source and the cases to run it on.

    With `reads="calls"`, a case is Python to run after the source, in the same process: an expression such as
    `f(1, [2])`, which gives its value, or statements such as `assert f(1) == 2`, which give `None`. With
    `reads="stdin"`, every case is the standard input of a run of its own, which gives what it prints.
    With `until_failure`, cases after the first that is not `ok` are not run.
    """

    source: str
    cases: tuple[str, ...]
    reads: Literal["calls", "stdin"] = "calls"
    until_failure: bool = False


@dataclass(frozen=True)
class ProgramSpec:
    """What the programs that answer one code problem are run on. Expected outputs are no part of it.

    `cases` and `reads` are those of `Program`. `before` is source that the task gives (imports, helpers, the stub of the
    function to write), `after` is source that needs the program and comes before the cases (it builds their arguments).
    """

    cases: tuple[str, ...]
    reads: Literal["calls", "stdin"] = "calls"
    before: str = ""
    after: str = ""

    def program(self, source: str) -> Program:
        """An answer to the problem, as it is run on the cases."""
        return Program("\n".join(filter(None, (self.before, source, self.after))), self.cases, self.reads)


@dataclass(frozen=True)
class Outcome:
    """How one case ended.

    `ok`: `value` is the canonical value of the expression, or what was printed. `error`: it raised, and `value` names
    what. `killed`: it went past a limit or ended itself, and `value` says so.
    """

    status: Literal["ok", "error", "killed"]
    value: str
