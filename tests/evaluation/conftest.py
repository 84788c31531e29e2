"""Result folders made by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mmcorl.evaluation.records import (
    BenchmarkRecord,
    ProblemRecord,
    RunRecord,
    SampleRecord,
    Sampling,
    write_benchmark,
    write_run,
)
from mmcorl.files import Lines
from mmcorl.graders import Answer


@pytest.fixture
def write_results(tmp_path: Path) -> Callable[..., Path]:
    """`write_results("first", {"a": {"p1": ["4", None]}}, golds={"p1": "4"})` writes a folder and returns its path.

    Model -> problem -> what each sample answered, None for one that ran into the limit and said nothing.
    """

    def write(
        folder: str,
        answers: Mapping[str, Mapping[str, Sequence[str | None]]],
        golds: Mapping[str, str],
        fields: Mapping[str, Mapping[str, Any]] | None = None,
        benchmark: str = "toy",
        declaration: Mapping[str, Any] | None = None,
        samples: int | None = None,
    ) -> Path:
        count = samples or max(len(given) for rows in answers.values() for given in rows.values())
        out = tmp_path / folder
        write_run(out, RunRecord({name: f"models/{name}" for name in answers}, None, {}, {}))
        problems = [
            ProblemRecord(p, f"Question {p}?", None, "math", gold, dict((fields or {}).get(p, {})))
            for p, gold in golds.items()
        ]
        record = BenchmarkRecord(
            benchmark, 1, "d" * 64, {"name": benchmark, **(declaration or {})}, Sampling(count, 0.6, 0.95, 8, 0),
            "toy.jsonl", "f" * 64, len(problems), {},
        )  # fmt: skip
        write_benchmark(out / benchmark, record, problems)
        with Lines(out / benchmark / "samples.jsonl") as lines:
            lines.append(
                SampleRecord(
                    problem=p, model=model, sample=i, prompt_hash="h" * 64,
                    completion="" if value is None else f"so \\boxed{{{value}}}", tokens=4,
                    finished=value is not None, answer=None if value is None else Answer("math", value),
                    correct=value == golds[p], seconds=0.5,
                ).to_json()
                for model, rows in answers.items() for p, given in rows.items() for i, value in enumerate(given)
            )  # fmt: skip
        return out

    return write
