"""One row of a benchmark, by its declaration, as the problem that a model is asked and the record that answers are graded by."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count, takewhile
from pathlib import Path
from string import Formatter, ascii_uppercase
from typing import Any

from PIL import Image

from mmcorl.data.bad_rows import BadRow
from mmcorl.data.options import gold_label, listed_items, place_images, split_items, split_question
from mmcorl.data.rows import Source, read_row
from mmcorl.errors import MmcorlError
from mmcorl.evaluation.declaration import Declaration, FieldsConfig
from mmcorl.evaluation.programs import join_tests, unit_tests
from mmcorl.evaluation.records import ProblemRecord
from mmcorl.graders import Grader
from mmcorl.problems import AnswerKind, ImageSource, Problem

Row = Mapping[str, Any]
Options = dict[str, str]

MAX_STORED_GOLD = 100_000  # characters

# Reasons why a row is none that are not in the row: what it names is not where it should be.
_NOT_ITS_OWN = {"image file missing", "image is a URL"}


class NotOfBenchmark(Exception):
    """A row of the data set that the benchmark does not use."""


@dataclass(frozen=True)
class Item:
    """`problem` is what the model is shown. `record` may say more: the options in words where a picture holds them."""

    problem: Problem
    record: ProblemRecord
    gold: str
    """That of the record, which leaves tests of more than `MAX_STORED_GOLD` characters to the source."""


def read_item(row: Row, number: int, declaration: Declaration, source: Source, grader: Grader) -> Item:
    """Row `number` (from 0) of a benchmark's source.

    Raises NotOfBenchmark for a row that the declaration excludes, BadRow for one that is no problem, and MmcorlError
    where a column or an image file is missing.
    """
    fields = declaration.fields
    assert fields is not None  # only the built-in scenes have none, and they have no rows
    if any(_text(_cell(row, column)) not in values for column, values in declaration.only.items()):
        raise NotOfBenchmark
    facts = _facts(row, declaration)
    question = _text(_cell(row, fields.question))
    images = _images(row, fields.images)
    question, options = _options(row, question, declaration, fields)
    multiple_choice = bool(options) or any(
        _text(_cell(row, column)) in values for column, values in declaration.choice_where.items()
    )
    kind: AnswerKind = "choice" if multiple_choice else declaration.kind
    if declaration.gold == "tests":
        gold = _tests(row, fields.answer, number)
    else:
        gold, options = _gold_and_order(_cell(row, fields.answer), options, number, declaration)

    asked, shown, full = question, options, question
    if not question.strip() and declaration.when_empty:  # all of it is in the picture
        asked, shown = declaration.when_empty, {}
        if fields.full_question and (described := _text(_cell(row, fields.full_question, {}))):
            full, options = split_question(described) or (described, options)
            gold = gold_label(gold, options)
    elif declaration.letters_in_image and _only_letters(options):
        asked = f"{question}\n{declaration.letters_in_image.format(letters=', '.join(options))}"
        shown = {}
    asked = "\n".join([asked, *_suffixes(declaration, facts)])

    (asked, *shown_texts), order = place_images([asked, *shown.values()], len(images))
    canonical = {
        "id": _id(row, number, fields.id),
        "question": asked,
        "images": [images[index] for index in order],
        "choices": shown_texts,
        "answer": gold,
        "kind": kind,
    }
    try:
        problem, _ = read_row(canonical, number, source)
    except BadRow as bad:
        if bad.reason in _NOT_ITS_OWN:
            raise MmcorlError(f"{bad}; name a whole copy of {declaration.name}") from None
        raise
    record = ProblemRecord(
        id=problem.id,
        question=full if shown != options else problem.question,
        choices=list(options.values()) or None,
        kind=kind,
        gold=gold,
        fields=facts,
        images=[image_digest(image) for image in problem.images],
    )
    if not gold.strip():
        raise BadRow("no gold answer", f"row {number} has none")
    if kind == "code":
        with _tests_of(number):
            unit_tests(record, gold)
    elif grader.read(gold, record.problem()) is None:
        raise BadRow("gold answer cannot be read", f"row {number} has the gold answer {gold!r}")
    if len(gold) > MAX_STORED_GOLD:
        record = replace(record, gold=None)
    return Item(problem, record, gold)


def image_digest(image: ImageSource) -> str:
    """SHA-256 of an image as it is stored; of the pixels where it is not stored."""
    match image:
        case Path():
            content = image.read_bytes()
        case Image.Image():
            content = image.tobytes()
        case _:
            content = image
    return hashlib.sha256(content).hexdigest()


_REQUIRED: Any = object()


def _cell(row: Row, columns: str, otherwise: Any = _REQUIRED) -> Any:
    """The first value of `a | b.c` that is not empty; None where the columns are there and all empty."""
    present = False
    for path in columns.split(" | "):
        value: Any = row
        for name in path.split("."):
            value = _opened(value)
            value = value.get(name, _REQUIRED) if isinstance(value, Mapping) else _REQUIRED
        present |= value is not _REQUIRED
        if value is not _REQUIRED and value is not None and value != "":
            return value
    if not present and otherwise is _REQUIRED:
        raise MmcorlError(
            f"there is no column {columns!r}, only {', '.join(row)}; name a copy in the original schema, "
            "or declare the benchmark with the columns that there are"
        )
    return None


def _opened(value: Any) -> Any:
    """An object that is stored as JSON text."""
    if not (isinstance(value, str) and value.startswith("{")):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _text(value: Any) -> str:
    if value is None or value != value:  # NaN is a missing value
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _id(row: Row, number: int, columns: str | None) -> str:
    parts = [_text(_cell(row, part, {})) for part in (columns or "").split(" + ")] if columns else []
    return "/".join(filter(None, parts)) or str(number)


def _facts(row: Row, declaration: Declaration) -> dict[str, Any]:
    values = {name: _cell(row, column, {}) for name, column in declaration.facts.items()}
    stripped = {name: value.strip() if isinstance(value, str) else value for name, value in values.items()}
    facts = {n: v for n, v in stripped.items() if v is not None and v != "" and v == v}
    if "precision" in facts:
        facts["precision"] = _decimals(facts["precision"])
    return facts | {name: _text(facts[name]) for name in ("unit", "answer_type") if name in facts}


def _decimals(precision: Any) -> int:
    try:
        decimals = int(precision)  # Parquet has it as a float, for its missing values
    except (TypeError, ValueError, OverflowError):
        decimals = -1
    if decimals < 0:
        raise BadRow("precision is no number of decimals", f"{precision!r:.80} is none")
    return decimals


def _images(row: Row, columns: str | None) -> list[Any]:
    if columns is None:
        return []
    if columns.endswith("*"):
        numbered = (f"{columns[:-1]}{i}" for i in count(1))
        return [row[name] for name in takewhile(row.__contains__, numbered) if row[name] is not None]
    value = _cell(row, columns)
    return value if isinstance(value, list) else [] if value is None else [value]


def _options(row: Row, question: str, declaration: Declaration, fields: FieldsConfig) -> tuple[str, Options]:
    """The question without its options, and the options by their labels."""
    columns = fields.options
    if declaration.options == "question":
        if split := split_question(question):
            return split
        return question, _listed(_cell(row, columns, {})) if isinstance(columns, str) else {}
    if columns is None:
        return question, {}
    if not isinstance(columns, str):
        return question, _lettered([_text(_cell(row, column)) for column in columns])
    value = _cell(row, columns)
    return question, split_items(_text(value)) if declaration.options == "items" else _listed(value)


def _listed(value: Any) -> Options:
    """Options of a list, of its printed form or of nothing; labels that the texts have are taken off."""
    texts = listed_items(value) if isinstance(value, str) else [] if value is None else value
    if not isinstance(texts, list):
        raise BadRow("options cannot be read", f"{value!r} is no list of options")
    options = _lettered([_text(text) for text in texts])
    labelled = split_items("\n".join(options.values()))
    return labelled if list(labelled) == list(options) else options


def _lettered(texts: Sequence[str]) -> Options:
    return dict(zip(ascii_uppercase, texts, strict=False))


def _only_letters(options: Options) -> bool:
    return len(options) > 1 and all(label == text.strip(" ().") for label, text in options.items())


def _gold_and_order(
    value: Any, options: Options, number: int, declaration: Declaration
) -> tuple[str, Options]:
    """The gold as the grader takes it, and the options in the order in which they are shown, lettered anew."""
    gold, texts = _text(value), list(options.values())
    place: int | None = None
    match declaration.gold:
        case "label" if isinstance(value, int) and options:
            place = value
        case "label":
            gold = gold_label(gold, options)
        case "text" if gold in texts:
            place = texts.index(gold)
        case "first_option":
            place = 0
        case "after_hashes":
            if "####" not in gold:
                raise BadRow(
                    "no #### before the answer", f"row {number} has the answer {gold!r}, without ####"
                )
            gold = gold.rpartition("####")[2].strip()
        case _:
            pass
    order = list(range(len(texts)))
    if declaration.shuffle:
        random.Random(number).shuffle(order)
    if place is not None:
        gold = ascii_uppercase[order.index(place)]
    return gold, _lettered([texts[index] for index in order])


def _tests(row: Row, columns: str, number: int) -> str:
    parts = [_text(_cell(row, column)) for column in columns.split(" + ")]
    with _tests_of(number):
        return join_tests(parts)


@contextmanager
def _tests_of(number: int) -> Iterator[None]:
    try:
        yield
    except MmcorlError as error:
        raise BadRow("tests cannot be read", f"row {number}: {error}") from None


def _suffixes(declaration: Declaration, facts: Mapping[str, Any]) -> list[str]:
    shown = {name: "\n".join(map(str, v)) if isinstance(v, list) else v for name, v in facts.items()}
    return [
        suffix.format_map(shown)
        for suffix in declaration.suffixes
        if all(name in shown for _, name, _, _ in Formatter().parse(suffix) if name)
    ]
