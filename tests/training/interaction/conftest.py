"""Cohorts of warm tiny VLMs that interact, in threads."""

from __future__ import annotations

import re
import threading
import uuid
from contextlib import ExitStack
from pathlib import Path

import pytest

from mmcorl.agents.agent import Agent
from mmcorl.cohort.exchange import Exchange
from mmcorl.cohort.store import open_store
from mmcorl.config import Config
from mmcorl.data.loading import LoadedData, load_problems
from mmcorl.graders import Grader
from mmcorl.training.building import load_trainer
from mmcorl.training.interaction import interacting
from mmcorl.training.step_metrics import step_metrics
from mmcorl.training.world import World

AGENTS = Path(__file__).parents[3] / "data_tools" / "tiny_agents"


@pytest.fixture
def interaction_config():
    """`interaction_config(kind, agents=..., settings of the interaction)` over the tiny counters."""

    def config(kind, families=("qwen2_5_vl", "internvl"), changes=None, **settings):
        names = ("ann", "bob", "cid", "dan")
        agents = {
            name: {"model": str(AGENTS / family), "freeze": ["vision"]}
            for name, family in zip(names, families, strict=False)
        }
        tree = {
            "agents": agents,
            "data": {"train": {"scenes": {"size": 12, "seed": 5}}},
            "prompt": {"instruction": "Think, then answer."},
            "rollouts": {"problems_per_step": 3, "per_problem": 2, "max_tokens": 10, "temperature": 1.5},
            "optimizer": {"lr": 1e-3, "schedule": "constant", "warmup_share": 0.0},
            "interaction": {"kind": kind, kind: settings},
        }
        return Config.model_validate(tree | (changes or {}))

    return config


@pytest.fixture
def interact():
    """`interact(config, steps, golds)`: run a cohort; gives {agent: (steps, final weights, metrics)}."""

    def run(config, steps=(1,), golds=None):
        data = load_problems(config.data.train)
        data = LoadedData(data.problems, data.golds if golds is None else golds)
        store, _ = open_store(f"memory://{uuid.uuid4()}", is_host=True)
        results, world = {}, World()
        with ExitStack() as stack:
            grader = stack.enter_context(Grader())
            read = {
                p.id: grader.read(data.golds[p.id].answer, p) for p in data.problems if p.id in data.golds
            }
            trainers = {}
            for name in config.agents:
                exchange = Exchange(store, list(config.agents), name, run="test", attempt="1", dead_after=60)
                stack.enter_context(exchange)
                trainers[name] = interacting(
                    load_trainer(config, name, world, data, read, grader, exchange, None), read
                )

            def work(name):
                trainer = trainers[name]
                done = [trainer.step(number) for number in steps]
                metrics = [{**step_metrics(step, name, grader, read), **step.extra} for step in done]
                weights = trainer.agent.model.state_dict() if isinstance(trainer.agent, Agent) else {}
                results[name] = (done, weights, metrics)

            threads = [threading.Thread(target=work, args=(name,)) for name in config.agents]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(timeout=120)
        assert set(results) == set(config.agents)
        return results

    return run


@pytest.fixture
def digits_are_scores(monkeypatch):
    """Tiny models never write a score tag: read the last digit that they write as a score instead, 7 and above as none."""

    def read(text):
        digits = re.findall(r"[0-6]", text)
        return int(digits[-1]) % 3 + 1 if digits else None

    monkeypatch.setattr("mmcorl.training.interaction.roles.read_score", read)
    return read
