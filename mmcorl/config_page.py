"""The configuration reference, written from the tree itself.

python -m mmcorl.config_page > docs/configuration.md
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from annotated_types import Ge, Gt, Le, Lt
from pydantic.fields import FieldInfo

from mmcorl.config import Config
from mmcorl.config_loading import inner_sections

_INTRO = """\
# Configuration

One YAML file describes a run. Every setting can be changed on the command line by its dotted path, with a YAML value:

    mmcorl-train configs/quickstart.yaml rollouts.per_problem=16 agents.qwen.model=PATH

A file may start from another one, named relative to itself: `base: quickstart.yaml`. Mappings are merged key by key,
lists and single values replace those of the base, and `agents.NAME: null` takes an agent out. Unknown settings, values
of the wrong type and two entries of one name are errors; nothing is read from environment variables. The resolved
configuration, defaults included, is saved with the run and shown by `mmcorl-train ... --print-config`.

This page is written by `python -m mmcorl.config_page`.
"""
_TABLE_HEAD = "| setting | values | default | meaning |\n| --- | --- | --- | --- |"


def describe() -> str:
    """The page in Markdown: every setting with its values, its default and its docstring."""
    parts = [_INTRO]
    for name, field in Config.model_fields.items():
        rows = [f"| {' | '.join(cells)} |" for cells in _rows(name, field)]
        parts.append("\n".join([f"## {name}\n", f"{_flow(field.description)}\n", _TABLE_HEAD, *rows]) + "\n")
    return "\n".join(parts)


def _rows(path: str, field: FieldInfo) -> Iterator[tuple[str, str, str, str]]:
    """Table cells of a field, or of the settings inside it; a section that may be null has a row of its own too."""
    section, key = next(inner_sections(field.annotation, {"NAME": None}), (None, ""))
    if path == "data.eval":
        yield f"`{path}`", "settings as of `data.train`, or null", _default(field), _flow(field.description)
    elif section is None:
        yield (
            f"`{path}`",
            _values(field.annotation, field.metadata),
            _default(field),
            _flow(field.description),
        )
    else:
        if field.default is None:
            yield f"`{path}`", "the settings below, or null", _default(field), _flow(field.description)
        for name, inner in section.model_fields.items():
            yield from _rows(".".join(part for part in (path, key, name) if part), inner)


def _flow(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default()
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case tuple():
            return f"`[{', '.join(str(item) for item in value)}]`"
        case _:
            return f"`{value}`"


def _values(annotation: Any, bounds: Sequence[Any] = ()) -> str:
    """A type in words, with its bounds."""
    arguments = typing.get_args(annotation)
    if annotation in (int, float):
        limits = [_bound(bound) for bound in bounds]
        return " ".join([_PLAIN[annotation], " and ".join(limits)]).strip()
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if typing.get_origin(annotation) is Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if typing.get_origin(annotation) is tuple:
        length = "" if arguments[-1] is Ellipsis else f"{len(arguments)} "
        item = _values(arguments[0])
        return f"list of {length}{item}{'s' if arguments[0] in _PLAIN else ''}"
    if typing.get_origin(annotation) in (types.UnionType, typing.Union):
        return " or ".join(_values(option, bounds) for option in arguments)
    raise TypeError(f"no words for the type {annotation}")


_PLAIN: dict[Any, str] = {
    str: "text",
    int: "integer",
    float: "number",
    bool: "true or false",
    Path: "path",
    types.NoneType: "null",
}


def _bound(bound: Any) -> str:
    match bound:
        case Ge(limit):
            return f"≥ {limit}"
        case Gt(limit):
            return f"> {limit}"
        case Le(limit):
            return f"≤ {limit}"
        case Lt(limit):
            return f"< {limit}"
        case _:
            raise TypeError(f"no words for the bound {bound}")


if __name__ == "__main__":
    print(describe(), end="")
