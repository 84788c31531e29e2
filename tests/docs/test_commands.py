"""Commands on the pages are ones that there are: their options are taken, and their settings exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from mmcorl.config_loading import load_config

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def commands(page: Path) -> Iterator[list[str]]:
    """The words of every command of mmcorl in the page's blocks."""
    text = page.read_text(encoding="utf-8")
    fenced = re.findall(r"```(?:sh)?\n(.*?)```", text, re.DOTALL)
    indented = re.findall(
        r"(?:^(?: {4}.*)\n)+", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE
    )
    for block in (*fenced, *indented):
        for line in re.sub(r"\\\n\s*", "", block).splitlines():
            line = line.strip().partition("$ ")[2] or line.strip()
            if re.match(r"mmcorl-\w+ (?!.*\[)", line):
                words = shlex.split(line, comments=True)
                yield [word for word in words if not word.startswith("$")]  # variables of the page's shell


ALL = [(page.name, words) for page in PAGES for words in commands(page)]


def test_there_are_some():
    assert len(ALL) > 30


@pytest.mark.parametrize(
    ("page", "words"), ALL, ids=lambda value: value if isinstance(value, str) else " ".join(value)
)
def test_a_command_is_taken(page, words, monkeypatch):
    monkeypatch.chdir(ROOT)
    name, *arguments = words
    module = import_module(f"mmcorl.cli.{name.removeprefix('mmcorl-')}")
    if arguments[0] in ("rescore", "compare"):
        options = module._commands().parse_args(arguments)
    elif name == "mmcorl-data":  # commands of its own are not taken among other arguments
        options = module._parser().parse_args(arguments)
    else:
        options = module._parser().parse_intermixed_args(arguments)
    if name == "mmcorl-train" and Path(options.config).is_file():
        load_config(Path(options.config), options.overrides)
