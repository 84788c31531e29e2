"""Pages that add something are run as they stand: their files are saved, then their commands given in order."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from mmcorl.data.sources import declaration_of
from mmcorl.training.completions import read_completions

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_FILE = re.compile(r"[Ss]ave (?:this|it|them) as\s+`([\w.]+)`:\n\n```\w+\n(.*?)```", re.DOTALL)
_BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)

_PYTHON = shlex.quote(sys.executable)
_SCRIPTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
# The commands of this checkout and this interpreter, whatever else is installed.
_COMMANDS = "\n".join([
    f'python() {{ {_PYTHON} "$@"; }}',
    *(f'{name}() {{ {_PYTHON} -m {target.partition(":")[0]} "$@"; }}' for name, target in _SCRIPTS.items()),
])  # fmt: skip


def blocks(page: str, language: str) -> list[str]:
    return [
        text for found, text in _BLOCK.findall((DOCS / page).read_text(encoding="utf-8")) if found == language
    ]


@pytest.fixture
def follow(tmp_path: Path) -> Iterator[object]:
    """`follow(page)`: do what a page says in an empty folder that looks like a checkout, and return that folder."""

    def do(page: str) -> Path:
        for name in ("configs", "data_tools"):
            (tmp_path / name).symlink_to(ROOT / name)
        files = _FILE.findall((DOCS / page).read_text(encoding="utf-8"))
        assert files, f"{page} saves no file"
        for name, text in files:
            (tmp_path / name).write_text(text, encoding="utf-8")
        for commands in blocks(page, "sh"):
            ran = subprocess.run(
                ["bash", "-e"],
                input=f"{_COMMANDS}\n{commands}",
                cwd=tmp_path,
                env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
                capture_output=True,
                text=True,
            )
            assert ran.returncode == 0, f"{page}:\n{commands}\n{ran.stdout[-2000:]}\n{ran.stderr[-2000:]}"
        return tmp_path

    yield do


def test_adding_a_reward(follow):
    home = follow("add_a_reward.md")
    rewards: set[float] = set()
    for agent in ("qwen", "internvl"):
        folder = home / "runs" / "tiny" / "brief" / "agents" / agent
        steps = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        assert [line["step"] for line in steps if line["kind"] == "train"] == [1, 2]
        completions = [row for _, rows in read_completions(folder / "completions") for row in rows]
        for line in completions:
            assert line["reward"] == 0 or (line["reward"] == 1) == (len(line["text"]) <= 24)
        rewards |= {line["reward"] for line in completions}
    assert rewards >= {0.0, 0.5} or rewards >= {0.0, 1.0}


def test_adding_a_benchmark(follow):
    results = follow("add_a_benchmark.md") / "results" / "shapes"
    first, second = map(json.loads, (results / "shapes" / "problems.jsonl").read_text().splitlines())
    assert first["question"] == "How wide is the square?\n(Unit: cm)" and first["choices"] == ["3", "4", "5"]
    assert (first["gold"], second["gold"]) == ("B", "B")
    summary = json.loads((results / "summary.json").read_text())
    assert summary["scores"][0]["breakdown"]["colour"]["red"]["problems"] == 2


def test_adding_a_data_source(follow):
    home = follow("add_a_data_source.md")
    assert (home / "prepared" / "problems.parquet").is_file()
    (code,) = blocks("add_a_data_source.md", "python")
    defined: dict[str, object] = {}
    exec(code, defined)
    in_package, in_file = defined["ANGLES"], declaration_of(str(home / "angles.yaml"))
    assert in_package == in_file
