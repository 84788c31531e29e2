"""What a data set holds, which of its rows cannot be used and why, and what a model and a test would make of it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from PIL import Image

from mmcorl.data.bad_rows import BadRow, LeftOut
from mmcorl.data.images import DECODE_LIMIT, load_image
from mmcorl.data.leaks import Contents, image_digest
from mmcorl.data.opening import open_rows
from mmcorl.data.reading import read_rows
from mmcorl.data.rows import Source
from mmcorl.errors import MmcorlError
from mmcorl.graders import Grader
from mmcorl.problems import Gold, Problem

PERCENTILES = (50, 90, 99, 100)

PromptLength = Callable[[Problem], int]
"""Tokens of a problem's prompt, image tokens included; raises MmcorlError for what the model cannot take."""


@dataclass
class Survey:
    """Counts of rows. `refused` and `examples` (the first such row's error) are by reason; the rest is of kept rows."""

    rows: int = 0
    kept: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    """Rows that the source's own rule leaves out, by reason."""
    refused: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    multiple_choice: int = 0
    with_images: int = 0
    without_gold: int = 0
    unread_gold: int | None = None
    """Rows whose gold no grader can read, so that no answer is ever right; None where that was not asked."""
    unread_example: str = ""
    repeated: int = 0
    """Rows with the question, options and images of an earlier one."""
    lengths: list[int] = field(default_factory=list)
    """Prompt tokens of each row, where a model was named."""
    overlaps: Counter[str] | None = None
    """Rows that a tested set has too, by what they share; None where no such set was named."""
    overlap_examples: dict[str, str] = field(default_factory=dict)

    @property
    def leaks(self) -> int:
        """Rows that should not be trained on before that test; visual questions of the same words alone are none."""
        return sum(count for shared, count in (self.overlaps or {}).items() if shared != "words")

    def lines(self) -> Iterator[str]:
        """The survey as a table of text."""
        yield _line("rows", self.rows)
        yield _line("kept", self.kept, self.rows)
        for reason, count in self.left_out.most_common():
            yield _line(reason, count, self.rows)
        yield _line("refused", self.refused.total(), self.rows)
        for reason, count in self.refused.most_common():
            yield f"{_line(f'  {reason}', count, self.rows)}   {self.examples[reason]}"
        yield "of the rows kept:"
        yield _line("  multiple choice", self.multiple_choice, self.kept)
        yield _line("  with images", self.with_images, self.kept)
        yield _line("  without gold answer", self.without_gold, self.kept)
        if self.unread_gold is not None:
            unread = _line("  gold that no grader reads", self.unread_gold, self.kept)
            yield f"{unread}   {self.unread_example}".rstrip()
        yield _line("  repeats of an earlier row", self.repeated, self.kept)
        if self.lengths:
            yield "prompt tokens, with those of images:"
            for percent in PERCENTILES:
                name = "  longest" if percent == 100 else f"  {percent} % have at most"
                yield _line(name, percentile(self.lengths, percent))
        if self.overlaps is not None:
            yield "shared with the tested sets:"
            for shared, name in _OVERLAPS.items():
                example = self.overlap_examples.get(shared, "")
                yield f"{_line(name, self.overlaps[shared], self.kept)}   {example}".rstrip()


_OVERLAPS = {
    "question and image": "  question and image",
    "question": "  question, of text problems",
    "image": "  image, with another question",
    "words": "  words alone, with another image",
}


def survey(
    source: Source,
    grader: Grader | None = None,
    prompt_length: PromptLength | None = None,
    tested: Contents | None = None,
) -> Survey:
    """Read every row of a data set and decode every image. Raises MmcorlError where no row can be read.

    With `grader` golds are read, with `prompt_length` prompts are counted, and with `tested` rows are looked for among
    the problems that a model will be tested on.
    """
    counts = Survey(
        unread_gold=None if grader is None else 0, overlaps=None if tested is None else Counter[str]()
    )
    seen: set[bytes] = set()
    for number, read in enumerate(read_rows(open_rows(source), source)):
        counts.rows += 1
        try:
            if isinstance(read, BadRow):
                raise read
            problem, gold = read
            where = f"row {number} of {source.name}"
            images = _decoded(problem, where)
            length = None if prompt_length is None else _counted(problem, prompt_length, where)
        except LeftOut as out:
            counts.left_out[out.reason] += 1
            continue
        except BadRow as bad:
            counts.refused[bad.reason] += 1
            counts.examples.setdefault(bad.reason, str(bad))
            continue
        counts.kept += 1
        counts.multiple_choice += problem.kind == "choice"
        counts.with_images += bool(problem.images)
        counts.repeated += (content := _content(problem, images)) in seen
        seen.add(content)
        counts.lengths += [] if length is None else [length]
        _note_gold(counts, problem, gold, grader, where)
        if counts.overlaps is not None and tested is not None and (shared := tested.overlap(problem, images)):
            counts.overlaps[shared] += 1
            counts.overlap_examples.setdefault(shared, f"{where} (id {problem.id})")
    return counts


def percentile(values: Sequence[int], percent: int) -> int:
    """The least of the values that `percent` % of them do not exceed (nearest rank)."""
    return sorted(values)[max(0, -(-len(values) * percent // 100) - 1)]


def decoded_images(problem: Problem) -> list[Image.Image]:
    """The images of a problem in their own size. Raises MmcorlError for one that cannot be decoded."""
    return [
        load_image(image, DECODE_LIMIT, 1, f"image {place}")
        for place, image in enumerate(problem.images, start=1)
    ]


def _decoded(problem: Problem, where: str) -> list[Image.Image]:
    try:
        return decoded_images(problem)
    except MmcorlError as error:
        raise BadRow("unreadable image", f"{where}: {error}") from None


def _counted(problem: Problem, prompt_length: PromptLength, where: str) -> int:
    try:
        return prompt_length(problem)
    except MmcorlError as error:
        raise BadRow("the model cannot take it", f"{where}: {error}") from None


def _note_gold(
    counts: Survey, problem: Problem, gold: Gold | None, grader: Grader | None, where: str
) -> None:
    if gold is None:
        counts.without_gold += 1
    elif grader is not None and counts.unread_gold is not None and grader.read(gold.answer, problem) is None:
        counts.unread_gold += 1
        counts.unread_example = counts.unread_example or f"{where}: {gold.answer!r:.80}"


def _content(problem: Problem, images: list[Image.Image]) -> bytes:
    """A digest of all that an agent is shown of a problem."""
    digest = hashlib.blake2b(repr((problem.question, problem.choices)).encode(), digest_size=16)
    for image in images:
        digest.update(image_digest(image))
    return digest.digest()


def _line(name: str, count: int, total: int = 0) -> str:
    share = f"{count / total:8.1%}" if total else ""
    return f"{name:<36}{count:>8}{share}"
