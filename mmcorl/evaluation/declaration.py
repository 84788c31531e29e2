"""Declaration: what a benchmark is, as data. One YAML file a benchmark, all of them in `mmcorl/evaluation/benchmarks`."""

from __future__ import annotations

import hashlib
import json
from typing import Literal

from pydantic import Field, model_validator

from mmcorl.config import Section
from mmcorl.graders.conventions import CONVENTIONS
from mmcorl.problems import AnswerKind


class HubConfig(Section):
    """Where the rows are on the hub."""

    path: str
    """Id of the data set."""
    configs: tuple[str, ...] = ()
    """Configurations, read one after the other; none takes the only one."""
    split: str
    """Its split."""
    files: tuple[str, ...] = ()
    """JSONL files in its repository to read instead, for a data set that would need code of its own to be loaded."""


class FieldsConfig(Section):
    """Columns of the original schema. `a | b` is the first that the row has, and `a.b` is `b` inside `a`."""

    id: str | None = None
    """Unique id; rows are numbered where there is none. `a + b` joins two columns."""
    question: str
    """What is asked, with or without its options."""
    full_question: str | None = None
    """The question and options in words where a picture holds them. It is not shown, answers are graded with it."""
    images: str | None = None
    """An image, a list of images or their file names. `image_*` is all of `image_1`, `image_2`, ... in order."""
    options: str | tuple[str, ...] | None = None
    """Where the options are, as `Declaration.options` says; several columns for one column each."""
    answer: str
    """The gold answer, as `Declaration.gold` says; for tests, `a + b` joins the tests of two columns."""


class Declaration(Section):
    """A benchmark. Whatever changes a score raises `version`."""

    name: str
    version: int = Field(ge=1)
    title: str
    licence: str
    modality: Literal["image", "text"]
    source: HubConfig | Literal["scenes"]
    fields: FieldsConfig | None = None
    """Needed for every source but the built-in scenes."""
    only: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Rows are of the benchmark only where each of these columns has one of these values."""
    kind: AnswerKind = "math"
    """Answer kind of rows without options."""
    choice_where: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Rows whose column has one of these values are multiple choice even if their options are not given in words."""
    options: Literal["list", "items", "question", "columns"] = "list"
    """How options are written: a list, one string of labelled items, inside the question, or a column each."""
    shuffle: bool = False
    """Put options in the order that `random.Random(row number).shuffle` gives."""
    gold: Literal["value", "label", "text", "after_hashes", "first_option", "tests"] = "value"
    """What the answer column holds: whatever the grader reads; an option's label, or its number from 0; an option's
    text; a text with the answer after `####`; the text of the first option; or tests of a program."""
    letters_in_image: str | None = None
    """Added to a question whose options are nothing but letters, which are in the picture. `{letters}` lists them."""
    when_empty: str | None = None
    """Asked where the question column is empty, because the picture holds the question."""
    suffixes: tuple[str, ...] = ()
    """Added to the question, each if every fact that it names in braces is there: `(Unit: {unit})`."""
    instruction: str | None = None
    """Instead of the default `prompt.instruction`."""
    prelude: str = ""
    """Source that every program of a code benchmark may rely on."""
    facts: dict[str, str] = Field(default_factory=dict)
    """What grading, scoring and reports need to know of a row: name -> column. `precision`, `unit` and `answer_type` go
    to the convention; `entry_point` (the function under test), `before` and `setup` (source ahead of a program and of
    its tests) to the sandbox."""
    convention: str = "strict"
    """Grading convention, see `mmcorl.graders.conventions`."""
    metric: Literal["accuracy", "wemath"] = "accuracy"
    """`wemath` adds its four-dimensional score."""
    by: tuple[str, ...] = ()
    """Facts by which accuracy is also given, such as the versions of a problem."""
    cluster: str | None = None
    """Fact that is the same for rows which are not independent of each other; intervals draw such rows together."""
    samples: int = Field(default=1, ge=1)
    """Completions of each problem unless the command says otherwise; accuracy is their mean."""
    temperature: float = Field(default=0.0, ge=0)
    """Of those completions; 0 is greedy."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Of those completions."""

    @model_validator(mode="after")
    def _whole(self) -> Declaration:
        if self.source != "scenes" and self.fields is None:
            raise ValueError("fields are needed to read the rows of a data set")
        if self.convention not in CONVENTIONS:
            raise ValueError(f"convention={self.convention} is none of {', '.join(CONVENTIONS)}")
        if unknown := {*self.by, *filter(None, [self.cluster])} - set(self.facts):
            raise ValueError(f"by and cluster name facts, and {', '.join(sorted(unknown))} is none of them")
        if self.samples > 1 and self.temperature == 0:
            raise ValueError(f"samples={self.samples} would all be the same with temperature=0")
        for suffix in self.suffixes:
            _require_template(suffix, tuple(self.facts))
        if self.letters_in_image:
            _require_template(self.letters_in_image, ("letters",))
        return self

    @property
    def digest(self) -> str:
        """SHA-256 of all that it says."""
        return hashlib.sha256(json.dumps(self.model_dump(mode="json"), sort_keys=True).encode()).hexdigest()


def _require_template(text: str, names: tuple[str, ...]) -> None:
    try:
        text.format_map(dict.fromkeys(names, ""))
    except (ValueError, LookupError, AttributeError):
        raise ValueError(f"{text!r} is no text with {', '.join(names) or 'no facts'} in braces") from None
