"""Tokens a second of the rollout engines side by side, vLLM and transformers, on the same weights and problems.

    .venv-vllm/bin/python bench/rollout.py            # after `make test-vllm` has made .venv-vllm

Both load one model and sample K completions of each problem (one image each) until `max_tokens`, since a random tiny
model rarely stops. The engines take turns in one process with the same threads, and each round of vLLM includes handing
over the weights; the first round of each, which starts vLLM and warms both up, is not counted. Without vLLM it prints
the transformers engine alone.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import torch
from transformers.utils.logging import disable_progress_bar

from mmcorl.agents.agent import Agent
from mmcorl.agents.tiny import FAMILIES, TinySizes, make_tiny
from mmcorl.config import AgentConfig, RolloutsConfig, ScenesConfig
from mmcorl.data.scenes import scenes
from mmcorl.problems import Problem


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", help="a folder or hub id; by default a random tiny model of --family")
    parser.add_argument("--family", default="qwen2_5_vl", choices=FAMILIES)
    parser.add_argument("--hidden", type=int, default=128, help="width of the random model; a multiple of 64")
    parser.add_argument("--layers", type=int, default=2, help="text layers of the random model")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--problems", type=int, default=24)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    disable_progress_bar()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    problems = [problem for problem, _ in scenes(ScenesConfig(size=arguments.problems, seed=1))]
    engines = ["transformers", *(["vllm"] if find_spec("vllm") else [])]
    with tempfile.TemporaryDirectory() as folder:
        source = arguments.model or str(make_random(arguments, Path(folder)))
        settings = AgentConfig.model_validate({"model": source, "dtype": arguments.dtype})
        agents = {}
        for engine in engines:
            rollouts = RolloutsConfig.model_validate(
                {"engine": engine, "max_tokens": arguments.max_tokens, "vllm": {"eager": device == "cpu"}}
            )
            agents[engine] = Agent.load(engine, settings, rollouts=rollouts, device=device)
        rates: dict[str, list[float]] = {engine: [] for engine in engines}
        for turn in range(arguments.rounds + 1):
            for engine, agent in agents.items():
                rate = tokens_per_second(agent, problems, arguments.samples, arguments.max_tokens, turn)
                if turn:
                    rates[engine].append(rate)
    print(
        f"{source if arguments.model else f'{arguments.family} ({arguments.hidden} wide)'} on {device}, {arguments.dtype}: {arguments.problems} problems "
        f"x {arguments.samples} completions of up to {arguments.max_tokens} tokens, median of {arguments.rounds} rounds"
    )
    medians = {engine: statistics.median(rates[engine]) for engine in engines}
    for engine, median in medians.items():
        print(f"  {engine:13} {median:9.0f} tokens/s")
    if "vllm" in medians:
        print(f"  ratio vllm / transformers: {medians['vllm'] / medians['transformers']:.2f}")
    else:
        print("  vllm is not installed: see docs/vllm.md")


def make_random(arguments: argparse.Namespace, folder: Path) -> Path:
    """A model with random weights of the family and the size that were asked for."""
    hidden = arguments.hidden
    sizes = TinySizes(
        hidden=hidden,
        layers=arguments.layers,
        heads=hidden // 32,
        kv_heads=hidden // 64,
        feed_forward=2 * hidden,
    )
    return make_tiny(arguments.family, folder, sizes=sizes)


def tokens_per_second(
    agent: Agent, problems: list[Problem], samples: int, max_tokens: int, turn: int
) -> float:
    """Sampled tokens over the time of one rollout, prompts and images included."""
    started = time.perf_counter()
    groups = agent.rollout(problems, samples=samples, max_tokens=max_tokens, noise_key=("bench", turn))
    seconds = time.perf_counter() - started
    return sum(len(c.token_ids) for group in groups for c in group.completions) / seconds


if __name__ == "__main__":
    main()
