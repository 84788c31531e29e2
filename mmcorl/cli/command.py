"""How every command ends: a user's mistake is one message and exit code 2, Ctrl-C is 130, neither is a traceback."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable

from mmcorl.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USER_ERROR, MmcorlError, PeerLost


def run_command(work: Callable[[], int]) -> int:
    """Do a command's work and return its exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as stderr is: rows and names hold any text
    try:
        code = work()
        sys.stdout.flush()
        return code
    except MmcorlError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return EXIT_FAILED if isinstance(error, PeerLost) else EXIT_USER_ERROR
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # the reader of a pipe has seen enough; what is still buffered goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
