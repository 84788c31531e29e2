"""The canonical text of a value, by which the outputs of two programs are compared."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from mmcorl.sandbox.programs import MAX_VALUE

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


class Unreadable(Exception):
    """A value that is known by its place in memory only, such as a generator or a function."""


def canonical(value: object) -> str:
    """`repr`, but without what does not count for `==`: the order of sets and dictionaries, and subclasses of the
    built-in containers and strings.

    Raises Unreadable for a value whose `repr` holds an address.
    """
    match value:
        case bool() | complex() | bytes() | None:
            return repr(value)
        case int():
            return repr(int(value))
        case float():
            return repr(float(value))
        case str():
            return repr(str(value))
        case list():
            return f"[{_joined(map(canonical, value))}]"
        case tuple():
            return f"({canonical(value[0])},)" if len(value) == 1 else f"({_joined(map(canonical, value))})"
        case set() | frozenset():
            return "{" + _joined(sorted(map(canonical, value))) + "}" if value else "set()"
        case dict():
            items = sorted((canonical(k), canonical(v)) for k, v in value.items())
            return "{" + _joined(f"{k}: {v}" for k, v in items) + "}"
    text = repr(value)
    if _ADDRESS.search(text):
        raise Unreadable(f"{type(value).__name__} has no value that could be compared")
    return text


def bounded(value: str) -> str:
    """A long value as its digest, which still tells different values apart."""
    if len(value) <= MAX_VALUE:
        return value
    digest = hashlib.blake2b(value.encode("utf-8", "replace"), digest_size=16).hexdigest()
    return f"<{len(value)} characters, blake2b {digest}>"


def _joined(parts: Iterable[str]) -> str:
    return ", ".join(parts)
