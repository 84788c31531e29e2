"""Where commands print their tables."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def wide_console(columns: int = 120) -> Console:
    """Standard output; `columns` wide where it is no terminal, so that a table in a file or a pipe is not folded to 80."""
    from rich.console import Console  # rich takes a while to import

    return Console(width=None if sys.stdout.isatty() else columns)
