"""What an agent is asked and what it gives back. The gold answer is never part of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from PIL import Image

from mmcorl.sandbox import ProgramSpec

AnswerKind = Literal["math", "choice", "text", "code"]
ImageSource = Path | bytes | Image.Image

IMAGE_MARKER = "<image>"
"""Marks the place of an image in a question. Images beyond the markers stand before the text."""


@dataclass(frozen=True)
class Problem:
    """One question, as every agent of the cohort sees it.

    `images` are files, encoded bytes or PIL images in the order of their appearance; they are decoded only
    when a prompt is built. `choices` are the option texts in order (A, B, C, ...), or None for an open question.
    `program` tells what the programs that answer a code problem are run on; without it, their text is their answer.
    """

    id: str
    question: str
    images: tuple[ImageSource, ...] = ()
    choices: tuple[str, ...] | None = None
    kind: AnswerKind = "math"
    program: ProgramSpec | None = None


@dataclass(frozen=True)
class Gold:
    """The labelled answer. Travels beside the problem; only the `gold` reward, diagnostics and evaluation see it."""

    answer: str


@dataclass(frozen=True)
class Completion:
    """One sampled answer: its text, the sampled token ids (stop token included) and their log-probabilities.

    `logprobs` are those of the sampler, in nats, at the sampling temperature. `finished` is False when the
    completion ran into `rollouts.max_tokens` without a stop token.
    """

    text: str
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finished: bool


@dataclass(frozen=True)
class RolloutGroup:
    """The K completions of one problem by one agent."""

    problem: Problem
    completions: tuple[Completion, ...]
