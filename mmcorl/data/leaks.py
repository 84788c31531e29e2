"""Problems that a training set shares with the problems a model will be tested on."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from PIL import Image

from mmcorl.problems import IMAGE_MARKER, Problem

Overlap = Literal["question and image", "question", "image", "words"]


@dataclass
class Contents:
    """Digests of the questions and images of a set of problems, to find them in another."""

    questions: set[bytes] = field(default_factory=set)
    images: set[bytes] = field(default_factory=set)

    def add(self, problem: Problem, images: Sequence[Image.Image]) -> None:
        """Note a problem; `images` are its decoded ones."""
        self.questions.add(question_digest(problem))
        self.images.update(map(image_digest, images))

    def overlap(self, problem: Problem, images: Sequence[Image.Image]) -> Overlap | None:
        """What a problem shares with these.

        Of a visual problem that is its question and image, its image, or only its words: "Find x." is asked of many
        figures.
        """
        question = question_digest(problem) in self.questions
        if any(image_digest(image) in self.images for image in images):
            return "question and image" if question else "image"
        if not question:
            return None
        return "words" if images else "question"


def question_digest(problem: Problem) -> bytes:
    """A digest of the question's words, whatever their case and spacing, without options and image markers."""
    text = unicodedata.normalize("NFKC", problem.question.replace(IMAGE_MARKER, " ")).casefold()
    return hashlib.blake2b(re.sub(r"\s+", " ", text).strip().encode(), digest_size=16).digest()


def image_digest(image: Image.Image) -> bytes:
    """A digest of the pixels: the same picture in another lossless format has the same."""
    digest = hashlib.blake2b(repr((image.mode, image.size)).encode(), digest_size=16)
    digest.update(image.tobytes())
    return digest.digest()
