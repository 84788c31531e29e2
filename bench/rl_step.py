"""A whole RL step of mmcorl against TRL's GRPOTrainer: rollout, grading, update, on one tiny Qwen2.5-VL, one thread.

    pip install trl && python bench/rl_step.py

Both sides get the same weights, problems (one image each), rewards, and loss (dapo, group-scaled advantages, beta 0, no
sampler correction, AdamW at one learning rate, all parts trained). TRL samples with transformers' generate. The two
take turns in one process; the first step of each is not counted. It is done twice: with the gold reward, where groups
of equal rewards need no update and mmcorl leaves them out, and with an alternating reward that keeps every group live.
"""

from __future__ import annotations

import argparse
import io
import re
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from torch.distributed import HashStore
from transformers import AutoModelForImageTextToText, AutoProcessor, TrainerCallback, TrainerState
from transformers.utils.logging import disable_progress_bar, set_verbosity_error
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from mmcorl.agents.agent import Agent
from mmcorl.cohort.exchange import Exchange
from mmcorl.config import Config, RewardConfig, ScenesConfig
from mmcorl.data.scenes import scenes
from mmcorl.graders import Answer, Grader
from mmcorl.problems import Gold, Problem
from mmcorl.rewards import RewardInputs, Rewards, Rule, rule_of
from mmcorl.training.learner import Learner
from mmcorl.training.loop import Trainer
from mmcorl.training.world import World

INSTRUCTION = "Think, then answer."
SAMPLES, MAX_TOKENS, LR = 8, 8, 1e-4


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", type=Path, default=Path("data_tools/tiny_agents/qwen2_5_vl"))
    parser.add_argument("--problems", type=int, default=24)
    parser.add_argument("--steps", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    disable_progress_bar()
    set_verbosity_error()
    warnings.simplefilter("ignore", FutureWarning)
    problems, steps = arguments.problems, arguments.steps
    pairs = scenes(ScenesConfig(size=problems * (steps + 1), seed=1))
    print(
        f"one RL step: {problems} problems with an image, K = {SAMPLES}, {MAX_TOKENS} new tokens, one thread, "
        f"median of {steps} steps"
    )
    for title, rule, reward in (
        ("gold reward", rule_of(RewardConfig(rule="gold"), gold_answers(pairs)), matches),
        ("every group live", Rule(every_other_rule), every_other),
    ):
        with tempfile.TemporaryDirectory() as folder:
            trainer = trl_trainer(arguments.model, pairs, problems, steps + 1, Path(folder), reward)
            ours, theirs, live = take_turns(mmcorl_trainer(arguments.model, pairs, problems, rule), trainer)
        print(
            f"  {title:16}  mmcorl {ours:.3f} s   TRL {theirs:.3f} s   ratio {theirs / ours:.1f}x   "
            f"({live:.0%} of groups live)"
        )


def gold_answers(pairs: Sequence[tuple[Problem, Gold]]) -> dict[str, Answer | None]:
    with Grader() as grader:
        return {problem.id: grader.read(gold.answer, problem) for problem, gold in pairs}


def matches(completions: list[Any], answer: list[str], **_: Any) -> list[float]:
    """TRL's reward function: the number in the last answer tags is the gold one."""
    texts = [completion[0]["content"] for completion in completions]
    found = [re.findall(r"<answer>\s*(\d+)\s*</answer>", text) for text in texts]
    return [float(bool(f) and f[-1] == gold) for f, gold in zip(found, answer, strict=True)]


def every_other(completions: list[Any], **_: Any) -> list[float]:
    """TRL's reward function: 0, 1, 0, 1, ..."""
    return [float(i % 2) for i in range(len(completions))]


def every_other_rule(inputs: RewardInputs) -> Rewards:
    """The same as a rule: 0, 1, 0, 1, ..."""
    values = [[float(k % 2) for k in range(len(row))] for row in inputs.answers]
    return Rewards(values, [True] * len(values))


@contextmanager
def mmcorl_trainer(
    model: Path, pairs: Sequence[tuple[Problem, Gold]], problems: int, rule: Rule
) -> Iterator[Trainer]:
    """A cohort of one agent."""
    config = Config.model_validate(
        {
            "agents": {"agent": {"model": str(model)}},
            "data": {"train": {"scenes": {"size": len(pairs), "seed": 1}}},
            "prompt": {"instruction": INSTRUCTION},
            "cohort": {"topology": "self"},
            "rollouts": {"problems_per_step": problems, "per_problem": SAMPLES, "max_tokens": MAX_TOKENS},
            "loss": {"kind": "dapo", "sampler_correction": "none"},
            "optimizer": {"lr": LR, "betas": [0.9, 0.999], "schedule": "constant", "warmup_share": 0.0},
        }
    )
    settings, world = config.agents["agent"], World()
    agent = Agent.load("agent", settings, config.prompt, config.images, config.rollouts)
    learner = Learner(
        agent, world, config.loss, config.optimizer, total_updates=1000, batch_tokens=settings.batch_tokens
    )
    exchange = Exchange(HashStore(), ["agent"], "agent", run="bench", attempt="1", dead_after=60)
    with exchange, Grader() as grader:
        yield Trainer(config, agent, learner, rule, [p for p, _ in pairs], exchange, grader, world)


def take_turns(ours: AbstractContextManager[Trainer], theirs: GRPOTrainer) -> tuple[float, float, float]:
    """Median seconds of a step of each, and the share of our groups that were live.

    A step of ours stands before each of TRL's, so both see the same machine.
    """
    seconds: dict[str, list[float]] = {"mmcorl": [], "trl": []}
    live: list[float] = []
    with ours as trainer:

        class Turns(TrainerCallback):
            def on_step_begin(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
                started = time.perf_counter()
                step = trainer.step(state.global_step + 1)
                self.started = time.perf_counter()
                seconds["mmcorl"].append(self.started - started)
                live.append(float((step.advantages != 0).any(dim=1).float().mean()))

            def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
                seconds["trl"].append(time.perf_counter() - self.started)

        theirs.add_callback(Turns())
        with redirect_stdout(io.StringIO()):  # its summary of the run
            theirs.train()
    ours_median, theirs_median = (statistics.median(taken[1:]) for taken in seconds.values())
    return ours_median, theirs_median, statistics.mean(live[1:])


def trl_trainer(
    model: Path,
    pairs: Sequence[tuple[Problem, Gold]],
    problems: int,
    steps: int,
    out: Path,
    reward: Callable[..., list[float]],
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
        reward_funcs=reward,  # pyright: ignore[reportArgumentType]
        train_dataset=Dataset.from_list(rows),
        args=arguments,
    )


if __name__ == "__main__":
    main()
