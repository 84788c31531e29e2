"""Python files of the user's own, named by a setting: run as any program that is started by its name."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from mmcorl.errors import MmcorlError


def module_of(path: Path, setting: str) -> ModuleType:
    """The module that a Python file is. Raises MmcorlError, which begins with `setting`, where it cannot be run."""
    path = path.expanduser()
    spec = spec_from_file_location(f"mmcorl_own_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        where = "" if path.is_absolute() else f" below {Path.cwd()}"
        what = "is no Python file" if path.is_file() else f"does not exist{where}"
        raise MmcorlError(f"{setting}: {path} {what}")
    module = sys.modules[spec.name] = module_from_spec(spec)  # dataclasses and `inspect` look their module up
    try:
        spec.loader.exec_module(module)
    except (SyntaxError, ImportError, NameError) as error:
        raise MmcorlError(f"{setting}: {path} cannot be run: {error}") from error
    return module
