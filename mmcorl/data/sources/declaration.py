"""What one data set is: where it lies, which columns it has and what is odd about them."""

from __future__ import annotations

import inspect
from pathlib import Path

from omegaconf import OmegaConf
from pydantic import field_validator

from mmcorl.config import ColumnsConfig, Section
from mmcorl.config_loading import read_yaml, validate
from mmcorl.data.hub import Hub
from mmcorl.data.quirks import QUIRKS, Quirk


class Declaration(Section):
    """One data set, as data: a row in this package, or a YAML file of one's own."""

    name: str
    hub: Hub | None = None
    """None for a set that is only given out as files."""
    columns: ColumnsConfig = ColumnsConfig()
    """Its columns, after `quirks` have changed the native row."""
    quirks: tuple[Quirk, ...] = ()
    """Changes of a native row, in order: the name of one of `mmcorl.data.quirks`, then columns or values."""
    facts: str
    """What it is, what its schema was taken from and what of that is unverified."""

    @field_validator("quirks")
    @classmethod
    def _known(cls, quirks: tuple[Quirk, ...]) -> tuple[Quirk, ...]:
        for name, *arguments in quirks:
            if name not in QUIRKS:
                raise ValueError(f"{name!r} is no quirk; there are {', '.join(QUIRKS)}")
            try:
                inspect.signature(QUIRKS[name]).bind({}, *arguments)
            except TypeError as error:
                raise ValueError(f"{name} with {arguments}: {error}") from None
        return quirks


def read_declaration(path: Path) -> Declaration:
    """The declaration in a YAML file, by default named as the file. Raises MmcorlError for a file that holds none."""
    tree = OmegaConf.to_container(read_yaml(path))
    assert isinstance(tree, dict)
    return validate(Declaration, {"name": path.stem, **tree}, str(path))
