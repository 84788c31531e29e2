"""What one public data set is: where it lies, which columns it has and what is odd about them."""

from __future__ import annotations

from dataclasses import dataclass

from mmcorl.config import ColumnsConfig
from mmcorl.data.hub import Hub
from mmcorl.data.quirks import Quirk


@dataclass(frozen=True)
class Declaration:
    """One public data set, as data.

    `columns` name its columns after `quirks` have changed the native row, in order. `hub` is None for a set that is
    only given out as files. `facts` says what it is, what its schema was taken from and what of that is unverified.
    """

    name: str
    hub: Hub | None
    columns: ColumnsConfig
    quirks: tuple[Quirk, ...]
    facts: str
