"""Completions of several models to the same problems: sampled once, kept as JSON lines, read back without a model.

OUT/run.json               what was asked: data, samples, settings
OUT/completions/NAME.jsonl one line a problem: `problem`, `question`, `choices`, `kind`, `gold`, `completions`
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from mmcorl.analysis.diversity import Answers, Pair, Shares, own_shares, pair, pair_shares
from mmcorl.cohort.ballots import Ballot, elect
from mmcorl.data.loading import LoadedData
from mmcorl.errors import MmcorlError
from mmcorl.evaluation.records import Record, require_same
from mmcorl.evaluation.settings import EvaluationSettings
from mmcorl.files import Lines, read_lines, write_whole, writing
from mmcorl.graders import Grader
from mmcorl.problems import AnswerKind, Problem

_BATCH = 32  # problems that are answered before anything is written


@dataclass(frozen=True)
class Stored(Record):
    """One line of a file of completions."""

    problem: str
    """Id of the problem; what makes lines of two files belong together."""
    gold: str
    completions: list[str]
    question: str = ""
    choices: list[str] | None = None
    kind: AnswerKind = "math"


@dataclass(frozen=True)
class Request:
    """What is asked of every model."""

    settings: EvaluationSettings
    data: Mapping[str, Any]
    """What names the problems, for the record."""
    samples: int
    temperature: float
    max_tokens: int
    seed: int

    def to_json(self) -> dict[str, Any]:
        return {
            "data": dict(self.data),
            "samples": self.samples,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "seed": self.seed,
            "settings": self.settings.model_dump(mode="json"),
        }


def sample(
    models: Mapping[str, str], data: LoadedData, request: Request, out: Path, told: Callable[[str], None]
) -> dict[str, Path]:
    """Sample what is missing of each model, and give the file of each. A model is loaded only if it has to answer.

    The noise of a model depends on its name: the same weights under two names are the same model with two seeds.
    Raises MmcorlError where `out` has completions that were asked for differently.
    """
    import torch
    from transformers.utils.logging import disable_progress_bar

    from mmcorl.agents.agent import Agent

    disable_progress_bar()
    _begin(out, request.to_json() | {"problems": len(data.problems)})
    files = {name: out / "completions" / f"{name}.jsonl" for name in models}
    for name, model in models.items():
        done = {line["problem"] for line in read_lines(files[name])}
        missing = [problem for problem in data.problems if problem.id not in done]
        if not missing:
            continue
        told(f"{name}: {len(missing)} problems to answer {request.samples} times")
        agent = Agent.load(
            name, request.settings.agent(model), request.settings.prompt, request.settings.images,
            request.settings.rollouts(), "cuda" if torch.cuda.is_available() else "cpu",
        )  # fmt: skip
        with Lines(files[name], "--out") as lines:
            for start in range(0, len(missing), _BATCH):
                groups = agent.rollout(
                    missing[start : start + _BATCH],
                    samples=request.samples,
                    max_tokens=request.max_tokens,
                    noise_key=("diversity", request.seed, name),
                    temperature=request.temperature,
                )
                lines.append(
                    Stored(
                        group.problem.id,
                        data.golds[group.problem.id].answer,
                        [completion.text for completion in group.completions],
                        group.problem.question,
                        None if group.problem.choices is None else list(group.problem.choices),
                        group.problem.kind,
                    ).to_json()
                    for group in groups
                )
        del agent
        gc.collect()  # its weights, before those of the next
    return files


def _begin(out: Path, asked: dict[str, Any]) -> None:
    path = out / "run.json"
    if path.exists():
        require_same(json.loads(path.read_text(encoding="utf-8")), asked, out)
        return
    with writing(path, "--out"):
        out.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(asked, indent=2) + "\n")


def read_completions(path: Path) -> dict[str, Stored]:
    """Lines of a file of completions by problem. Raises MmcorlError for a file that is none."""
    if not path.is_file():
        raise MmcorlError(f"{path}: no such file of completions")
    stored: dict[str, Stored] = {}
    for number, line in enumerate(read_lines(path), start=1):
        try:
            entry = Stored.from_json(line)
        except TypeError as error:
            raise MmcorlError(f"{path}, line {number}: {str(error).rpartition('__init__() ')[2]}") from None
        texts = isinstance(entry.completions, list) and all(isinstance(t, str) for t in entry.completions)
        if not texts or not entry.completions or entry.kind not in get_args(AnswerKind):
            raise MmcorlError(
                f"{path}, line {number}: `completions` is a list of texts, and `kind` an answer kind"
            )
        if entry.problem in stored:
            raise MmcorlError(f"{path}, line {number}: the problem {entry.problem} stands twice")
        stored[entry.problem] = entry
    if not stored:
        raise MmcorlError(f"{path} holds no completions")
    return stored


@dataclass(frozen=True)
class Graded:
    """Answers of each model to the problems that all of them answered, in one order."""

    samples: dict[str, list[Answers]]
    votes: dict[str, list[Answers]]
    """What each model's answers elect: one answer a problem, the first on a tie."""
    left_out: int
    """Problems that some model did not answer."""


def grade(files: Mapping[str, Path], grader: Grader) -> Graded:
    """Read and grade the completions of each model. Raises MmcorlError where no problem is common to all."""
    stored = {name: read_completions(path) for name, path in files.items()}
    everywhere = [p for p in next(iter(stored.values())) if all(p in lines for lines in stored.values())]
    if not everywhere:
        raise MmcorlError(
            "no problem was answered by all models; `problem` has to name the same ones in each file"
        )
    for name, lines in stored.items():
        for problem in everywhere:
            if lines[problem].gold != next(iter(stored.values()))[problem].gold:
                raise MmcorlError(
                    f"{files[name]}: the problem {problem} has another gold than in the first file"
                )
    samples = {name: [_graded(lines[p], grader) for p in everywhere] for name, lines in stored.items()}
    votes = {name: [_vote(answers, grader) for answers in rows] for name, rows in samples.items()}
    return Graded(samples, votes, len(set().union(*stored.values())) - len(everywhere))


def _graded(line: Stored, grader: Grader) -> Answers:
    choices = None if line.choices is None else tuple(line.choices)
    problem = Problem(line.problem, line.question, choices=choices, kind=line.kind)
    gold = grader.read(line.gold, problem)
    answers = [grader.answer(text, problem) for text in line.completions]
    return Answers(answers, [grader.correct(answer, gold, problem) for answer in answers])


def _vote(model: Answers, grader: Grader) -> Answers:
    vote = elect(Ballot.count(model.answers, grader.classes), threshold=0.0, ties="first").answer
    right = vote is not None and model.right[model.answers.index(vote)]
    return Answers([vote], [right])


def pairs_of(models: Mapping[str, Sequence[Answers]], grader: Grader) -> list[Pair]:
    """The measures of every pair, and of every model with itself where there are several samples of each problem."""
    names = list(models)
    pairs = []
    for i, first in enumerate(names):
        for second in names[i:]:
            shares: list[Shares]
            if first != second:
                rows = zip(models[first], models[second], strict=True)
                shares = [pair_shares(a, b, grader.classes) for a, b in rows]
            elif all(len(row.right) > 1 for row in models[first]):
                shares = [own_shares(row, grader.classes) for row in models[first]]
            else:
                continue
            pairs.append(pair(first, second, shares))
    return pairs
