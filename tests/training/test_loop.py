"""The step of a real cohort: two warm tiny VLMs in two threads."""

from __future__ import annotations

import threading
import uuid
from contextlib import ExitStack
from pathlib import Path

import pytest
import torch

from mmcorl.cohort.exchange import Exchange
from mmcorl.cohort.store import open_store
from mmcorl.config import Config
from mmcorl.data.loading import LoadedData, load_problems
from mmcorl.graders import Grader
from mmcorl.problems import Gold
from mmcorl.training.loop import step_metrics
from mmcorl.training.run import load_trainer
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
            "checkpoints": {"best_by": "agreement"},
            **changes,
        }
    )


def train(config, steps, golds=None, stop_at=None):
    """Run a cohort in threads; returns {agent: (list of steps, final weights, metrics)}."""
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
            trainers[name] = load_trainer(config, name, world, data, read, grader, exchange, None)

        def work(name):
            trainer = trainers[name]
            done = [trainer.step(n, stop=(name == "internvl" and n == stop_at)) for n in range(1, steps + 1)]
            metrics = [step_metrics(step, name, grader, read) for step in done]
            results[name] = (done, trainer.agent.model.state_dict(), metrics)

        threads = [threading.Thread(target=work, args=(name,)) for name in config.agents]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=120)
    assert set(results) == set(config.agents)
    return results


def test_each_agent_is_rewarded_for_the_peers_vote():
    results = train(cohort_config(), steps=1)
    [step], _, [metrics] = results["qwen"]
    assert list(step.supervising_votes) == list(step.votes["internvl"])
    assert [p.id for p in step.problems] == [p.id for p in results["internvl"][0][0].problems]
    for answers, vote, rewards in zip(step.answers, step.supervising_votes, step.rewards.values, strict=True):
        assert vote.answer is not None
        assert rewards == [
            float(answer is not None and answer.value == vote.answer.value) for answer in answers
        ]
    assert 0 < metrics["reward"] < 1
    assert metrics["reward"] == pytest.approx(sum(map(sum, step.rewards.values)) / 32)
    assert 0 < metrics["live_groups"] < 1 and metrics["grad_norm"] > 0


def test_self_topology_rewards_the_own_vote():
    results = train(cohort_config(cohort={"topology": "self"}), steps=1)
    [step], _, [metrics] = results["qwen"]
    assert list(step.supervising_votes) == list(step.votes["qwen"])
    assert metrics["agreement"] == 1


def test_the_reward_metric_leaves_out_problems_without_a_label():
    results = train(cohort_config(cohort={"ties": "abstain", "threshold": 0.7}), steps=1)
    [step], _, [metrics] = results["qwen"]
    assert 0 < metrics["labelled"] < 1
    rewards = [
        r for row, has in zip(step.rewards.values, step.rewards.labelled, strict=True) if has for r in row
    ]
    assert metrics["reward"] == pytest.approx(sum(rewards) / len(rewards))


@pytest.mark.parametrize("topology", ["ring", "self"])
def test_gold_answers_never_reach_the_weights(topology):
    """Replacing every gold answer by noise leaves every weight bit-identical; only the diagnostics notice."""
    config = cohort_config(cohort={"topology": topology})
    honest = train(config, steps=2)
    golds = load_problems(config.data.train).golds
    noise = train(config, steps=2, golds={key: Gold(f"{1000 + i}") for i, key in enumerate(golds)})
    for name in config.agents:
        (_, weights, metrics), (_, noisy_weights, noisy_metrics) = honest[name], noise[name]
        assert all(torch.equal(weights[key], noisy_weights[key]) for key in weights)
        assert metrics[0]["vote_accuracy"] > 0 and noisy_metrics[0]["vote_accuracy"] == 0


def test_the_gold_rule_does_see_them():
    """The counterpart: with the gold rule the same noise changes everything."""
    config = cohort_config(reward={"rule": "gold"})
    golds = load_problems(config.data.train).golds
    honest = train(config, steps=1)
    noise = train(config, steps=1, golds={key: Gold("1000") for key in golds})
    assert honest["qwen"][2][0]["reward"] > 0 and noise["qwen"][2][0]["reward"] == 0
    weights, noisy_weights = honest["qwen"][1], noise["qwen"][1]
    assert not all(torch.equal(weights[key], noisy_weights[key]) for key in weights)


def test_one_agents_wish_to_stop_reaches_all_at_the_same_step():
    results = train(cohort_config(), steps=2, stop_at=1)
    for name in ("qwen", "internvl"):
        assert [step.stop for step in results[name][0]] == [True, False]
