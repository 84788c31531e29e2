"""Packages that only some settings need."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from types import ModuleType

from mmcorl.errors import MmcorlError


def require_installed(package: str, setting: str, extra: str) -> None:
    """Raise MmcorlError, which names `setting` and what to install, where the package is not there."""
    if find_spec(package) is None:
        raise MmcorlError(
            f"{setting} needs {package}, which is not installed: pip install 'mmcorl[{extra}]', or leave it out"
        )


def require_extra(package: str, setting: str, extra: str) -> ModuleType:
    """The package, imported, after `require_installed`."""
    require_installed(package, setting, extra)
    return importlib.import_module(package)
