"""Cohorts of warm tiny VLMs in threads, for tests of steps."""

from __future__ import annotations

import threading
import uuid
from contextlib import ExitStack
from pathlib import Path

from mmcorl.cohort.exchange import Exchange
from mmcorl.cohort.store import open_store
from mmcorl.config import Config
from mmcorl.data.loading import LoadedData, load_problems
from mmcorl.graders import Grader
from mmcorl.training import checkpoints
from mmcorl.training.building import load_trainer
from mmcorl.training.folders import RunFolder
from mmcorl.training.step_metrics import step_metrics
from mmcorl.training.world import World

AGENTS = Path(__file__).parents[2] / "data_tools" / "tiny_agents"


def cohort_config(**changes):
    return Config.model_validate(
        {
            "agents": {
                "qwen": {"model": str(AGENTS / "qwen2_5_vl"), "freeze": ["vision"]},
                "internvl": {"model": str(AGENTS / "internvl"), "freeze": ["vision"]},
            },
            "data": {"train": {"scenes": {"size": 24, "seed": 5}}},
            "prompt": {"instruction": "Think, then answer."},
            "rollouts": {"problems_per_step": 8, "per_problem": 4, "max_tokens": 10},
            "optimizer": {"lr": 1e-3, "schedule": "constant", "warmup_share": 0.0},
            "evaluation": {"every": 0},
            **changes,
        }
    )


def alone(**changes):
    """One agent that learns from itself."""
    return cohort_config(
        **{
            "agents": {"qwen": {"model": str(AGENTS / "qwen2_5_vl"), "freeze": ["vision"]}},
            "cohort": {"topology": "self"},
            **changes,
        }
    )


def train(config, steps, golds=None, stop_at=None, save_at=None, resume_at=None):
    """Run a cohort in threads; returns {agent: (list of steps, final weights, metrics)}.

    `save_at` is a step after which every agent writes a checkpoint into the run's folder, and `resume_at` one to go on
    from up to step `steps`.
    """
    data = load_problems(config.data.train)
    data = LoadedData(data.problems, data.golds if golds is None else golds)
    store, _ = open_store(f"memory://{uuid.uuid4()}", is_host=True)
    results, world = {}, World()

    with ExitStack() as stack:
        grader = stack.enter_context(Grader())
        read = {p.id: grader.read(data.golds[p.id].answer, p) for p in data.problems}
        trainers = {}
        for (
            name
        ) in config.agents:  # one after the other: transformers does not load models from several threads
            exchange = Exchange(store, list(config.agents), name, run="test", attempt="1", dead_after=60)
            stack.enter_context(exchange)
            trainers[name] = load_trainer(config, name, world, data, read, grader, exchange, resume_at)

        def work(name):
            trainer = trainers[name]
            done = []
            for n in range((resume_at or 0) + 1, steps + 1):
                done.append(trainer.step(n, stop=(name == "internvl" and n == stop_at)))
                if n == save_at:
                    checkpoints.save(RunFolder.of(config).checkpoints(name), n, trainer.snapshot())
            metrics = [step_metrics(step, name, grader, read) for step in done]
            results[name] = (done, trainer.agent.model.state_dict(), metrics)

        threads = [threading.Thread(target=work, args=(name,)) for name in config.agents]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=120)
    assert set(results) == set(config.agents)
    return results
