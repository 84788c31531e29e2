"""Public training sets by name. A row here is all that a new one needs; `docs/data.md` adds one step by step."""

from __future__ import annotations

import difflib

from mmcorl.data.sources.declaration import Declaration
from mmcorl.data.sources.text import TEXT
from mmcorl.data.sources.visual import VISUAL
from mmcorl.errors import MmcorlError

SOURCES: dict[str, Declaration] = {declaration.name: declaration for declaration in (*VISUAL, *TEXT)}

__all__ = ["SOURCES", "Declaration", "declaration_of"]


def declaration_of(name: str, setting: str = "data.train.source") -> Declaration:
    """The declaration of a source. Raises MmcorlError for an unknown name, with the nearest there is."""
    if name in SOURCES:
        return SOURCES[name]
    nearest = difflib.get_close_matches(name, SOURCES, n=1, cutoff=0)[0]
    raise MmcorlError(
        f"{setting}={name} is no public source; the nearest is {nearest}, and there are {', '.join(SOURCES)}"
    )
