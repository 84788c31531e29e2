"""A command ends with an exit code and prints what its encoding cannot write as escapes."""

from __future__ import annotations

import io
import sys

import pytest

from mmcorl.cli.command import run_command
from mmcorl.errors import EXIT_INTERRUPTED, EXIT_USER_ERROR, MmcorlError


def test_a_mistake_is_one_message_and_an_interrupt_none(capsys: pytest.CaptureFixture[str]):
    def mistaken() -> int:
        raise MmcorlError("x=3 is above 2")

    def interrupted() -> int:
        raise KeyboardInterrupt

    assert run_command(mistaken) == EXIT_USER_ERROR
    assert capsys.readouterr().err == "error: x=3 is above 2\n"
    assert run_command(interrupted) == EXIT_INTERRUPTED
    assert capsys.readouterr().err == ""


def test_text_that_cannot_be_encoded_is_escaped(monkeypatch: pytest.MonkeyPatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    assert run_command(lambda: print("é \ud800") or 0) == 0
    assert written.getvalue() == b"\\xe9 \\ud800\n"
