"""What needs the problems themselves: their pictures, and whether votes are right. A report does without them."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass, field

from mmcorl.config import DataConfig
from mmcorl.data.images import load_image
from mmcorl.data.loading import load_problems
from mmcorl.errors import MmcorlError
from mmcorl.graders import Answer, Grader
from mmcorl.problems import ImageSource, Problem

_PIXELS = 320 * 320
_TIMEOUT_S = 0.5  # of a symbolic comparison: one that takes longer decides no chart


@dataclass(frozen=True)
class Problems:
    """The problems of a run by id, and their labelled answers as far as there are any.

    `missing` says why there are none, for a run whose data cannot be read any more.
    """

    by_id: Mapping[str, Problem] = field(default_factory=dict)
    golds: Mapping[str, str] = field(default_factory=dict)
    missing: str | None = None


def load(config: DataConfig) -> Problems:
    """Read `data.train` again. What stands in the way becomes `missing`: the rest of a report needs no problems."""
    try:
        data = load_problems(config)
    except MmcorlError as error:
        return Problems(missing=str(error))
    golds = {name: gold.answer for name, gold in data.golds.items()}
    return Problems({problem.id: problem for problem in data.problems}, golds)


class Judge:
    """Says whether a logged answer to a problem is right, each question once. A context manager."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._grader = Grader(timeout_s=_TIMEOUT_S)
        self._golds: dict[str, Answer | None] = {}
        self._verdicts: dict[tuple[str, str], bool] = {}

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *raised: object) -> None:
        self._grader.close()

    def right(self, problem_id: str, answer: str | None) -> bool | None:
        """None where the problem has no labelled answer. An abstention is not right."""
        if problem_id not in self._problems.golds:
            return None
        if answer is None:
            return False
        if (problem_id, answer) not in self._verdicts:
            problem = self._problems.by_id[problem_id]
            if problem_id not in self._golds:
                self._golds[problem_id] = self._grader.read(self._problems.golds[problem_id], problem)
            verdict = self._grader.correct(
                self._grader.read(answer, problem), self._golds[problem_id], problem
            )
            self._verdicts[problem_id, answer] = verdict
        return self._verdicts[problem_id, answer]


def as_data_uri(image: ImageSource) -> str:
    """The image, reduced to be looked at beside text, inside a `data:` address. Raises MmcorlError if it is none."""
    buffer = io.BytesIO()
    load_image(image, max_pixels=_PIXELS, min_pixels=1).save(buffer, format="WEBP", quality=80)
    return "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
