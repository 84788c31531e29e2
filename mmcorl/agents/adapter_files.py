"""Folders of adapters as peft writes them: which model they belong to, without loading anything."""

from __future__ import annotations

import json
from pathlib import Path

from mmcorl.errors import MmcorlError

CONFIG = "adapter_config.json"
"""The file by which a folder is known to hold adapters; it names the model that they belong to."""

WEIGHTS = "adapter_model.safetensors"


def base_of(model: str) -> str | None:
    """The model that the adapters in a folder belong to; None where `model` is no folder of adapters.

    Raises MmcorlError where that model is a folder that is not there.
    """
    path = Path(model) / CONFIG
    if not path.is_file():
        return None
    try:
        base = json.loads(path.read_text(encoding="utf-8"))["base_model_name_or_path"]
    except (ValueError, KeyError) as error:
        raise MmcorlError(f"{path} does not name the model of its adapters ({error})") from None
    if Path(base).is_absolute() and not Path(base).is_dir():
        raise MmcorlError(
            f"{model} holds adapters of {base}, which does not exist here; put that model there, or write its place as "
            f"base_model_name_or_path into {path}"
        )
    return base
