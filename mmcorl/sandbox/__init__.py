"""Sandbox: runs programs that nobody has read, behind walls that they cannot climb. Linux only."""

from mmcorl.sandbox.pool import Sandbox, run_programs
from mmcorl.sandbox.programs import Limits, Outcome, Program, ProgramSpec

__all__ = ["Limits", "Outcome", "Program", "ProgramSpec", "Sandbox", "run_programs"]
