"""From a configuration to an agent at its training: model, rule, teacher, reference and learner, new or resumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from mmcorl.agents.adapter_files import base_of
from mmcorl.agents.adapters import BasePolicy
from mmcorl.agents.agent import Agent
from mmcorl.agents.endpoint import Endpoint
from mmcorl.cohort.exchange import Exchange
from mmcorl.config import Config
from mmcorl.data.loading import LoadedData
from mmcorl.data.twin import load_twin
from mmcorl.graders import Answer, Grader
from mmcorl.problems import Problem
from mmcorl.rewards import Rule, rule_of
from mmcorl.rewards.peer_vote import peer_vote
from mmcorl.training import checkpoints
from mmcorl.training.ahead import Ahead, groups_of, read_ahead
from mmcorl.training.folders import RunFolder
from mmcorl.training.learner import Learner
from mmcorl.training.loop import Trainer
from mmcorl.training.teacher import Teacher
from mmcorl.training.turns import Turns
from mmcorl.training.world import World


def load_trainer(
    config: Config,
    name: str,
    world: World,
    train: LoadedData,
    golds: Mapping[str, Answer | None],
    grader: Grader,
    exchange: Exchange | None,
    resume_step: int | None,
) -> Trainer:
    """The agent and its learner, from the start or from a checkpoint. Only the `gold` rule is given `golds`."""
    problems, twins = wordings(config, name, train.problems)
    settings, folder = config.agents[name], RunFolder.of(config)
    turns = Turns(folder.path, settings.devices or (0,), world) if config.cohort.take_turns else None
    trainer_of = partial(
        Trainer,
        config,
        problems=problems,
        exchange=exchange,
        grader=grader,
        world=world,
        twins=twins,
        turns=turns,
    )
    if settings.endpoint is not None:
        server = Endpoint.load(name, settings, config.prompt, config.images)
        return trainer_of(server, learner=None, rule=Rule(peer_vote), turns=None)

    def load(model: str, engine: Literal["transformers"] | None = None) -> Agent:
        source = settings.model_copy(update={"model": model})
        rollouts = config.rollouts.model_copy(update={"engine": engine or config.rollouts.engine})
        return Agent.load(name, source, config.prompt, config.images, rollouts, world.device, config.run.seed)

    if settings.frozen:
        agent = load(settings.model)
        agent.model.requires_grad_(False)
        return trainer_of(agent, learner=None, rule=Rule(peer_vote))

    checkpoint = None
    if resume_step is not None:
        checkpoint = checkpoints.step_folder(folder.checkpoints(name), resume_step)
    agent = load(str(checkpoint or settings.model))
    rule = rule_of(config.reward, golds)
    teacher = None
    if "teacher" in rule.needs:
        teacher = Teacher(
            load(settings.model, "transformers"),  # no third copy of the weights
            agent,
            start=config.reward.teacher_start,
            end=config.reward.teacher_end,
            total_steps=config.run.steps,
        )
    reference = None
    if config.loss.beta > 0:
        if teacher is not None:
            reference = teacher.agent.policy
        elif settings.lora is not None and base_of(settings.model) is None:
            reference = BasePolicy(agent.policy)  # the run began with the model as it is without adapters
        else:
            started = load(settings.model, "transformers")
            started.model.requires_grad_(False)
            reference = started.policy
    learner = Learner(
        agent,
        world,
        config.loss,
        config.optimizer,
        total_updates=config.run.steps * config.loss.updates_per_rollout,
        batch_tokens=settings.batch_tokens,
        reference=reference,
        sharding=settings.sharding,
        offload=settings.offload,
    )
    if checkpoint is not None:
        learner.load(checkpoint / checkpoints.TRAINING)
        if teacher is not None:
            teacher.load(checkpoint / checkpoints.TRAINING)
    trainer = trainer_of(agent, learner=learner, rule=rule, teacher=teacher)
    if checkpoint is not None and (ahead := read_ahead(checkpoint / checkpoints.TRAINING)) is not None:
        step, completions = ahead
        trainer.ahead = Ahead(step, world.share(groups_of(trainer.batch(step), completions)))
    return trainer


def twin_id(problem_id: str) -> str:
    """The id of a problem's other wording where both are asked."""
    return f"{problem_id}#twin"


def wordings(
    config: Config, name: str, problems: Sequence[Problem]
) -> tuple[Sequence[Problem], Sequence[Problem]]:
    """The problems as agent `name` reads them, and their twins where the rule asks for both wordings.

    One wording read in place of the other keeps the problem's id, by which ballots meet. Where both are read each is a
    problem of its own, with its own id and so its own sampling noise.
    """
    if config.reward.rule == "twin_vote":
        assert config.data.twin is not None  # Config has checked it
        twins = load_twin(problems, config.data.twin)
        return problems, [replace(twin, id=twin_id(twin.id)) for twin in twins]
    if config.agents[name].wording == "twin":
        assert config.data.twin is not None
        return load_twin(problems, config.data.twin), []
    return problems, []
