"""Arguments that several commands take."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from mmcorl.errors import MmcorlError

_NAMED = re.compile(r"([A-Za-z0-9][\w.-]*)=(.+)")


def positive(text: str) -> int:
    """The type of a count."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is below 1")
    return value


def port(text: str) -> int:
    """The type of a TCP port; 0 is any free one."""
    value = int(text)
    if not 0 <= value < 2**16:
        raise argparse.ArgumentTypeError(f"{value} is no port, which is from 0 to 65535")
    return value


def named(given: Sequence[str], option: str) -> dict[str, str]:
    """Name -> model or file, of what `option` was given: `NAME=MODEL`, or `MODEL`, which is called by the last part of its
    path, less the suffix of a `.jsonl` file. Raises MmcorlError where two have one name.
    """
    found: dict[str, str] = {}
    for text in given:
        match = _NAMED.fullmatch(text)
        name, value = (
            (match[1], match[2]) if match else (Path(text).name.removesuffix(".jsonl") or text, text)
        )
        if name in found:
            raise MmcorlError(
                f"two models are called {name}; name them, as in {option} one={found[name]} {option} other={value}"
            )
        found[name] = value
    return found
