"""The worked example of `docs/data.md`, run as it stands there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from mmcorl.config import DataConfig
from mmcorl.data import sources
from mmcorl.data.loading import load_problems
from mmcorl.data.sources import SOURCES
from mmcorl.problems import Gold, Problem

PAGE = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_worked_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (code,), (row,) = blocks("python"), blocks("json")
    defined: dict[str, Any] = {}
    exec(code, defined)
    declaration = defined["ANGLES"]
    monkeypatch.setitem(sources.SOURCES, declaration.name, declaration)
    (tmp_path / "rows.jsonl").write_text(row)
    figure = json.loads(row)["figure"]
    Image.new("RGB", (8, 8)).save(tmp_path / figure)
    data = load_problems(DataConfig(source="angles", path=str(tmp_path / "rows.jsonl")))
    asked = "<image> Which angle is larger?"
    assert data.problems == [Problem("17", asked, (tmp_path / figure,), ("ABC", "BCD"), "choice")]
    assert data.golds == {"17": Gold("B")}


def test_the_page_names_every_source():
    table = PAGE.partition("## Public sources")[2].partition("## Files")[0]
    assert set(re.findall(r"`([\w-]+)`", table)) >= set(SOURCES)
