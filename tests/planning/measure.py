"""Bytes that torch's allocator holds at most while a real training step runs: counted, not sampled."""

from __future__ import annotations

from collections.abc import Callable

from torch.distributed import HashStore
from torch.profiler import ProfilerActivity, profile

from mmcorl.agents.policy import Policy
from mmcorl.cohort.exchange import Exchange
from mmcorl.config import Config
from mmcorl.data.loading import load_problems
from mmcorl.graders import Grader
from mmcorl.rewards import RewardInputs, Rewards, Rule
from mmcorl.training.building import load_trainer
from mmcorl.training.loop import Trainer
from mmcorl.training.world import World


def measured_peak(config: Config) -> int:
    """Peak bytes of two steps of the config's only agent: in the second there is optimiser state."""
    [name] = config.agents
    exchange = Exchange(HashStore(), [name], name, run="plan", attempt="1", dead_after=60)
    with exchange, Grader() as grader:
        train = load_problems(config.data.train, "data.train")
        trainer = load_trainer(config, name, World(), train, {}, grader, exchange, None)
        trainer.rule = Rule(every_other)
        return _weights(trainer) + growth(lambda: [trainer.step(number) for number in (1, 2)])


def every_other(inputs: RewardInputs) -> Rewards:
    """A rule by which every group and every completion of it carries gradient."""
    values = [[float(k % 2) for k in range(len(row))] for row in inputs.answers]
    return Rewards(values, [True] * len(values))


def growth(work: Callable[[], object]) -> int:
    """Most bytes allocated at one moment of `work` above those at its start."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        work()
    level = peak = 0
    for event in sorted(_changes(profiled)):
        level += event[1]
        peak = max(peak, level)
    return peak


def _changes(profiled: profile) -> list[tuple[int, int]]:
    """Moment (ns) and bytes of every allocation, and of every release below zero."""
    assert profiled.profiler is not None and profiled.profiler.kineto_results is not None
    events = profiled.profiler.kineto_results.events()
    return [(e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]"]


def _weights(trainer: Trainer) -> int:
    """Bytes of all weights, those that the profiler saw no allocation of; each storage once."""
    models = [trainer.agent.model]
    if trainer.learner is not None and isinstance(trainer.learner.reference, Policy):
        models.append(trainer.learner.reference.model)
    if trainer.teacher is not None:
        models.append(trainer.teacher.agent.model)
    storages = [p.untyped_storage() for model in models for p in model.parameters()]
    return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())
