"""Samples a second of a benchmark run against calling `generate` for one problem after the other, on one thread.

    python bench/evaluate.py

Both sides get the same agent, prompts and images of the scenes, and grade what they get; decoding is greedy, and then
eight samples a problem. mmcorl answers a batch of problems together, computes a prompt once for its eight samples, and
writes every sample down. The two take turns, and the first turn of each is not counted.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from transformers.utils.logging import disable_progress_bar, set_verbosity_error

from mmcorl.agents.agent import Agent
from mmcorl.evaluation.benchmarks import load_declaration
from mmcorl.evaluation.loading import LoadedBenchmark, load_benchmark
from mmcorl.evaluation.progress import Progress
from mmcorl.evaluation.reading import Item
from mmcorl.evaluation.records import read_samples
from mmcorl.evaluation.runner import Judges, Part, begin_benchmark, run_part
from mmcorl.evaluation.settings import Asked, read_settings
from mmcorl.graders import Grader
from mmcorl.problems import Completion

MAX_TOKENS = 10
SETTINGS = read_settings(None, ["prompt.instruction=Think, then answer."])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="data_tools/tiny_agents/qwen2_5_vl")
    parser.add_argument("--problems", type=int, default=64)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--batch", type=int, default=64)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    disable_progress_bar()
    set_verbosity_error()
    agent = Agent.load(
        "tiny", SETTINGS.agent(arguments.model), SETTINGS.prompt, SETTINGS.images, SETTINGS.rollouts()
    )
    with Grader() as grader, Judges(grader) as judges:
        loaded = load_benchmark(load_declaration("scenes"), grader, limit=arguments.problems)
        for samples in (1, 8):
            asked = Asked(
                SETTINGS,
                samples,
                temperature=float(samples > 1),
                max_tokens=MAX_TOKENS,
                batch=arguments.batch,
            )
            ours, texts = _timed(lambda a=asked: _benchmark_run(agent, loaded, a, judges), arguments.turns)
            naive, naive_texts = _timed(
                lambda a=asked: _one_by_one(agent, loaded, a, judges), arguments.turns
            )
            total = len(loaded.items) * samples
            same = sum(a == b for a, b in zip(texts, naive_texts, strict=True)) / total
            greedy = f", {same:.0%} of the completions the same" if samples == 1 else ""
            print(
                f"{samples} sample{'s' * (samples > 1)} a problem: mmcorl {total / ours:.0f} samples/s, "
                f"generate one by one {total / naive:.0f} samples/s, ratio {naive / ours:.1f}{greedy}"
            )  # fmt: skip


def _timed(work: Callable[[], list[str]], turns: int) -> tuple[float, list[str]]:
    """Median seconds, and what it gave."""
    texts, seconds = work(), []
    for _ in range(turns):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds), texts


def _benchmark_run(agent: Agent, loaded: LoadedBenchmark, asked: Asked, judges: Judges) -> list[str]:
    with tempfile.TemporaryDirectory() as out, Progress(Console(quiet=True)) as progress:
        sampling = asked.sampling(loaded.declaration)
        part = Part(loaded, begin_benchmark(Path(out), loaded, sampling), sampling)
        run_part(agent, 0, part, asked, judges, progress)
        return [sample.completion for sample in read_samples(part.folder)]


@torch.no_grad()
def _one_by_one(agent: Agent, loaded: LoadedBenchmark, asked: Asked, judges: Judges) -> list[str]:
    generate: Any = agent.model.eval().generate
    texts: list[str] = []
    given: list[tuple[Item, Completion]] = []
    sampling = asked.sampling(loaded.declaration)
    for item in loaded.items:
        prompt = agent.prompts._build(item.problem)  # not from the cache, which a first pass does not have
        inputs = {"input_ids": prompt.ids, "attention_mask": torch.ones_like(prompt.ids), **prompt.tokens}
        output = generate(
            **{name: value[None] for name, value in inputs.items()},
            **prompt.vision,
            **_decoding(sampling.samples, sampling.temperature),
        )
        new = agent.prompts.tokenizer.batch_decode(output[:, len(prompt.ids) :], skip_special_tokens=True)
        texts += new
        given += [(item, Completion(text, (), (), finished=True)) for text in new]
    judges.grade(given, loaded.declaration)
    return texts


def _decoding(samples: int, temperature: float) -> dict[str, float | int | bool]:
    if samples == 1:
        return {"max_new_tokens": MAX_TOKENS, "do_sample": False}
    return {
        "max_new_tokens": MAX_TOKENS, "do_sample": True, "num_return_sequences": samples,
        "temperature": temperature, "top_k": 0, "top_p": 1.0,
    }  # fmt: skip


if __name__ == "__main__":
    main()
