"""The programs of `eval/` as modules, and the result folders of `tests/evaluation`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).parent


def load(path: Path, name: str) -> ModuleType:
    """A file that is in no package."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # its dataclasses look their module up
    spec.loader.exec_module(module)
    return module


write_results = load(HERE.parent / "evaluation" / "conftest.py", "result_folders").write_results


@pytest.fixture(scope="session")
def paper() -> ModuleType:
    return load(HERE.parents[1] / "eval" / "paper.py", "paper")


@pytest.fixture(scope="session")
def official() -> ModuleType:
    return load(HERE.parents[1] / "eval" / "official.py", "official")
