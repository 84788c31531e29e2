"""Texts of any size in a store whose values may not be: torch's TCP store refuses, and hangs up on, more than 8 MiB."""

from __future__ import annotations

import re
from itertools import count

from mmcorl.cohort.sealed import Sealed

PIECE = 4 << 20
"""Characters of one value."""

_LABEL = re.compile(rb"\+(\d{1,4})\n")


def post(store: Sealed, key: str, text: str, piece: int = PIECE) -> None:
    """Put an ASCII text that does not begin with `+` under `key`; what `collect` takes for more is under other keys.

    `key` itself is set last, so that who waits for it finds all.
    """
    assert text.isascii() and not text.startswith("+")
    pieces = [text[start : start + piece] for start in range(0, max(1, len(text)), piece)]
    for number, more in zip(count(1), pieces[1:], strict=False):
        store.set(f"{key}+{number}", more)
    store.set(key, pieces[0] if len(pieces) == 1 else f"+{len(pieces)}\n{pieces[0]}")


def collect(store: Sealed, key: str) -> bytes:
    """Take what was put under `key`, which must be there, out of the store."""
    first = store.get(key)
    store.delete_key(key)
    label = _LABEL.match(first)
    if label is None:
        return first
    pieces = [first[label.end() :]]
    for number in range(1, int(label[1])):
        pieces.append(store.get(f"{key}+{number}"))
        store.delete_key(f"{key}+{number}")
    return b"".join(pieces)
