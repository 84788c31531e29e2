"""What an evaluation writes down, enough to grade and score it again without the model.

OUT/run.json                       models, settings and versions, fixed when the folder is begun
OUT/BENCHMARK/benchmark.json       the declaration, what the data was, and how many rows were dropped for which reason
OUT/BENCHMARK/problems.jsonl       one line a problem, in the order of its source
OUT/BENCHMARK/samples.jsonl        one line a completion: model by model, then problem by problem, then sample by sample
OUT/summary.json, .csv, .md        the scores
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self, TypeVar

from mmcorl.errors import MmcorlError
from mmcorl.files import json_line, read_lines, write_whole, writing
from mmcorl.graders.answers import Answer
from mmcorl.problems import AnswerKind, Problem

RUN_FILE = "run.json"
BENCHMARK_FILE = "benchmark.json"
PROBLEMS_FILE = "problems.jsonl"
SAMPLES_FILE = "samples.jsonl"
OUT_SETTING = "--out"


class Record:
    """A dataclass that is one JSON object, a key for each field."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)  # pyright: ignore[reportArgumentType]  (every subclass is a dataclass)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Raises TypeError where a field is missing or unknown."""
        return cls(**data)


R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class Sampling(Record):
    """How completions were drawn."""

    samples: int
    """Completions of each problem by each model."""
    temperature: float
    """0 is greedy decoding, which gives one sample."""
    top_p: float
    """Tokens are drawn from the most probable ones that together have this share; 1 from all."""
    max_tokens: int
    seed: int


@dataclass(frozen=True)
class RunRecord(Record):
    """`run.json`. A folder is continued only with an equal one."""

    models: dict[str, str]
    """Name in the samples -> local folder or hub id."""
    limit: int | None
    """Only the first so many problems of each benchmark; None takes all."""
    settings: dict[str, Any]
    """The sections of the training configuration that were used: `prompt`, `images`, ..."""
    versions: dict[str, str]


@dataclass(frozen=True)
class BenchmarkRecord(Record):
    """`benchmark.json`."""

    name: str
    version: int
    digest: str
    """Of the declaration; two results with the same one asked and graded alike."""
    declaration: dict[str, Any]
    sampling: Sampling
    data: str
    """Where the rows came from."""
    fingerprint: str
    """Of all problems with their golds and images, in order."""
    problems: int
    dropped: dict[str, int]
    """Rows that are no problem of this benchmark, by reason."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(**{**data, "sampling": Sampling.from_json(data["sampling"])})


@dataclass(frozen=True)
class ProblemRecord(Record):
    """One line of `problems.jsonl`: all that grading and scoring need to know of a problem."""

    id: str
    question: str
    choices: list[str] | None
    kind: AnswerKind
    gold: str | None
    """The labelled answer as the grader takes it, the letter of a choice; for code, the tests."""
    fields: dict[str, Any] = field(default_factory=dict)
    """Facts of the row by the names of the declaration: `precision`, `unit`, `answer_type`, `problem_version`, ..."""
    images: list[str] = field(default_factory=list)
    """SHA-256 of each image as it is stored in the source."""

    def problem(self) -> Problem:
        """The problem without its images, as the grader takes it."""
        choices = None if self.choices is None else tuple(self.choices)
        return Problem(self.id, self.question, (), choices, self.kind)


@dataclass(frozen=True)
class SampleRecord(Record):
    """One line of `samples.jsonl`."""

    problem: str
    """Id of the problem."""
    model: str
    """A name of `RunRecord.models`."""
    sample: int
    """Number of the completion among those of this model to this problem, from 0."""
    prompt_hash: str
    """SHA-256 of the prompt's text and of the pixels that went with it."""
    completion: str
    tokens: int
    """Of the completion, the stop token included."""
    finished: bool
    """False where `max_tokens` came before a stop token."""
    answer: Answer | None
    """None where nothing could be read."""
    correct: bool
    seconds: float
    """Share of this completion in the time that its batch took; the one field that differs between equal runs."""

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "answer": self.answer and self.answer.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        answer = data["answer"]
        if not isinstance(data["completion"], str) or not isinstance(data["correct"], bool):
            raise TypeError("completion is text, and correct true or false")
        return cls(**{**data, "answer": None if answer is None else Answer.from_json(answer)})

    @property
    def key(self) -> tuple[str, str, int]:
        """What no two samples of a benchmark share: model, problem, number."""
        return self.model, self.problem, self.sample


@dataclass(frozen=True)
class BenchmarkResult:
    """All that is known of one benchmark in a folder. `samples` may be incomplete: see `missing`."""

    benchmark: BenchmarkRecord
    problems: list[ProblemRecord]
    samples: list[SampleRecord]

    def missing(self, run: RunRecord) -> int:
        """Samples that the run asks for and that are not there yet."""
        return len(self.problems) * len(run.models) * self.benchmark.sampling.samples - len(self.samples)


def write_run(out: Path, run: RunRecord) -> None:
    with writing(out, OUT_SETTING):
        out.mkdir(parents=True, exist_ok=True)
        write_whole(out / RUN_FILE, _document(run))


def read_run(out: Path) -> RunRecord:
    """Raises MmcorlError where `out` is no result folder."""
    return _read_document(out / RUN_FILE, RunRecord)


def write_benchmark(folder: Path, benchmark: BenchmarkRecord, problems: Iterable[ProblemRecord]) -> None:
    """Begin a benchmark's folder; it counts as begun once its `benchmark.json` is there."""
    with writing(folder, OUT_SETTING):
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(
            folder / PROBLEMS_FILE, b"".join(json_line(problem.to_json()) for problem in problems).decode()
        )
        write_whole(folder / BENCHMARK_FILE, _document(benchmark))


def read_benchmark(folder: Path) -> BenchmarkRecord:
    return _read_document(folder / BENCHMARK_FILE, BenchmarkRecord)


def read_problems(folder: Path) -> list[ProblemRecord]:
    return _read_records(folder / PROBLEMS_FILE, ProblemRecord)


def read_samples(folder: Path) -> list[SampleRecord]:
    """The samples so far; no file is none."""
    return _read_records(folder / SAMPLES_FILE, SampleRecord)


def read_result(folder: Path) -> BenchmarkResult:
    """One benchmark of a result folder, OUT/BENCHMARK."""
    return BenchmarkResult(read_benchmark(folder), read_problems(folder), read_samples(folder))


def benchmark_folders(out: Path) -> list[Path]:
    """The folders of the benchmarks that were begun, by name. Raises MmcorlError where there is none."""
    found = sorted(path.parent for path in out.glob(f"*/{BENCHMARK_FILE}"))
    if not found:
        raise MmcorlError(f"{out} holds no results; name the folder that `mmcorl-eval --out` was given")
    return found


def require_same(before: Mapping[str, Any], now: Mapping[str, Any], where: Path) -> None:
    """Raise MmcorlError where a folder was begun with other facts, naming the first by its dotted path."""
    if changed := list(_differences(before, now)):
        name, old, new = changed[0]
        raise MmcorlError(
            f"{where} was begun with {name}={old!r} and this is {name}={new!r}; "
            "use what it was begun with to go on, or another --out to begin anew"
        )


def _document(record: Record) -> str:
    return json.dumps(record.to_json(), indent=2, ensure_ascii=True) + "\n"


def _read_document(path: Path, kind: type[R]) -> R:
    try:
        return kind.from_json(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise MmcorlError(
            f"{path} does not exist; name a folder that `mmcorl-eval --out` was given"
        ) from None
    except (ValueError, TypeError, KeyError) as error:
        raise MmcorlError(f"{path} is no {kind.__name__} of this version of mmcorl ({error})") from None


def _read_records(path: Path, kind: type[R]) -> list[R]:
    expected = {f.name for f in fields(kind)}  # pyright: ignore[reportArgumentType]
    records: list[R] = []
    for number, line in enumerate(read_lines(path), start=1):
        try:
            records.append(kind.from_json(line))
        except (TypeError, KeyError, ValueError) as error:
            raise MmcorlError(
                f"{path}, line {number}, is no {kind.__name__} ({error}); it has the fields {', '.join(sorted(expected))}"
            ) from None
    return records


def _differences(before: Any, now: Any, name: str = "") -> Iterator[tuple[str, Any, Any]]:
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in dict.fromkeys([*before, *now]):
            inner = f"{name}.{key}" if name else str(key)
            yield from _differences(before.get(key), now.get(key), inner)
    elif before != now:
        yield name, before, now
