"""The page that adds a backbone, done as it stands: its files saved, its commands given, its code run, in order."""

from __future__ import annotations

import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest

from mmcorl.agents.backbones import BACKBONES
from mmcorl.agents.contract import POINTS
from mmcorl.cli.check import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "add_a_backbone.md").read_text(encoding="utf-8")
BLOCKS = re.compile(
    r"(?:Save this as\s+`(?P<file>[\w.]+)`:\n\n)?```(?P<language>\w+)\n(?P<text>.*?)```", re.DOTALL
)


def test_the_page_is_true(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in BACKBONES:
        monkeypatch.setitem(BACKBONES, name, BACKBONES[name])  # set back after the page has replaced one
    printed, done, codes = "", [], []
    for block in BLOCKS.finditer(PAGE):
        text, language = block["text"], block["language"]
        done.append(language)
        if block["file"]:
            Path(block["file"]).write_text(text)
        elif language == "sh":
            program, *words = shlex.split(text)
            if program == "python":
                monkeypatch.setattr(sys, "argv", words)
                runpy.run_path(str(ROOT / words[0]), run_name="__main__")
            else:
                assert program == "mmcorl-check"
                codes.append(main(words))
            printed = capsys.readouterr().out
        elif language == "text":
            for line in text.splitlines():
                assert line in printed
        else:
            exec(compile(text, "add_a_backbone.md", "exec"), {})
    assert done == ["sh", "sh", "text", "sh", "text", "python", "sh", "text", "python"]
    assert codes == [0, 1, 0]


def test_the_page_has_every_point_and_every_family():
    table = PAGE[PAGE.index("| point |") : PAGE.index("## 3.")]
    assert table.count("\n| ") - 1 == len(POINTS)
    assert f"of the {len(POINTS)} points" in PAGE
    families = PAGE[PAGE.index("## The families") :]
    assert set(re.findall(r"\(`(\w+)`\)", families)) == set(BACKBONES)


@pytest.mark.parametrize("row", re.findall(r"`(\w+\.py)` \| (\d+) \|", PAGE), ids=lambda row: row[0])
def test_lines_of_code_are_counted(row):
    file, lines = row
    source = (ROOT / "mmcorl" / "agents" / "backbones" / file).read_text(encoding="utf-8")
    assert sum(bool(line.strip()) for line in source.splitlines()) == int(lines)
