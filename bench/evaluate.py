"""Samples a second of a benchmark run against calling `generate`, for a batch of problems and for one by one, on one thread.

    python bench/evaluate.py

All sides get the same agent, prompts and images of the scenes, build every prompt anew, and grade what they get; decoding
is greedy, and then eight samples a problem. mmcorl and the batched `generate`, whose prompts are padded on the left, are
given equally many problems at once. mmcorl computes a prompt once for its eight samples, and writes every sample down. The
sides take turns, and the first turn of each is not counted.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from transformers.utils.logging import disable_progress_bar, set_verbosity_error

from mmcorl.agents.agent import Agent
from mmcorl.agents.batches import prompt_batch
from mmcorl.agents.processors import PromptBuilder
from mmcorl.evaluation.benchmarks import load_declaration
from mmcorl.evaluation.loading import LoadedBenchmark, load_benchmark
from mmcorl.evaluation.progress import Progress
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
            sides = {
                "mmcorl": partial(_benchmark_run, agent, loaded, asked, judges),
                "generate in batches": partial(_generated, agent, loaded, asked, judges, arguments.batch),
                "generate one by one": partial(_generated, agent, loaded, asked, judges, 1),
            }
            seconds, texts = _timed(sides, arguments.turns)
            total = len(loaded.items) * samples
            print(f"{samples} sample{'s' * (samples > 1)} a problem")
            for name in sides:
                same = sum(a == b for a, b in zip(texts["mmcorl"], texts[name], strict=True)) / total
                print(
                    f"  {name:<20}{total / seconds[name]:>6.0f} samples/s, mmcorl is {seconds[name] / seconds['mmcorl']:.2f} x "
                    f"as fast" + (f", {same:.0%} of the completions the same" if samples == 1 else "")
                )


def _timed(
    sides: Mapping[str, Callable[[], list[str]]], turns: int
) -> tuple[dict[str, float], dict[str, list[str]]]:
    """Median seconds of each side, and what its first turn gave."""
    texts = {name: work() for name, work in sides.items()}
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(turns):
        for name, work in sides.items():
            started = time.perf_counter()
            work()
            seconds[name].append(time.perf_counter() - started)
    return {name: statistics.median(each) for name, each in seconds.items()}, texts


def _benchmark_run(agent: Agent, loaded: LoadedBenchmark, asked: Asked, judges: Judges) -> list[str]:
    with tempfile.TemporaryDirectory() as out, Progress(Console(quiet=True)) as progress:
        sampling = asked.sampling(loaded.declaration)
        part = Part(loaded, begin_benchmark(Path(out), loaded, sampling), sampling)
        run_part(agent, 0, part, asked, judges, progress)
        return [sample.completion for sample in read_samples(part.folder)]


@torch.no_grad()
def _generated(
    agent: Agent, loaded: LoadedBenchmark, asked: Asked, judges: Judges, problems: int
) -> list[str]:
    """What `generate` gives, for so many problems at once."""
    generate: Any = agent.model.eval().generate
    texts: list[str] = []
    sampling, p = asked.sampling(loaded.declaration), agent.prompts
    builder = PromptBuilder(  # one that keeps no prompts, since a benchmark is run once
        agent.model, agent.processor, agent.backbone, asked.prompt(loaded.declaration), p.images, p.max_tokens, 0
    )  # fmt: skip
    for start in range(0, len(loaded.items), problems):
        part = loaded.items[start : start + problems]
        batch = prompt_batch([builder.build(item.problem) for item in part])
        output = generate(
            input_ids=batch.ids,
            attention_mask=batch.mask,
            **batch.tokens,
            **batch.vision,
            **_decoding(sampling.samples, sampling.temperature),
        )
        new = output[:, batch.ids.shape[1] :]
        texts += p.tokenizer.batch_decode(new, skip_special_tokens=True)
    items = [item for item in loaded.items for _ in range(sampling.samples)]
    given = [(item, Completion(text, (), (), finished=True)) for item, text in zip(items, texts, strict=True)]
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
