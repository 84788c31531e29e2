"""Everything of a run up to its first update, on some of its problems: what would be asked, answered and rewarded.

Agents are looked at one after the other, each in a process of its own, so that a cohort of several devices can be
tried on one. Nothing is written and nothing is learned.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import count
from multiprocessing import get_context
from typing import Any

import torch
from transformers.utils.logging import disable_progress_bar

from mmcorl.agents.agent import Agent, stop_ids
from mmcorl.cohort.ballots import Ballot, Vote
from mmcorl.config import Config
from mmcorl.data.loading import LoadedData, load_problems
from mmcorl.data.order import problems_of_step
from mmcorl.errors import MmcorlError
from mmcorl.graders import Answer, Grader
from mmcorl.graders.code import limits_of
from mmcorl.problems import Problem
from mmcorl.rewards import RewardInputs, rule_of
from mmcorl.training import grpo
from mmcorl.training.building import load_trainer, twin_id, wordings
from mmcorl.training.loop import draw
from mmcorl.training.step import Step
from mmcorl.training.step_metrics import step_metrics
from mmcorl.training.voting import votes_of
from mmcorl.training.workers import devices_of
from mmcorl.training.world import World


@dataclass(frozen=True)
class Look:
    """What one agent made of the first problems of a run. All of it is plain data, as it comes from another process."""

    family: str
    device: str
    seconds: float
    """Time of its rollouts."""
    prompt_tokens: list[int]
    """Of each problem, image tokens included; of an endpoint, which tells none, empty as all that follows."""
    image_tokens: list[int]
    first_prompt: str
    template: str
    """A short hash of the chat template."""
    stop_tokens: list[str]
    texts: list[list[str]]
    answers: list[list[Answer | None]]
    lengths: list[list[int]]
    finished: list[list[bool]]
    ballots: list[Ballot]
    teacher_votes: list[Vote]
    statistics: dict[str, list[list[float]]]
    gap: float | None
    """Largest difference in nats between shared prefixes and the full forward."""


@dataclass(frozen=True)
class DryRun:
    """The looks of all agents, and what their votes and rewards come to. `metrics` are those of a first step."""

    problems: Sequence[Problem]
    looks: Mapping[str, Look]
    votes: Mapping[str, Sequence[Vote]]
    """Those that supervise each agent."""
    rewards: Mapping[str, Sequence[Sequence[float]]]
    metrics: Mapping[str, Mapping[str, Any]]
    golds: int
    """Problems with a labelled answer, ..."""
    golds_read: int
    """... and those whose labelled answer a grader can read."""


def rehearse(config: Config, problems: int, say: Callable[[str], None] = lambda line: None) -> DryRun:
    """Try the run's first `problems` problems. Raises MmcorlError for what a run would stop at.

    `say` is told before each agent, as loading one and letting it answer may take minutes.
    """
    if config.interaction is not None:
        raise MmcorlError(
            f"a dry run tries answers of each agent alone, and interaction.kind={config.interaction.kind} has several "
            "phases; train with run.steps=1 instead"
        )
    train = load_problems(config.data.train)
    with Grader(program_limits=limits_of(config.code), program_workers=config.code.processes) as grader:
        grader.warm(train.problems)
        looks = {}
        for name in config.agents:
            say(f"{name} is loaded and answers ...")
            looks[name] = _apart(config, name, problems)
        asked = _asked(config, next(iter(config.agents)), train, problems)
        golds = {**train.golds} | {twin_id(problem_id): gold for problem_id, gold in train.golds.items()}
        read = {p.id: grader.read(golds[p.id].answer, p) for p in asked if p.id in golds}
        cohort = {name: look.ballots for name, look in looks.items()}
        steps = {
            name: _judge(config, name, asked, look, cohort, grader, read)
            for name, look in looks.items()
            if not config.agents[name].frozen
        }
        metrics = {name: step_metrics(step, name, grader, read) for name, step in steps.items()}
    return DryRun(
        problems=asked,
        looks=looks,
        votes={name: step.supervising_votes for name, step in steps.items()},
        rewards={name: step.rewards.values for name, step in steps.items()},
        metrics=metrics,
        golds=len(read),
        golds_read=sum(answer is not None for answer in read.values()),
    )


def _apart(config: Config, name: str, problems: int) -> Look:
    """`_look` in a process of its own, which gives back all memory."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        return pool.submit(_look, config, name, problems).result()


def _look(config: Config, name: str, problems: int) -> Look:
    """Load agent `name` and let it answer. Sharded agents are loaded whole: nothing is learned, which needs the room."""
    disable_progress_bar()
    agent = config.agents[name]
    os.environ |= devices_of(agent)
    alone = agent.model_copy(update={"ranks": 1, "devices": None, "sharding": "none", "offload": ()})
    config = config.model_copy(update={"agents": {**config.agents, name: alone}})
    train = load_problems(config.data.train)
    asked = _asked(config, name, train, problems)
    with Grader(program_limits=limits_of(config.code), program_workers=config.code.processes) as grader:
        grader.warm(train.problems)
        trainer = load_trainer(config, name, World(), train, {}, grader, None, None)
        gap = trainer.check_shared_prefix()
        trainer.check_engine(1, asked)
        started = time.monotonic()
        rollouts = trainer.sample(trainer.agent, asked, 1)
        seconds = time.monotonic() - started
        readings = trainer.read(rollouts)
        ballots = trainer.count(readings)
        learned = [trainer.learned(rollout) for rollout in rollouts]
        first = readings.first(config.rollouts.per_problem)
        return Look(
            **_facts(trainer.agent, asked),
            device=str(trainer.world.device),
            seconds=seconds,
            texts=[[c.text for c in group.completions] for group in learned],
            answers=first.answers,
            lengths=first.lengths.tolist(),
            finished=first.finished.tolist(),
            ballots=ballots,
            teacher_votes=trainer.ask_teacher(asked, 1),
            statistics=trainer.means(trainer.observe(learned)),
            gap=gap,
        )


def _facts(agent: Any, asked: Sequence[Problem]) -> dict[str, Any]:
    """What is known of the prompts of an agent that has a model here."""
    if not isinstance(agent, Agent):
        return {
            "family": "endpoint", "prompt_tokens": [], "image_tokens": [], "first_prompt": "", "template": "",
            "stop_tokens": [],
        }  # fmt: skip
    tokenizer = agent.prompts.tokenizer
    placeholders = torch.tensor(sorted(agent.backbone.placeholder_ids()), dtype=torch.long)
    prompts = [agent.encode(problem) for problem in asked]
    template = getattr(agent.processor, "chat_template", None) or tokenizer.chat_template or ""
    return {
        "family": agent.backbone.config.model_type,
        "prompt_tokens": [len(prompt.ids) for prompt in prompts],
        "image_tokens": [int(torch.isin(prompt.ids, placeholders).sum()) for prompt in prompts],
        "first_prompt": prompts[0].text,
        "template": hashlib.sha256(template.encode()).hexdigest()[:8],
        "stop_tokens": [f"{tokenizer.decode([i])} ({i})" for i in stop_ids(agent.model, tokenizer)],
    }


def _asked(config: Config, name: str, train: LoadedData, problems: int) -> list[Problem]:
    """The problems of the run's first steps as this agent reads them, none twice; twins each after its problem."""
    total, per_step = len(train.problems), config.rollouts.problems_per_step
    places: dict[int, None] = {}
    for step in count():
        places |= dict.fromkeys(problems_of_step(total, per_step, step, config.run.seed))
        if len(places) >= min(problems, total):
            break
    read, twins = wordings(config, name, train.problems)
    return [wording[i] for i in list(places)[:problems] for wording in ((read, twins) if twins else (read,))]


def _judge(
    config: Config,
    name: str,
    asked: Sequence[Problem],
    look: Look,
    cohort: Mapping[str, Sequence[Ballot]],
    grader: Grader,
    golds: Mapping[str, Answer | None],
) -> Step:
    """Votes, rewards and advantages, as a step would have them. Only the `gold` rule is given `golds`."""
    votes, supervising = votes_of(config.cohort, name, cohort, grader.classes)
    rewards = rule_of(config.reward, golds)(
        RewardInputs(
            asked, look.answers, votes[name], supervising, grader.same, grader.correct, cohort[name], look.teacher_votes,
            look.statistics, partial(draw, config, name, 1), look.texts,
        )
    )  # fmt: skip
    advantages = grpo.group_advantages(
        torch.tensor(rewards.values), torch.tensor(rewards.labelled), config.loss.scale
    )
    return Step(
        number=1,
        problems=asked,
        rollouts=(),
        answers=look.answers,
        lengths=torch.tensor(look.lengths),
        finished=torch.tensor(look.finished),
        votes=votes,
        supervising_votes=supervising,
        rewards=rewards,
        advantages=advantages,
        learning={},
        seconds={"rollout": look.seconds},
        stop=False,
        statistics=look.statistics,
    )
