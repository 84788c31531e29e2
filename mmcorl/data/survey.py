"""What a data set holds, and which of its rows cannot be used and why."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mmcorl.config import ImagesConfig
from mmcorl.data.bad_rows import BadRow
from mmcorl.data.images import load_image
from mmcorl.data.opening import open_rows
from mmcorl.data.reading import check_columns
from mmcorl.data.rows import Source, read_row
from mmcorl.errors import MmcorlError
from mmcorl.problems import Problem


@dataclass
class Survey:
    """Counts of rows. `refused` and `examples` (the first such row's error) are by reason; the rest is of kept rows."""

    rows: int = 0
    kept: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    multiple_choice: int = 0
    with_images: int = 0
    without_gold: int = 0
    repeated: int = 0
    """Rows with the question, options and images of an earlier one."""

    def lines(self) -> Iterator[str]:
        """The survey as a table of text."""
        yield _line("rows", self.rows)
        yield _line("kept", self.kept, self.rows)
        yield _line("refused", self.refused.total(), self.rows)
        for reason, count in self.refused.most_common():
            yield f"{_line(f'  {reason}', count, self.rows)}   {self.examples[reason]}"
        yield "of the rows kept:"
        yield _line("  multiple choice", self.multiple_choice, self.kept)
        yield _line("  with images", self.with_images, self.kept)
        yield _line("  without gold answer", self.without_gold, self.kept)
        yield _line("  repeats of an earlier row", self.repeated, self.kept)


def survey(source: Source) -> Survey:
    """Read every row of a local data set and decode every image. Raises MmcorlError where no row can be read."""
    counts = Survey()
    seen_columns: dict[str, None] = {}
    seen_ids: set[str] = set()
    seen_contents: set[bytes] = set()
    for number, row in enumerate(open_rows(source)):
        counts.rows += 1
        seen_columns.update(dict.fromkeys(row))
        try:
            problem, gold = read_row(row, number, source)
            if problem.id in seen_ids:
                raise BadRow(
                    "duplicate id", f"row {number} of {source.name}: the id {problem.id} came before"
                )
            _decode(problem, number, source)
        except BadRow as bad:
            counts.refused[bad.reason] += 1
            counts.examples.setdefault(bad.reason, str(bad))
            continue
        seen_ids.add(problem.id)
        content = _content(problem)
        counts.kept += 1
        counts.multiple_choice += problem.kind == "choice"
        counts.with_images += bool(problem.images)
        counts.without_gold += gold is None
        counts.repeated += content in seen_contents
        seen_contents.add(content)
    check_columns(seen_columns, source)
    return counts


def _decode(problem: Problem, number: int, source: Source) -> None:
    caps = ImagesConfig()
    for place, image in enumerate(problem.images):
        try:
            load_image(image, caps.max_pixels, caps.min_pixels, f"image {place}")
        except MmcorlError as error:
            raise BadRow("unreadable image", f"row {number} of {source.name}: {error}") from None


def _content(problem: Problem) -> bytes:
    """A digest of all that an agent is shown of a problem; equal images must be the same file or the same bytes."""
    digest = hashlib.blake2b(repr((problem.question, problem.choices)).encode(), digest_size=16)
    for image in problem.images:
        part = str(image).encode() if isinstance(image, Path) else image
        assert isinstance(part, bytes)  # rows of a data set hold no PIL images
        digest.update(hashlib.blake2b(part).digest())
    return digest.digest()


def _line(name: str, count: int, total: int = 0) -> str:
    share = f"{count / total:8.1%}" if total else ""
    return f"{name:<36}{count:>8}{share}"
