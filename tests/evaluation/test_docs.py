"""The worked example of the page on evaluation does what the page says."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

from PIL import Image

from mmcorl.cli.eval import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "evaluation.md").read_text()


def block(language: str, containing: str) -> str:
    [found] = [b for b in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL) if containing in b]
    return found


def test_adding_a_benchmark(tmp_path, monkeypatch):
    (tmp_path / "shapes.yaml").write_text(block("yaml", "name: shapes"))
    (tmp_path / "rows.jsonl").write_text(block("json", '"key": "s1"'))
    Image.new("RGB", (56, 56), "red").save(tmp_path / "square.png")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data_tools").symlink_to(ROOT / "data_tools")
    command = shlex.split(block("sh", "shapes.yaml"))
    assert command[0] == "mmcorl-eval" and main(command[1:]) == 0
    lines = (tmp_path / "results" / "shapes" / "shapes" / "problems.jsonl").read_text().splitlines()
    first, second = map(json.loads, lines)  # the third row is practice
    assert first["question"] == "How wide is the square?\n(Unit: cm)" and first["choices"] == ["3", "4", "5"]
    assert (first["gold"], second["gold"]) == ("B", "B")
    summary = json.loads((tmp_path / "results" / "shapes" / "summary.json").read_text())
    assert summary["scores"][0]["breakdown"]["colour"]["red"]["problems"] == 2


def test_the_commands_are_ones_that_the_parser_takes():
    from mmcorl.cli.eval import _parser

    shown = [
        line
        for b in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
        for line in b.replace("\\\n", "").splitlines()
    ]
    runs = [shlex.split(line)[1:] for line in shown if "--model" in line]
    assert len(runs) == 4
    for arguments in runs:
        assert _parser().parse_intermixed_args(arguments).model
