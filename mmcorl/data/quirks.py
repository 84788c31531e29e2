"""What public data sets do differently: small pure changes of a native row before its columns are read.

A quirk is written as its name and then names of columns or values, so that declarations of sources are data:
`("answer_tag", "solution")`. Each gives the cells of a row that it changes; none looks at another row, and none chooses
how a problem is asked by its gold answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mmcorl.data.bad_rows import LeftOut
from mmcorl.data.options import place_images, split_question
from mmcorl.graders.extract import last_box, last_tag
from mmcorl.problems import IMAGE_MARKER

Quirk = tuple[str, ...]
Row = Mapping[str, Any]


def apply(quirks: Sequence[Quirk], row: Row) -> Row:
    """The row after all quirks, in order. Raises LeftOut where one leaves it out."""
    for name, *arguments in quirks:
        row = {**row, **QUIRKS[name](row, *arguments)}
    return row


def first_of(row: Row, column: str, *others: str) -> Row:
    """The first of the columns that is present and not null: releases of one set name a column differently."""
    return {column: next((row[name] for name in (column, *others) if row.get(name) is not None), None)}


def inner(row: Row, column: str, *path: str) -> Row:
    """A value out of nested columns, as `reward_model` -> `ground_truth`."""
    value: Any = row
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return {column: value}


def said_by_user(row: Row, column: str, source: str) -> Row:
    """The text of the user's turns of a chat: a list of messages whose content is text or a list of parts."""
    turns = row.get(source)
    if not isinstance(turns, list):
        return {column: turns}
    contents = [turn.get("content") for turn in turns if turn.get("role") == "user"]
    texts = [
        content
        if isinstance(content, str)
        else "".join(
            IMAGE_MARKER if part.get("type") == "image" else part.get("text") or "" for part in content or ()
        )
        for content in contents
    ]
    return {column: "\n".join(texts)}


def stripped(row: Row, *columns: str) -> Row:
    """Texts without white space around them."""
    return {name: row[name].strip() for name in columns if isinstance(row.get(name), str)}


def answer_tag(row: Row, column: str, fallback: str = "") -> Row:
    """The gold inside the last `<answer>` tag; without a tag the column `fallback`, or the text as it stands."""
    text = row.get(column)
    if not isinstance(text, str):
        return {}
    if gold := last_tag(text):
        return {column: gold}
    return {column: row.get(fallback) if fallback else text.strip()}


def after_hashes(row: Row, column: str) -> Row:
    """The gold after the last "####"."""
    text = row.get(column)
    return {column: text.rpartition("####")[2].strip()} if isinstance(text, str) else {}


def boxed(row: Row, column: str) -> Row:
    """The gold inside the last `\\boxed{}` of a solution; null without one."""
    text = row.get(column)
    if not isinstance(text, str):
        return {}
    return {column: last_box(text) or None}


def split_options(row: Row, question: str, choices: str) -> Row:
    """Options that stand in the question's text, moved into a column of their own. Present choices stay."""
    found = split_question(row[question]) if isinstance(row.get(question), str) else None
    if row.get(choices) or found is None or not all(found[1].values()):
        return {}
    return {question: found[0], choices: list(found[1].values())}


def image_markers(row: Row, question: str, images: str, choices: str = "") -> Row:
    """One `<image>` where each image is first mentioned in the question or its choices, images in that order."""
    value = row.get(images)
    items = value if isinstance(value, list) else [] if value in (None, "") else [value]
    options = row.get(choices) if choices else None
    options = (
        options if isinstance(options, list) and all(isinstance(text, str) for text in options) else None
    )
    if not isinstance(row.get(question), str):
        return {}
    (asked, *texts), order = place_images([row[question], *(options or ())], len(items))
    changed: dict[str, Any] = {question: asked.strip(), images: [items[index] for index in order]}
    return changed | ({choices: texts} if options else {})


def only(row: Row, column: str, *values: str) -> Row:
    """Leave out rows whose column is none of the values, compared as text."""
    if str(row.get(column)) not in values:
        raise LeftOut(f"left out by {column}", f"its column `{column}` holds {row.get(column)!r:.80}")
    return {}


def between(row: Row, column: str, low: str, high: str) -> Row:
    """Leave out rows whose number is not strictly between two others."""
    value = row.get(column)
    if not isinstance(value, int | float) or not float(low) < value < float(high):
        raise LeftOut(f"left out by {column}", f"its column `{column}` holds {value!r:.80}")
    return {}


def kind_where(row: Row, kind: str, column: str, *values: str) -> Row:
    """The answer kind of rows whose column holds one of the values."""
    return {"kind": kind} if str(row.get(column)).casefold() in values else {}


QUIRKS: dict[str, Callable[..., Row]] = {
    quirk.__name__: quirk
    for quirk in (
        *(first_of, inner, said_by_user, stripped),
        *(answer_tag, after_hashes, boxed),
        *(split_options, image_markers),
        *(only, between, kind_where),
    )
}
