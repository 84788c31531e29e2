"""Runs models on benchmarks and writes every sample down. A killed run goes on where it stopped."""

from __future__ import annotations

import hashlib
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Self

from mmcorl.agents.agent import Agent
from mmcorl.agents.processors import Prompt, PromptBuilder
from mmcorl.config import CodeConfig
from mmcorl.evaluation.declaration import Declaration
from mmcorl.evaluation.grading import Marker
from mmcorl.evaluation.loading import LoadedBenchmark
from mmcorl.evaluation.programs import CODE, grade_programs
from mmcorl.evaluation.progress import Progress
from mmcorl.evaluation.reading import Item
from mmcorl.evaluation.records import (
    OUT_SETTING,
    SAMPLES_FILE,
    BenchmarkRecord,
    RunRecord,
    SampleRecord,
    Sampling,
    read_benchmark,
    read_run,
    read_samples,
    require_same,
    write_benchmark,
    write_run,
)
from mmcorl.evaluation.settings import Asked
from mmcorl.files import Lines
from mmcorl.graders import Answer, Grader
from mmcorl.graders.code import limits_of
from mmcorl.problems import Completion
from mmcorl.sandbox import Sandbox


def begin_run(out: Path, models: Mapping[str, str], asked: Asked) -> RunRecord:
    """Begin a result folder, or continue one: then it must have been begun with the same models and settings."""
    run = RunRecord(
        models=dict(models),
        limit=asked.limit,
        settings={**asked.settings.model_dump(mode="json"), "batch": asked.batch},
        versions={"python": platform.python_version(), **{p: version(p) for p in ("mmcorl", "torch", "transformers")}},
    )  # fmt: skip
    if any(map(_begun, out.glob(f"*/{SAMPLES_FILE}"))):
        require_same(read_run(out).to_json(), run.to_json(), out)
    else:
        write_run(out, run)
    return run


def begin_benchmark(out: Path, loaded: LoadedBenchmark, sampling: Sampling) -> Path:
    """Begin or continue OUT/BENCHMARK, and return it."""
    declaration = loaded.declaration
    folder = out / declaration.name
    record = BenchmarkRecord(
        name=declaration.name,
        version=declaration.version,
        digest=declaration.digest,
        declaration=declaration.model_dump(mode="json"),
        sampling=sampling,
        data=loaded.data,
        fingerprint=loaded.fingerprint,
        problems=len(loaded.items),
        dropped=loaded.dropped,
    )
    if _begun(folder / SAMPLES_FILE):
        require_same(
            {**read_benchmark(folder).to_json(), "data": record.data}, record.to_json(), folder
        )  # wherever the data lie, the fingerprint says whether they are the same
    else:
        write_benchmark(folder, record, [item.record for item in loaded.items])
    return folder


class Judges:
    """What grades completions: the grader, and a sandbox from the first program on."""

    def __init__(self, grader: Grader, code: CodeConfig = CODE) -> None:
        self._grader = grader
        self._sandbox = Sandbox(limits_of(code), code.processes)

    def grade(
        self, given: Sequence[tuple[Item, Completion]], declaration: Declaration
    ) -> list[tuple[Answer | None, bool]]:
        """What each completion concluded, and whether that is right."""
        if declaration.kind == "code":
            asked = [(item.record, item.gold, completion.text) for item, completion in given]
            return grade_programs(asked, declaration.prelude, self._sandbox)
        marks = {
            item.problem.id: Marker(self._grader, item.record, declaration.convention) for item, _ in given
        }
        return [marks[item.problem.id](c.text, c.finished) for item, c in given]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._sandbox.close()


@dataclass(frozen=True)
class Part:
    """One benchmark of a run."""

    benchmark: LoadedBenchmark
    folder: Path
    sampling: Sampling

    def finished(self, model: str) -> bool:
        """Whether a model has all its samples."""
        there = sum(sample.model == model for sample in read_samples(self.folder))
        return there == len(self.benchmark.items) * self.sampling.samples


def run_part(agent: Agent, place: int, part: Part, asked: Asked, judges: Judges, progress: Progress) -> None:
    """Sample, grade and write down what is missing of one model on one benchmark.

    Problems are answered `asked.batch` at a time, and a batch is written in one go. What its completions are does not
    depend on what was done before, so a run that was killed ends with the samples of one that was not. `place` is the
    model's among those of the run: each draws noise of its own, and those of equal place in two runs the same.
    """
    items, sampling, declaration = part.benchmark.items, part.sampling, part.benchmark.declaration
    agent = _with_prompt(agent, declaration, asked)
    done = {sample.key: sample for sample in read_samples(part.folder)}
    noise_key = ("evaluation", sampling.seed, declaration.name, place) if sampling.temperature else None
    progress.start(f"{agent.name} on {declaration.name}", len(items) * sampling.samples)
    with Lines(part.folder / SAMPLES_FILE, OUT_SETTING) as lines:
        for start in range(0, len(items), asked.batch):
            batch = items[start : start + asked.batch]
            keys = [(agent.name, item.problem.id, k) for item in batch for k in range(sampling.samples)]
            if any(key not in done for key in keys):
                found = _answer(agent, batch, part, noise_key, judges)
                # Of a batch that was torn while it was written, the first samples are there.
                new = [sample for sample in found if sample.key not in done]
                lines.append(sample.to_json() for sample in new)
                done |= {sample.key: sample for sample in new}
            progress.advance([done[key] for key in keys])


def prompt_hash(prompt: Prompt) -> str:
    """SHA-256 of a prompt's text and of the pixels of its images, after the caps of the configuration."""
    digest = hashlib.sha256(prompt.text.encode("utf-8", "surrogatepass"))
    for image in prompt.images:
        digest.update(repr(image.size).encode())
        digest.update(image.tobytes())
    return digest.hexdigest()


def _answer(
    agent: Agent, batch: Sequence[Item], part: Part, noise_key: tuple[int | str, ...] | None, judges: Judges
) -> list[SampleRecord]:
    started = time.monotonic()
    sampling = part.sampling
    groups = agent.rollout(
        [item.problem for item in batch],
        samples=sampling.samples,
        max_tokens=sampling.max_tokens,
        noise_key=noise_key,
        temperature=sampling.temperature or 1.0,
        top_p=sampling.top_p,
    )
    given = [
        (item, number, completion)
        for item, group in zip(batch, groups, strict=True)
        for number, completion in enumerate(group.completions)
    ]
    hashes = {item.problem.id: prompt_hash(agent.encode(item.problem)) for item in batch}
    verdicts = judges.grade([(item, c) for item, _, c in given], part.benchmark.declaration)
    seconds = round((time.monotonic() - started) / len(given), 4)
    return [
        SampleRecord(
            problem=item.problem.id,
            model=agent.name,
            sample=number,
            prompt_hash=hashes[item.problem.id],
            completion=completion.text,
            tokens=len(completion.token_ids),
            finished=completion.finished,
            answer=answer,
            correct=correct,
            seconds=seconds,
        )
        for (item, number, completion), (answer, correct) in zip(given, verdicts, strict=True)
    ]


def _with_prompt(agent: Agent, declaration: Declaration, asked: Asked) -> Agent:
    """The agent with the words that this benchmark puts around a question."""
    p = agent.prompts
    builder = PromptBuilder(
        agent.model, agent.processor, agent.backbone, asked.prompt(declaration), p.images, p.max_tokens
    )
    return replace(agent, prompts=builder)


def _begun(samples: Path) -> bool:
    """Until there is a sample, as after a mistake in a model's name, a folder can be begun anew."""
    return samples.exists() and samples.stat().st_size > 0
