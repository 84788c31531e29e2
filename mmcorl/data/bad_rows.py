"""Rows that do not become problems."""

from __future__ import annotations

from mmcorl.errors import MmcorlError


class BadRow(MmcorlError):
    """A row that is no problem. `reason` says so without the row's own values, so that rows can be counted by it."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class LeftOut(BadRow):
    """A row that a data set's own rule leaves out, such as its filter by difficulty. No fault of the row."""
