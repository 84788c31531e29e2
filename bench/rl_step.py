"""A whole RL step of mmcorl against TRL's GRPOTrainer: rollout, grading, update, on one tiny Qwen2.5-VL, one thread.

    pip install trl && python bench/rl_step.py

Both sides get the same weights, problems (one image each), reward (exact match of the number in the answer tags) and
loss (dapo, group-scaled advantages, beta 0, no sampler correction, AdamW at one learning rate). TRL samples with
transformers' generate. The two take turns in one process; the first step of each is not counted.
"""

from __future__ import annotations

import argparse
import re
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import AutoModelForImageTextToText, AutoProcessor, TrainerCallback, TrainerState
from transformers.utils.logging import disable_progress_bar, set_verbosity_error
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from mmcorl.agents.agent import Agent
from mmcorl.agents.tiny import make_tiny
from mmcorl.cohort.exchange import Exchange
from mmcorl.cohort.store import open_store
from mmcorl.config import Config, ScenesConfig
from mmcorl.data.scenes import scenes
from mmcorl.graders import Grader
from mmcorl.problems import Gold, Problem
from mmcorl.rewards import rule_of
from mmcorl.training.learner import Learner
from mmcorl.training.loop import Trainer
from mmcorl.training.world import World

INSTRUCTION = "Think, then answer."
SAMPLES, MAX_TOKENS, LR = 8, 8, 1e-4


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", type=Path, help="a Qwen2.5-VL folder; default: random weights, made here")
    parser.add_argument("--problems", type=int, default=24)
    parser.add_argument("--steps", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    disable_progress_bar()
    set_verbosity_error()
    with tempfile.TemporaryDirectory() as folder:
        model = arguments.model or make_tiny("qwen2_5_vl", Path(folder) / "model", seed=0)
        pairs = scenes(ScenesConfig(size=arguments.problems * (arguments.steps + 2), seed=1))
        seconds = take_turns(model, pairs, arguments.problems, arguments.steps + 1, Path(folder) / "trl")
    print(
        f"one RL step: {arguments.problems} problems with an image, K = {SAMPLES}, {MAX_TOKENS} new tokens, "
        f"one thread, {arguments.steps} steps each"
    )
    median = {name: statistics.median(taken[1:]) for name, taken in seconds.items()}
    for name, taken in seconds.items():
        print(f"  {name:7} median {median[name]:.3f} s   best {min(taken[1:]):.3f} s")
    print(f"  ratio of medians {median['trl'] / median['mmcorl']:.1f}x")


@contextmanager
def mmcorl_trainer(model: Path, pairs: Sequence[tuple[Problem, Gold]], problems: int) -> Iterator[Trainer]:
    """A cohort of one agent."""
    config = Config.model_validate(
        {
            "agents": {"agent": {"model": str(model)}},
            "data": {"train": {"scenes": {"size": len(pairs), "seed": 1}}},
            "prompt": {"instruction": INSTRUCTION},
            "cohort": {"topology": "self"},
            "reward": {"rule": "gold"},
            "rollouts": {"problems_per_step": problems, "per_problem": SAMPLES, "max_tokens": MAX_TOKENS},
            "loss": {"kind": "dapo", "sampler_correction": "none"},
            "optimizer": {"lr": LR, "schedule": "constant", "warmup_share": 0.0},
            "evaluation": {"every": 0},
            "checkpoints": {"best_by": "agreement"},
        }
    )
    settings, world = config.agents["agent"], World()
    agent = Agent.load("agent", settings, config.prompt, config.images, config.rollouts)
    learner = Learner(
        agent, world, config.loss, config.optimizer, total_updates=1000, batch_tokens=settings.batch_tokens
    )
    store, _ = open_store("memory://bench", is_host=True)
    exchange = Exchange(store, ["agent"], "agent", run="bench", attempt="1", dead_after=60)
    with exchange, Grader() as grader:
        golds = {problem.id: grader.read(gold.answer, problem) for problem, gold in pairs}
        problem_list = [problem for problem, _ in pairs]
        yield Trainer(config, agent, learner, rule_of("gold", golds), problem_list, exchange, grader, world)


def take_turns(
    model: Path, pairs: Sequence[tuple[Problem, Gold]], problems: int, steps: int, out: Path
) -> dict[str, list[float]]:
    """Seconds of every step of the two; a step of ours stands before each of TRL's, so both see the same machine."""
    seconds: dict[str, list[float]] = {"mmcorl": [], "trl": []}
    with mmcorl_trainer(model, pairs, problems) as trainer:

        class Turns(TrainerCallback):
            def on_step_begin(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
                started = time.perf_counter()
                trainer.step(state.global_step + 1)
                self.started = time.perf_counter()
                seconds["mmcorl"].append(self.started - started)

            def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
                seconds["trl"].append(time.perf_counter() - self.started)

        trl_trainer(model, pairs, problems, steps, out, Turns()).train()
    return seconds


def matches(completions: list[Any], answer: list[str], **_: Any) -> list[float]:
    """TRL's reward function: the number in the last answer tags is the gold one."""
    texts = [completion[0]["content"] for completion in completions]
    found = [re.findall(r"<answer>\s*(\d+)\s*</answer>", text) for text in texts]
    return [float(bool(f) and f[-1] == gold) for f, gold in zip(found, answer, strict=True)]


def trl_trainer(
    model: Path,
    pairs: Sequence[tuple[Problem, Gold]],
    problems: int,
    steps: int,
    out: Path,
    turns: TrainerCallback,
) -> GRPOTrainer:
    rows = [
        {
            "prompt": [{"role": "user", "content": f"{problem.question}\n{INSTRUCTION}"}],
            "image": problem.images[0],
            "answer": gold.answer,
        }
        for problem, gold in pairs
    ]
    arguments = GRPOConfig(
        output_dir=str(out), use_cpu=True, bf16=False, per_device_train_batch_size=problems * SAMPLES,
        num_generations=SAMPLES, max_completion_length=MAX_TOKENS, temperature=1.0, top_p=1.0, top_k=0,
        beta=0.0, loss_type="dapo", scale_rewards="group", learning_rate=LR, lr_scheduler_type="constant",
        max_grad_norm=1.0, max_steps=steps, report_to=[], logging_strategy="no", save_strategy="no",
        disable_tqdm=True, gradient_checkpointing=False, seed=0,
    )  # fmt: skip
    return GRPOTrainer(
        model=AutoModelForImageTextToText.from_pretrained(model, dtype=torch.float32),
        processing_class=AutoProcessor.from_pretrained(model, padding_side="left"),
        reward_funcs=matches,  # pyright: ignore[reportArgumentType]
        train_dataset=Dataset.from_list(rows),
        args=arguments,
        callbacks=[turns],
    )


if __name__ == "__main__":
    main()
