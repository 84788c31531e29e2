"""Parts of what a process holds, and when it holds them."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Item:
    """Bytes of one part at four moments of a step.

    These are: while the process samples, at the end of the forward pass, at the fullest moment of the backward pass,
    and in the optimiser's step.
    """

    name: str
    sampling: int = 0
    forward: int = 0
    backward: int = 0
    stepping: int = 0

    @staticmethod
    def always(name: str, size: int) -> Item:
        """A part that never comes or goes."""
        return Item(name, size, size, size, size)


MOMENTS = tuple(field.name for field in fields(Item))[1:]
