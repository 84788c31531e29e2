"""Settings of the problems: where they come from and how they are asked."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from mmcorl.config.section import Section

Task = Literal["count", "compare", "add", "chart"]


class ColumnsConfig(Section):
    id: str | None = "id"
    """Column with the problem's id; where the file has none, or with null, rows are numbered from 0."""
    question: str = "question"
    """Column with the question text; every `<image>` in it marks the place of an image."""
    images: str | None = "images"
    """Column with one image or a list: paths (relative to the file), encoded bytes or images. May be absent; null
    leaves images out."""
    choices: str | None = "choices"
    """Column with the list of option texts. May be absent, and is empty for open questions; null asks all as open."""
    answer: str | None = "answer"
    """Column with the gold answer. May be absent or null; without it there is no `reward.rule=gold` and no diagnostic of the votes."""
    kind: str | None = "kind"
    """Column with the answer kind. Where the file has none: `choice` for rows with choices, `code` for rows with tests,
    else `math`."""
    tests: str | None = "tests"
    """Column with the tests of a code problem, which are its gold answer: Python with asserts or a `check(candidate)`, a list
    of asserts, or of inputs with outputs. Votes need the inputs in them alone. May be absent; see docs/code.md."""
    entry_point: str | None = "entry_point"
    """Column with the name of the function under test, where its tests do not say it. May be absent."""
    before: str | None = "before"
    """Column with Python that comes before the program that answers a code problem, such as imports. May be absent."""
    setup: str | None = "setup"
    """Column with Python that the tests of a code problem need. May be absent."""
    program: str | None = "program"
    """Column with the inputs of a code problem apart from its tests, `{cases: [...], reads, before, after}`, as prepared
    folders have them; with it a code problem needs no tests. May be absent."""


class ScenesConfig(Section):
    tasks: tuple[Task, ...] = ("count",)
    """What the rendered problems ask; they take turns."""
    size: int = Field(default=720, ge=1)
    """Number of problems."""
    seed: int = 0
    """Seed of the images and questions; use different seeds for training and evaluation."""
    choice_share: float = Field(default=0.0, ge=0, le=1)
    """Share of problems asked as multiple choice."""
    image_size: int = Field(default=84, ge=28)
    """Width and height of the images in pixels."""


class DataConfig(Section):
    source: str | None = None
    """A public data set by name, such as `open-r1`, or a YAML file that declares another (docs/add_a_data_source.md); it
    is streamed from the hub, or read from the copy that `path` names."""
    path: str | None = None
    """A prepared folder, a JSONL, JSON or Parquet file, a `save_to_disk` folder, a folder of images with
    metadata.jsonl, or a data set downloaded from the hub."""
    split: str | None = None
    """Split of a data set that has several; null takes that of the source, or the only one."""
    scenes: ScenesConfig | None = None
    """Instead of a source or a path: the built-in rendered scenes."""
    columns: ColumnsConfig = ColumnsConfig()
    """Names of the columns of a local file. A source knows its own."""
    limit: int | None = Field(default=None, ge=1)
    """Use only the first so many problems."""
    fetch_urls: bool = False
    """Fetch images that are given as http or https URLs; otherwise their rows are refused."""

    @model_validator(mode="after")
    def _one_source(self) -> DataConfig:
        named = self.path is not None or self.source is not None
        if named == (self.scenes is not None):
            raise ValueError(
                "set `path`, `source` or `scenes`, and nothing beside `scenes`; leave the others out or make them null"
            )
        if self.source is not None and self.columns != ColumnsConfig():
            raise ValueError(
                f"source={self.source} knows its columns; leave `columns` out, or name a file by `path` alone"
            )
        return self


class DataSplits(Section):
    train: DataConfig
    """Problems to train on; their gold answers serve `reward.rule=gold` and the diagnostic `vote_accuracy`, nothing else."""
    eval: DataConfig | None = None
    """Held-out problems with gold answers."""
    twin: str | None = None
    """A file with another wording of every problem of `train`, aligned by id; for `reward.rule=twin_vote` and
    `agents.*.wording=twin`."""


class PromptConfig(Section):
    system: str | None = None
    """System message; null for none. Models whose template has no system turn get it before the question."""
    instruction: str = "Think step by step, then put your final answer in \\boxed{}."
    """Added after the question and its options."""
    option_format: str = "{letter}. {text}"
    """How one option of a multiple-choice problem is written, a line each."""

    @field_validator("option_format")
    @classmethod
    def _shows_letter_and_text(cls, form: str) -> str:
        try:
            shown = form.format(letter="<L>", text="<T>")
        except (KeyError, IndexError, ValueError):
            shown = ""
        if "<L>" not in shown or "<T>" not in shown:
            raise ValueError(f"{form!r} must hold {{letter}} and {{text}}")
        return form


class ImagesConfig(Section):
    min_pixels: int = Field(default=56 * 56, ge=1)
    """Images with fewer pixels are enlarged to this, keeping their shape."""
    max_pixels: int = Field(default=1024 * 1024, ge=1)
    """Images with more pixels are reduced to this, keeping their shape. Applied once, before any model's processor."""
    max_long_side: int | None = Field(default=None, ge=1)
    """Images whose longer side has more pixels are reduced to this, keeping their shape; null sets no limit."""
    tiling: bool = False
    """Let models that can cut an image into tiles do so: finer detail, up to 13 times the image tokens."""

    @model_validator(mode="after")
    def _room_between(self) -> ImagesConfig:
        if self.min_pixels > self.max_pixels:
            raise ValueError(f"min_pixels={self.min_pixels} is above max_pixels={self.max_pixels}")
        return self
