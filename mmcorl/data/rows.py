"""One row of any source as a problem and its gold answer, or the reason why it is none."""

from __future__ import annotations

import base64
import difflib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from mmcorl.config import ColumnsConfig
from mmcorl.data.bad_rows import BadRow
from mmcorl.data.hub import Hub
from mmcorl.data.programs import has_program, read_program
from mmcorl.data.quirks import Quirk, apply
from mmcorl.data.web import fetch
from mmcorl.problems import IMAGE_MARKER, AnswerKind, Gold, ImageSource, Problem

MOST_CHOICES = 26
"""Options have the letters A to Z."""

# How the encodings of PNG, JPEG, GIF and WebP files begin in base64; no sane path does.
_BASE64_STARTS = ("iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR")

# What other data sets call the same column, the most frequent first.
_USUAL_NAMES = {
    "question": ("question", "problem", "prompt", "query", "problem_text", "input", "text"),
    "images": ("images", "image", "image_path", "decoded_image", "image_file", "img"),
    "choices": ("choices", "options"),
    "answer": ("answer", "solution", "ground_truth", "gold", "target", "label"),
    "tests": ("tests", "test", "test_list", "unit_tests", "test_cases"),
}


@dataclass(frozen=True)
class Source:
    """Rows of a local data set, or of one on the hub, and how they become problems.

    `prefix` is what the settings are called (`data.train.`, `--`), for errors. `quirks` change native rows before their
    columns are read. Images given as URLs are fetched only with `fetch_urls`.
    """

    path: Path | None
    columns: ColumnsConfig = field(default_factory=ColumnsConfig)
    prefix: str = "data.train."
    quirks: tuple[Quirk, ...] = ()
    hub: Hub | None = None
    """Where the rows are without a path; with one, which of its configs belong to the data set."""
    split: str | None = None
    """The split of a local copy that has several."""
    fetch_urls: bool = False

    @property
    def name(self) -> str:
        """Where the rows come from, for errors."""
        return str(self.path) if self.path is not None else str(self.hub)

    @property
    def image_folder(self) -> Path | None:
        """What image paths are relative to; None on the hub."""
        if self.path is None:
            return None
        return self.path if self.path.is_dir() else self.path.parent


def read_row(row: Mapping[str, Any], number: int, source: Source) -> tuple[Problem, Gold | None]:
    """Row `number` (from 0) of a source. Image files are looked for, not opened.

    Raises BadRow for a row that is no problem, and LeftOut for one that the source's quirks leave out.
    """
    columns = source.columns
    try:
        row = apply(source.quirks, row)
        question = _question(row, source)
        images = _images(_cell(row, columns.images), source)
        choices = _choices(_cell(row, columns.choices), columns.choices)
        if question.count(IMAGE_MARKER) > len(images):
            raise BadRow(
                f"more {IMAGE_MARKER} markers than images",
                f"{question.count(IMAGE_MARKER)} {IMAGE_MARKER} markers in the question for {len(images)} images"
                f"{suggest_column('images', row, source)}",
            )
        if not question.strip() and not images:
            raise BadRow("empty question", f"the column `{columns.question}` is empty, and there is no image")
        kind = _kind(_cell(row, columns.kind), choices, has_program(row, columns))
        program, tests = read_program(row, columns) if kind == "code" else (None, None)
        problem = Problem(
            id=_id(row, number, columns.id),
            question=question,
            images=images,
            choices=choices,
            kind=kind,
            program=program,
        )
        gold = tests or _gold(_cell(row, columns.answer))
        _require_unicode(problem.id, question, *(choices or ()), gold.answer if gold else "")
        return problem, gold
    except BadRow as bad:
        raise type(bad)(bad.reason, f"row {number} of {source.name}: {bad}") from None


def suggest_column(field_name: str, present: Collection[str], source: Source) -> str:
    """What to set where the column of `field_name` is absent: the nearest column there is. Empty where it is present."""
    name = getattr(source.columns, field_name)
    if name is None or name in present:
        return ""
    by_folded = {column.lower(): column for column in present}
    usual = [by_folded[other] for other in _USUAL_NAMES.get(field_name, ()) if other in by_folded]
    alike = difflib.get_close_matches(name, present, n=1)
    setting = f"{source.prefix}columns.{field_name}"
    default = ColumnsConfig.model_fields[field_name].default
    if near := [*usual, *alike] if name == default else [*alike, *usual]:
        return f"; set {setting}={near[0]}, the nearest of its columns {', '.join(present)}"
    return f"; set {setting} to one of its columns {', '.join(present)}"


def _cell(row: Mapping[str, Any], column: str | None) -> Any:
    return None if column is None else row.get(column)


def _question(row: Mapping[str, Any], source: Source) -> str:
    name = source.columns.question
    if name not in row:
        raise BadRow("no question column", f"no column `{name}`{suggest_column('question', row, source)}")
    question = row[name]
    if not isinstance(question, str):
        raise BadRow("question is not text", f"the column `{name}` holds {_shown(question)}, not text")
    return question


def _require_unicode(*texts: str) -> None:
    """JSON can hold halves of characters, which neither tokenizers nor files take."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError as error:
        near = error.object[max(0, error.start - 20) : error.end + 20]
        raise BadRow("text is not Unicode", f"its text holds half a character, in {near!a}") from None


def _id(row: Mapping[str, Any], number: int, name: str | None) -> str:
    value = number if name is None else row.get(name, number)
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise BadRow(
            "id is no text or integer", f"the column `{name}` holds {_shown(value)}, not text or an integer"
        )
    return str(value)


def _kind(value: Any, choices: tuple[str, ...] | None, tests: bool) -> AnswerKind:
    if value is None:
        return "choice" if choices is not None else "code" if tests else "math"
    if value not in get_args(AnswerKind):
        raise BadRow(
            "unknown answer kind", f"kind={_shown(value)} is none of {', '.join(get_args(AnswerKind))}"
        )
    return value


def _choices(value: Any, name: str | None) -> tuple[str, ...] | None:
    if value is None or value == []:
        return None
    if not isinstance(value, list) or not all(isinstance(option, str) for option in value):
        raise BadRow(
            "choices are not a list of strings",
            f"the column `{name}` holds {_shown(value)}, not a list of option texts",
        )
    if not 2 <= len(value) <= MOST_CHOICES:
        raise BadRow(
            "number of choices",
            f"the column `{name}` lists {len(value)} options; a choice has 2 to {MOST_CHOICES}",
        )
    return tuple(value)


def _gold(value: Any) -> Gold | None:
    """The answer as it stands; what is neither text nor a number is written as JSON."""
    if (
        value is None or value != value or (isinstance(value, str) and not value.strip())
    ):  # NaN is a missing value
        return None
    if isinstance(value, str):
        return Gold(value)
    return Gold(json.dumps(value, ensure_ascii=False, default=str))


def _images(value: Any, source: Source) -> tuple[ImageSource, ...]:
    if value is None or value == "":
        return ()
    items = value if isinstance(value, list) else [value]
    return tuple(_image(item, source) for item in items)


def _image(item: Any, source: Source) -> ImageSource:
    """An image as it is stored: encoded bytes, base64 text, a path, or the dictionary of bytes and path of `datasets`."""
    match item:
        case bytes() if item:
            return item
        case {"bytes": bytes(content)} if content:
            return content
        case str(text) | {"path": str(text)} if text:
            return _image_of_text(text, source)
        case _:
            raise BadRow(
                "not an image",
                f"the column `{source.columns.images}` holds {_shown(item)}, not a path, encoded bytes or an image",
            )


def _image_of_text(text: str, source: Source) -> ImageSource:
    if text.startswith(("http://", "https://")):
        if not source.fetch_urls:
            fetching = "--fetch-urls" if source.prefix == "--" else f"{source.prefix}fetch_urls=true"
            raise BadRow(
                "image is a URL",
                f"the image {_short(text)} is on the web; {fetching} fetches it, or download it and name the file",
            )
        return fetch(text)
    if text.startswith((*_BASE64_STARTS, "data:")):
        try:
            return base64.b64decode(text.partition(";base64,")[2] or text, validate=True)
        except ValueError as error:
            raise BadRow(
                "broken base64 image", f"the image {_short(text)} is not whole base64 ({error})"
            ) from None
    if source.image_folder is None:
        raise BadRow(
            "image is a path on the hub",
            f"the image {_short(text)} is a path, and rows of the hub come without their files; download the data set "
            f"and set {source.prefix}path to the copy",
        )
    path = source.image_folder / text
    try:
        found = path.is_file()
    except OSError:  # too long for a path
        found = False
    if not found:
        raise BadRow(
            "image file missing",
            f"the image {_short(str(path))} does not exist; paths in the column `{source.columns.images}` "
            f"are relative to {source.image_folder}",
        )
    return path


def _shown(value: Any) -> str:
    """A value for an error message, shortened, with its type."""
    return f"{_short(repr(value))} ({type(value).__name__})"


def _short(text: str, most: int = 120) -> str:
    return text if len(text) <= most else f"{text[:most]}..."
