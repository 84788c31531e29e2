"""Write a twin of a data set: every problem in other words, for agents that read one wording each.

    python data_tools/rephrase.py data/geometry3k twin.jsonl --endpoint http://localhost:8000/v1 --model NAME
    python data_tools/rephrase.py data/geometry3k twin.jsonl --model Qwen/Qwen2.5-7B-Instruct

With --endpoint any OpenAI-compatible server is asked, else the model is loaded here. The twin has a line for each
problem with its id, the question to read, a digest of the original and what became of the rewording: a wording that loses
a number, a formula, the name of a point, an option or the place of an image is not taken, and the original stays. A run
that was stopped goes on with the problems that have no line yet. Name the file by `data.twin`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from mmcorl.cli.command import run_command
from mmcorl.config import AgentConfig, DataConfig, PromptConfig, RolloutsConfig
from mmcorl.data.loading import load_problems
from mmcorl.data.rewording import losses, request, reworded
from mmcorl.data.twin import ORIGINAL, wording_digest
from mmcorl.errors import MmcorlError
from mmcorl.files import writing
from mmcorl.problems import Problem, RolloutGroup

_ASKED = PromptConfig(instruction="")


class Speaker(Protocol):
    """An agent, here or behind an endpoint."""

    def rollout(
        self,
        problems: Sequence[Problem],
        *,
        samples: int,
        max_tokens: int,
        noise_key: tuple[int | str, ...] | None,
        temperature: float = 1.0,
    ) -> list[RolloutGroup]: ...


def main(arguments: Sequence[str] | None = None) -> int:
    """The program; returns its exit code: 0 done, 2 a mistake in the input."""
    options = _parser().parse_args(arguments)
    return run_command(lambda: _rephrase(options))


def rephrase(
    problems: Sequence[Problem], out: Path, speaker: Speaker, options: argparse.Namespace
) -> Counter[str]:
    """Write the lines of the problems that have none yet; returns the number of lines by what became of them."""
    with writing(out, "OUT"):
        done = _finished(problems, out)
    outcomes = Counter(done.values())
    left = [problem for problem in problems if problem.id not in done]
    with writing(out, "OUT"), out.open("a", encoding="utf-8") as file:
        for start in range(0, len(left), options.batch):
            batch = left[start : start + options.batch]
            groups = speaker.rollout(
                [request(problem) for problem in batch],
                samples=options.tries,
                max_tokens=options.max_tokens,
                noise_key=("rephrase", options.seed),
                temperature=options.temperature,
            )
            for problem, group in zip(batch, groups, strict=True):
                question, outcome = _chosen(problem, group)
                outcomes[outcome] += 1
                line = {
                    "id": problem.id,
                    "question": question,
                    ORIGINAL: wording_digest(problem),
                    "outcome": outcome,
                }
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
            file.flush()
            print(f"{outcomes.total()} of {len(problems)} problems", file=sys.stderr)
    return outcomes


def _chosen(problem: Problem, group: RolloutGroup) -> tuple[str, str]:
    """The first of the wordings that keeps what it must, or the original and what the first one lost."""
    lost: list[str] = []
    for completion in group.completions:
        wording = reworded(problem, completion.text)
        missing = list(losses(problem.question, wording)) if completion.finished else ["never ended"]
        if not missing:
            return wording, "reworded"
        lost.append(missing[0])
    return problem.question, f"kept: {lost[0]}"


def _finished(problems: Sequence[Problem], out: Path) -> dict[str, str]:
    """Outcomes of an earlier run by id; a last line that was cut goes. Raises MmcorlError for a twin of other problems."""
    digests = {problem.id: wording_digest(problem) for problem in problems}
    content = out.read_bytes() if out.exists() else b""
    *whole, cut = content.split(b"\n")
    try:
        lines = [json.loads(line) for line in whole]
        done = {line["id"]: line["outcome"] for line in lines}
        others = [line["id"] for line in lines if digests.get(line["id"]) != line[ORIGINAL]]
        if cut and not whole and not cut.startswith(b'{"id": '):
            raise ValueError("it holds something else")
    except (ValueError, KeyError, TypeError) as error:
        raise MmcorlError(f"{out} is no twin ({error}); remove it or name another file") from None
    if others:
        raise MmcorlError(
            f"{out} is a twin of other problems (id {others[0]!r} differs); remove it or name another file"
        )
    if cut:
        out.write_bytes(content[: -len(cut)])
    return done


def _rephrase(options: argparse.Namespace) -> int:
    for name in ("batch", "tries", "max_tokens"):
        if getattr(options, name) < 1:
            raise MmcorlError(f"--{name.replace('_', '-')}={getattr(options, name)} must be at least 1")
    data = DataConfig(source=options.source, path=options.path, limit=options.limit)
    problems = load_problems(data, "PATH").problems
    outcomes = rephrase(problems, options.out, _speaker(options), options)
    print(f"wrote {outcomes.total()} problems to {options.out}")
    for outcome, count in outcomes.most_common():
        print(f"{count:>8}  {outcome}")
    return 0


def _speaker(options: argparse.Namespace) -> Speaker:
    if options.endpoint is None:
        from transformers.utils.logging import disable_progress_bar

        from mmcorl.agents.agent import Agent

        disable_progress_bar()
        return Agent.load(
            "rephraser",
            AgentConfig(model=options.model),
            _ASKED,
            rollouts=RolloutsConfig(max_prompt_tokens=16_384),
        )
    from mmcorl.agents.endpoint import Endpoint

    agent = AgentConfig(
        model=options.model, endpoint=options.endpoint, api_key_env=options.api_key_env, frozen=True
    )
    return Endpoint.load("rephraser", agent, _ASKED)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rephrase.py",
        description="Write a twin of a data set: every problem in other words.",
        epilog="example: python data_tools/rephrase.py data/gsm8k twin.jsonl --endpoint http://localhost:8000/v1 --model NAME",
    )
    parser.add_argument("path", metavar="PATH", help="prepared folder or data file")
    parser.add_argument(
        "out", type=Path, metavar="OUT", help="JSONL file of the twin; a run that was stopped goes on"
    )
    parser.add_argument("--source", metavar="NAME", help="public source that PATH is a copy of")
    parser.add_argument(
        "--model", required=True, metavar="MODEL", help="model at the endpoint, or a folder or hub id"
    )
    parser.add_argument(
        "--endpoint", metavar="URL", help="OpenAI-compatible server, as http://localhost:8000/v1"
    )
    parser.add_argument(
        "--api-key-env", metavar="VARIABLE", help="environment variable with the endpoint's key"
    )
    parser.add_argument("--temperature", type=float, default=0.7, metavar="T", help="default 0.7")
    parser.add_argument(
        "--tries",
        type=int,
        default=2,
        metavar="N",
        help="wordings asked for; the first good one counts (default 2)",
    )
    parser.add_argument(
        "--max-tokens", type=int, default=1024, metavar="N", help="longest wording (default 1024)"
    )
    parser.add_argument(
        "--batch", type=int, default=16, metavar="N", help="problems asked at once (default 16)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="default 0")
    parser.add_argument("--limit", type=int, metavar="N", help="take only the first so many problems")
    return parser


if __name__ == "__main__":
    sys.exit(main())
