"""With what a run was made: versions, the commit and the devices. Nothing here tells whose machine it was."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

_PACKAGES = ("mmcorl", "torch", "transformers", "accelerate", "vllm", "deepspeed", "peft", "bitsandbytes")


def environment() -> dict[str, str]:
    """Names and versions. The commit is that of a checkout of mmcorl, with `+` where files in it were changed."""
    found = {"python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    found["torch"] = str(torch.__version__)  # with the build, which its metadata leaves out
    if commit := _commit():
        found["commit"] = commit
    if torch.cuda.is_available():
        names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
        found["devices"] = ", ".join(names)
    else:
        found["devices"] = f"{os.cpu_count()} CPU cores"
    return found


def _commit() -> str | None:
    package = Path(__file__).parents[1]
    if not (
        package.parent / ".git"
    ).exists():  # a checkout of something else may lie around an installed package
        return None

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(package), *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    try:
        changed = "+" if git("status", "--porcelain", "--untracked-files=no") else ""
        return git("rev-parse", "--short", "HEAD") + changed
    except (OSError, subprocess.CalledProcessError):  # no git here, or none that reads this checkout
        return None
