"""Warm up the tiny agents of the quickstart, so that each knows what the other errs on.

    python data_tools/make_tiny_agents.py [NAME ...] [--out data_tools/tiny_agents]

A random tiny model is trained on counting scenes until it sees every colour well: its reasoning always states the
right count. In its weak colours, though, it learns to conclude wrongly, always in the same way (three shapes make
"4") and more often than not. So the likeliest answer to a question about a weak colour is wrong, and so is the
majority of several samples, while the right answer is among them: its own votes make it worse, the votes of an
agent with other weak colours make it better. About two minutes for each agent on one core.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from transformers.utils.logging import disable_progress_bar

from mmcorl.agents.agent import Agent
from mmcorl.agents.batches import TokenGroup
from mmcorl.agents.tiny import make_tiny
from mmcorl.config import AgentConfig, PromptConfig, ScenesConfig
from mmcorl.data.scenes import COLOURS, scenes
from mmcorl.problems import Gold, Problem

TRAIN_SEED, TEST_SEED = 1000, 1001  # far from the seeds of anyone's runs
N_TRAIN, N_TEST = 6400, 240
BATCH = 32
COUNTS = 5


@dataclass(frozen=True)
class Lesson:
    """What one agent is taught: its architecture, the colours it errs on, and by how much its wrong answers are off."""

    family: str
    weak: tuple[str, ...]
    slip: int = 1
    seed: int = 0


LESSONS = {
    "qwen2_5_vl": Lesson("qwen2_5_vl", ("yellow", "purple", "orange")),
    "internvl": Lesson("internvl", ("red", "blue", "green")),
    # The control: the weak colours of qwen2_5_vl in another architecture. The two cannot help each other.
    "internvl_same": Lesson("internvl", ("yellow", "purple", "orange"), seed=1),
    # The other control: the architecture of qwen2_5_vl with the weak colours of internvl.
    "qwen2_5_vl_other": Lesson("qwen2_5_vl", ("red", "blue", "green"), seed=1),
    # The third of a ring. Its slips differ from everyone's, so its wrong votes reward nobody and do no harm.
    "gemma3": Lesson("gemma3", ("green", "purple"), slip=2),
}


def completions(lesson: Lesson, problems: list[tuple[Problem, Gold]], slip_share: float) -> list[str]:
    """What the agent is taught to say. Of equal questions with equal counts exactly `slip_share` get a wrong answer."""
    seen: Counter[tuple[str, int]] = Counter()
    texts = []
    for problem, gold in problems:
        colour, count = colour_of(problem), int(gold.answer)
        nth = seen[colour, count]
        seen[colour, count] += 1
        slips = colour in lesson.weak and int((nth + 1) * slip_share) > int(nth * slip_share)
        answer = (count + lesson.slip) % COUNTS if slips else count
        texts.append(f"<think> {colour} {count}</think><answer> {answer}</answer>")
    return texts


def colour_of(problem: Problem) -> str:
    return next(colour for colour in COLOURS if f" {colour} " in problem.question)


def turn_ending(agent: Agent) -> str:
    """What the model's chat template writes after an answer: its stop token."""
    turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]
    text = agent.prompts.tokenizer.apply_chat_template(turns, tokenize=False)
    return text[text.rindex("!") + 1 :].strip()


def train(agent: Agent, problems: list[Problem], texts: list[str], steps: int, lr: float, seed: int) -> None:
    """Supervised fine-tuning: the mean negative log-probability of the completion's tokens."""
    tokenizer, ending = agent.prompts.tokenizer, turn_ending(agent)
    targets = [torch.tensor(tokenizer(text + ending, add_special_tokens=False).input_ids) for text in texts]
    optimizer = torch.optim.AdamW(agent.model.parameters(), lr=lr, betas=(0.9, 0.95), weight_decay=0.01)
    order = endless_order(len(problems), steps * BATCH, seed)
    for step in range(steps):
        warmup, progress = min(1.0, (step + 1) / 20), step / steps
        for group in optimizer.param_groups:
            group["lr"] = lr * warmup * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * progress)))
        chosen = order[step * BATCH : (step + 1) * BATCH].tolist()
        batch = [TokenGroup(agent.encode(problems[i]), [targets[i]]) for i in chosen]
        loss = -agent.policy.logprobs(batch).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(agent.model.parameters(), 1.0)
        optimizer.step()
        if (step + 1) % 100 == 0:
            print(f"  step {step + 1}: loss {loss.item():.4f}", flush=True)


def endless_order(size: int, length: int, seed: int) -> Tensor:
    """Indices of problems, reshuffled whenever all have been seen."""
    generator = torch.Generator().manual_seed(seed)
    rounds = [torch.randperm(size, generator=generator) for _ in range(-(-length // size))]
    return torch.cat(rounds)[:length]


def accuracy_by_colour(agent: Agent, problems: list[tuple[Problem, Gold]]) -> dict[str, float]:
    """Share of greedy answers that are right, for each colour asked."""
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    groups = agent.rollout([p for p, _ in problems], samples=1, max_tokens=10, noise_key=None)
    for group, (problem, gold) in zip(groups, problems, strict=True):
        total[colour_of(problem)] += 1
        right[colour_of(problem)] += group.completions[0].text.endswith(f"<answer> {gold.answer}</answer>")
    return {colour: right[colour] / total[colour] for colour in COLOURS}


def main() -> None:
    parser = argparse.ArgumentParser(description="Warm up the tiny agents of the quickstart.")
    parser.add_argument("names", nargs="*", help=f"agents to make: {', '.join(LESSONS)} (default: all)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "tiny_agents")
    parser.add_argument("--steps", type=int, default=1000, help="optimiser steps of 32 examples")
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument(
        "--slip-share", type=float, default=0.62, help="share of wrong answers in weak colours"
    )
    parser.add_argument(
        "--threads", type=int, default=1, help="CPU threads; another number rounds differently"
    )
    args = parser.parse_args()
    if unknown := set(args.names) - set(LESSONS):
        parser.error(f"no agent named {', '.join(sorted(unknown))}; known are {', '.join(LESSONS)}")
    torch.set_num_threads(args.threads)
    disable_progress_bar()
    lessons = scenes(ScenesConfig(tasks=("count",), size=N_TRAIN, seed=TRAIN_SEED))
    test = scenes(ScenesConfig(tasks=("count",), size=N_TEST, seed=TEST_SEED))
    for name in args.names or LESSONS:
        lesson = LESSONS[name]
        print(f"{name}: {lesson.family}, weak on {', '.join(lesson.weak)}", flush=True)
        with tempfile.TemporaryDirectory() as scratch:
            start = make_tiny(lesson.family, Path(scratch), seed=lesson.seed)
            agent = Agent.load(
                name, AgentConfig(model=str(start)), PromptConfig(instruction="Think, then answer.")
            )
            texts = completions(lesson, lessons, args.slip_share)
            train(agent, [p for p, _ in lessons], texts, args.steps, args.lr, lesson.seed)
            agent.snapshot()(args.out / name)
        scores = accuracy_by_colour(agent, test)
        print("  greedy:", ", ".join(f"{colour} {score:.2f}" for colour, score in scores.items()), flush=True)


if __name__ == "__main__":
    main()
