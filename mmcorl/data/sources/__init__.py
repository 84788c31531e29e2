"""Public training sets by name. A row here is all that a new one needs; `docs/add_a_data_source.md` adds one."""

from __future__ import annotations

import difflib
from pathlib import Path

from mmcorl.data.sources.declaration import Declaration, read_declaration
from mmcorl.data.sources.text import TEXT
from mmcorl.data.sources.visual import VISUAL
from mmcorl.errors import MmcorlError

SOURCES: dict[str, Declaration] = {declaration.name: declaration for declaration in (*VISUAL, *TEXT)}

__all__ = ["SOURCES", "Declaration", "declaration_of", "is_declared"]


def declaration_of(name: str, setting: str = "data.train.source") -> Declaration:
    """The declaration of a source: one of this package by its name, or a YAML file by its path.

    Raises MmcorlError for an unknown name, with the nearest there is, and for a file that declares none.
    """
    if name in SOURCES:
        return SOURCES[name]
    if is_declared(name):
        return read_declaration(Path(name).expanduser())
    nearest = difflib.get_close_matches(name, SOURCES, n=1, cutoff=0)[0]
    raise MmcorlError(
        f"{setting}={name} is no public source; the nearest is {nearest}. There are {', '.join(SOURCES)}, and the path of a "
        "YAML file that declares your own"
    )


def is_declared(name: str) -> bool:
    """Whether a name is that of a declaration, here or in a YAML file, and not of a file with rows."""
    return name in SOURCES or name.endswith((".yaml", ".yml"))
