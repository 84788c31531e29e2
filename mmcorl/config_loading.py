"""From a YAML file and `key=value` overrides to a validated Config, with errors that say what to type instead.

OmegaConf reads and merges, pydantic validates. Neither interpolations nor environment variables are resolved: what
the files and the command line say is all that a run depends on.
"""

from __future__ import annotations

import difflib
import json
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import GrammarParseError, OmegaConfBaseException
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from mmcorl.config import Config, Section
from mmcorl.errors import MmcorlError

BASE_KEY = "base"

S = TypeVar("S", bound=Section)


def load_config(path: Path, overrides: Sequence[str] = ()) -> Config:
    """Read `path`, merged onto the file its `base` names (relative to itself), with `key=value` overrides on top.

    Mappings merge key by key; lists and scalars replace; a null agent is taken out. An override's value is YAML, so
    `data.eval=null`, `agents.qwen.devices=[0,1]` and quoted text work. Raises MmcorlError with one line for every unknown key,
    ill-typed value and contradiction.
    """
    merged = merge_overrides(_read_with_bases(path, ()), overrides)
    tree = typing.cast(dict[str, Any], OmegaConf.to_container(merged, resolve=False))
    if isinstance(agents := tree.get("agents"), dict):
        tree["agents"] = {name: agent for name, agent in agents.items() if agent is not None}
    return validate(Config, tree, str(path))


def merge_overrides(tree: DictConfig, overrides: Sequence[str]) -> DictConfig:
    """`tree` with `key=value` settings on top. Raises MmcorlError for text that is none."""
    for override in overrides:
        tree = _merge(tree, _parse_override(override), f"the override {override}")
    return tree


def validate(section: type[S], tree: Any, origin: str) -> S:
    """`tree` as a section of the configuration. `origin` says in the error where the values come from."""
    # Strict, so that `true` or "5" is no number; by way of JSON, where strictness still takes lists for tuples.
    try:
        return section.model_validate_json(json.dumps(tree, default=str), strict=True)
    except ValidationError as error:
        lines = [line for details in error.errors() for line in _explain(details, section, tree)]
        raise MmcorlError("\n  ".join([f"{origin}:", *lines])) from None


def to_yaml(config: Config) -> str:
    """The whole tree as YAML, defaults included; `load_config` reads it back to an equal Config."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=110)


def _read_with_bases(path: Path, seen: tuple[Path, ...]) -> DictConfig:
    if path.resolve() in seen:
        chain = " -> ".join(str(file) for file in (*seen, path.resolve()))
        raise MmcorlError(f"`{BASE_KEY}` goes round in a circle: {chain}")
    own = read_yaml(path)
    base = own.pop(BASE_KEY, None)
    if base is None:
        return own
    if not isinstance(base, str):
        raise MmcorlError(f"{path}: {BASE_KEY}={base!r} is not the name of a YAML file")
    return _merge(_read_with_bases(path.parent / base, (*seen, path.resolve())), own, str(path))


def read_yaml(path: Path) -> DictConfig:
    """The `key: value` tree of one YAML file. Raises MmcorlError for anything else, and for a key that stands twice."""
    try:
        tree = OmegaConf.load(path)
    except FileNotFoundError:
        raise MmcorlError(f"{path}: no such configuration file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise MmcorlError(f"{path}: cannot be read ({error})") from None
    except yaml.YAMLError as error:
        raise MmcorlError(f"{path}: {_explain_yaml(error)}") from None
    except GrammarParseError as error:
        raise MmcorlError(f"{path}: text with an unfinished `${{` ({_first_line(error)})") from None
    if not isinstance(tree, DictConfig):
        raise MmcorlError(f"{path}: expected `key: value` settings, got a list")
    return tree


def _parse_override(override: str) -> DictConfig:
    key, equals, _ = override.partition("=")
    if not equals or not all(key.split(".")):
        raise MmcorlError(f"{override!r} is not an override; write key=value, as in run.steps=20")
    try:
        return OmegaConf.from_dotlist([override])
    except yaml.YAMLError as error:
        raise MmcorlError(f"the override {override}: {_explain_yaml(error)}") from None
    except GrammarParseError as error:
        raise MmcorlError(f"the override {override}: unfinished `${{` ({_first_line(error)})") from None


def _merge(below: DictConfig, above: DictConfig, origin: str) -> DictConfig:
    try:
        return typing.cast(DictConfig, OmegaConf.merge(below, above))
    except (OmegaConfBaseException, TypeError) as error:  # TypeError: a list in the place of a mapping
        raise MmcorlError(f"{origin}: {_first_line(error)}") from None


def _explain_yaml(error: yaml.YAMLError) -> str:
    if not isinstance(error, yaml.MarkedYAMLError):
        return _first_line(error)
    place = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
    duplicate = (error.problem or "").removeprefix("found duplicate key ")
    if duplicate != error.problem:
        return f"the key `{duplicate}` stands twice{place}; give each its own name"
    return f"not valid YAML{place}: {error.problem}"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _explain(details: ErrorDetails, section: type[Section], tree: Any) -> Iterator[str]:
    """One line for a fault that pydantic found: dotted path, value, expectation, and for unknown keys the nearest."""
    path = ".".join(str(part) for part in details["loc"] if part != "[key]")
    match details["type"]:
        case "extra_forbidden":
            yield f"{path} is not a setting; the nearest is {nearest(path, list(dotted_paths(section, tree)))}"
        case "missing":
            yield f"{path} is missing and has no default"
        case "value_error":
            for problem in details["msg"].removeprefix("Value error, ").splitlines():
                yield f"{path}: {problem}" if path else problem
        case "model_type" | "dict_type":
            yield f"{path or 'the file'}={details['input']!r}: expected settings of its own (key: value)"
        case _:
            yield f"{path}={details['input']!r}: {details['msg'].replace('Input should be', 'must be')}"


def nearest(path: str, valid: Sequence[str]) -> str:
    """The valid dotted path most like `path`, by the whole and by its last part (so that `lr` finds `optimizer.lr`)."""

    def likeness(candidate: str) -> float:
        return _likeness(path, candidate) + _likeness(path.rpartition(".")[2], candidate.rpartition(".")[2])

    return max((candidate for candidate in valid if not path.startswith(f"{candidate}.")), key=likeness)


def _likeness(first: str, second: str) -> float:
    return difflib.SequenceMatcher(None, first, second).ratio()


def dotted_paths(section: type[Section], tree: Any) -> Iterator[str]:
    """Every setting of a section by its dotted path; entries of a dictionary by the keys that `tree` has."""
    given = tree if isinstance(tree, Mapping) else {}
    for name, field in section.model_fields.items():
        yield name
        for inner, key in inner_sections(field.annotation, given.get(name)):
            prefix = f"{name}.{key}" if key else name
            subtree = given.get(name) or {}
            for path in dotted_paths(
                inner, subtree.get(key) if key and isinstance(subtree, Mapping) else subtree
            ):
                yield f"{prefix}.{path}"


def inner_sections(annotation: Any, value: Any) -> Iterator[tuple[type[Section], str]]:
    """The sections inside a field's type: itself, the one beside None, or one for each key of a dictionary."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation, ""
    elif isinstance(annotation, types.UnionType):
        for option in typing.get_args(annotation):
            yield from inner_sections(option, value)
    elif typing.get_origin(annotation) is dict and isinstance(value, Mapping):
        _, item = typing.get_args(annotation)
        for key in value:
            yield from ((inner, str(key)) for inner, _ in inner_sections(item, None))
