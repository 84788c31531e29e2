"""The benchmarks and suites there are, and declarations of one's own."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path

from omegaconf import OmegaConf

from mmcorl.config_loading import read_yaml, validate
from mmcorl.errors import MmcorlError
from mmcorl.evaluation.declaration import Declaration

_ROOM = Path(str(files("mmcorl.evaluation")))


def benchmark_names() -> list[str]:
    return sorted(path.stem for path in (_ROOM / "benchmarks").glob("*.yaml"))


def suites() -> dict[str, list[str]]:
    """Suite -> names of its benchmarks."""
    tree = OmegaConf.to_container(read_yaml(_ROOM / "suites.yaml"))
    assert isinstance(tree, dict)
    return {str(name): list(members) for name, members in tree.items()}


def load_declaration(name: str) -> Declaration:
    """A benchmark by its name, or a YAML file of one's own by its path.

    Raises MmcorlError for an unknown name, with the nearest one, and for a file that declares no benchmark.
    """
    if name.endswith((".yaml", ".yml")):
        return _read(Path(name))
    if name not in (known := benchmark_names()):
        raise MmcorlError(_unknown("benchmark", name, known, "or the path of a YAML file that declares one"))
    return _read(_ROOM / "benchmarks" / f"{name}.yaml")


def chosen(suite_names: Iterable[str], names: Iterable[str]) -> list[Declaration]:
    """The declarations of suites and single benchmarks, each once, in the order they are named."""
    known = suites()
    every: list[str] = []
    for suite in suite_names:
        if suite not in known:
            raise MmcorlError(_unknown("suite", suite, list(known), "or benchmarks with --benchmarks"))
        every += known[suite]
    declarations = {d.name: d for d in map(load_declaration, dict.fromkeys([*every, *names]))}
    return list(declarations.values())


def _read(path: Path) -> Declaration:
    tree = OmegaConf.to_container(read_yaml(path))
    declaration = validate(Declaration, tree, str(path))
    if declaration.name != path.stem:
        raise MmcorlError(f"{path}: name={declaration.name} must be the file's, {path.stem}")
    return declaration


def _unknown(what: str, name: str, known: Sequence[str], otherwise: str) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    hint = f"; the nearest is {near[0]}" if near else ""
    return f"there is no {what} {name!r}{hint}. Name one of {', '.join(known)}, {otherwise}"
