"""The step of a real cohort: two warm tiny VLMs in two threads."""

from __future__ import annotations

import json
import threading
import uuid
from contextlib import ExitStack
from dataclasses import replace

import pytest
import torch

from mmcorl.agents.agent import Agent
from mmcorl.agents.batches import TokenGroup
from mmcorl.cohort.exchange import Exchange
from mmcorl.cohort.store import open_store
from mmcorl.config import AgentConfig
from mmcorl.data.loading import load_problems
from mmcorl.errors import CohortMismatch
from mmcorl.graders import Grader
from mmcorl.problems import Gold
from mmcorl.rewards import RULES
from mmcorl.training import checkpoints
from mmcorl.training.building import load_trainer
from mmcorl.training.folders import RunFolder
from mmcorl.training.loop import Trainer
from mmcorl.training.world import World
from tests.training.cohorts import AGENTS, alone, cohort_config, train


def weights_of(family):
    """The weights that training starts from."""
    return Agent.load(family, AgentConfig(model=str(AGENTS / family))).model.state_dict()


@pytest.fixture(scope="session")
def twin_file(tmp_path_factory):
    """The problems of the tests in other words."""
    path = tmp_path_factory.mktemp("twin") / "twin.jsonl"
    problems = load_problems(cohort_config().data.train).problems
    rows = [{"id": p.id, "question": f"Look closely. {p.question}"} for p in problems]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


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


@pytest.mark.parametrize("rule", sorted(set(RULES) - {"peer_vote", "self_vote"}))
def test_no_rule_but_gold_sees_labelled_answers(rule, twin_file):
    """As above, for the rules that an agent can learn by alone; and each of them does learn."""
    rollouts = {
        "problems_per_step": 8,
        "per_problem": 4,
        "max_tokens": 10,
        "temperature": 2.0,
    }  # some unparsed
    config = alone(
        reward={"rule": rule},
        data={**cohort_config().data.model_dump(), "twin": twin_file},
        rollouts=rollouts,
    )
    golds = load_problems(config.data.train).golds
    start = weights_of("qwen2_5_vl")
    [(_, weights, metrics)] = train(config, steps=2).values()
    [(_, noisy, _)] = train(
        config, steps=2, golds={key: Gold(f"{1000 + i}") for i, key in enumerate(golds)}
    ).values()
    assert all(torch.equal(weights[key], noisy[key]) for key in weights)
    assert not all(torch.equal(weights[key], start[key]) for key in start)
    assert metrics[0]["live_groups"] > 0


def test_nothing_is_computed_that_the_rule_does_not_need(monkeypatch):
    def never(*arguments, **options):
        raise AssertionError("nobody asked")

    monkeypatch.setattr("mmcorl.agents.policy.Policy.statistics", never)
    monkeypatch.setattr("mmcorl.training.teacher.Teacher.follow", never)
    [([step], _, _)] = train(alone(reward={"rule": "self_vote"}), steps=1).values()
    assert step.statistics == {}


def test_the_entropy_of_a_completion_is_the_mean_over_its_tokens():
    [([step], _, [metrics])] = train(alone(reward={"rule": "entropy"}), steps=1).values()
    agent = Agent.load("qwen", alone().agents["qwen"], alone().prompt)
    for rollout, means, rewards in zip(
        step.rollouts, step.statistics["entropy"], step.rewards.values, strict=True
    ):
        for completion, mean in zip(rollout.completions, means, strict=True):
            group = TokenGroup(agent.encode(rollout.problem), [torch.tensor(completion.token_ids)])
            expected = agent.policy.statistics([group], ["entropy"])["entropy"]
            assert len(expected) == len(completion.token_ids)  # the stop token counts
            assert mean == pytest.approx(float(expected.mean()), abs=1e-5)
        assert rewards == [-mean for mean in means]
    assert metrics["reward"] == pytest.approx(-metrics["entropy"])


def test_more_completions_vote_than_are_learned_from():
    rollouts = {"problems_per_step": 8, "per_problem": 4, "max_tokens": 10, "votes": 8}
    [([step], _, _)] = train(alone(reward={"rule": "self_vote"}, rollouts=rollouts), steps=1).values()
    assert {len(row) for row in step.answers} == {len(g.completions) for g in step.rollouts} == {4}
    assert step.advantages.shape == step.lengths.shape == (8, 4)
    shares = {vote.share for vote in step.votes["qwen"]}
    assert any(share * 4 % 1 and share * 8 % 1 == 0 for share in shares)  # eighths: all eight were counted


def test_both_wordings_are_asked_and_learned_from(twin_file):
    data = {**cohort_config().data.model_dump(), "twin": twin_file}
    [([step], _, _)] = train(alone(reward={"rule": "twin_vote"}, data=data), steps=1).values()
    assert len(step.problems) == len(step.rollouts) == 16
    for original, twin in zip(step.problems[::2], step.problems[1::2], strict=True):
        assert twin.id == f"{original.id}#twin" and twin.question == f"Look closely. {original.question}"
        assert twin.images == original.images
    own = step.votes["qwen"]
    for place, labels in enumerate(zip(step.answers, step.rewards.values, strict=True)):
        vote = own[place ^ 1].answer
        assert vote is not None
        for answer, reward in zip(*labels, strict=True):
            assert reward == float(answer is not None and answer.value == vote.value)
    texts = [[c.text for c in group.completions] for group in step.rollouts]
    assert texts[::2] != texts[1::2]  # a twin has noise of its own


def test_an_agent_may_read_the_other_wording_and_ballots_still_meet(twin_file):
    config = cohort_config(data={**cohort_config().data.model_dump(), "twin": twin_file})
    reworded = config.agents["internvl"].model_copy(update={"wording": "twin"})
    config = config.model_copy(update={"agents": {**config.agents, "internvl": reworded}})
    results = train(config, steps=1)
    [mine], [theirs] = results["qwen"][0], results["internvl"][0]
    assert [p.id for p in mine.problems] == [p.id for p in theirs.problems]
    assert all(
        b.question == f"Look closely. {a.question}"
        for a, b in zip(mine.problems, theirs.problems, strict=True)
    )
    assert list(mine.supervising_votes) == list(theirs.votes["internvl"])


def test_a_frozen_agent_votes_and_does_not_learn():
    config = cohort_config()
    judge = config.agents["internvl"].model_copy(update={"frozen": True})
    config = config.model_copy(update={"agents": {**config.agents, "internvl": judge}})
    results = train(config, steps=1)
    [step], weights, [metrics] = results["internvl"]
    start = weights_of("internvl")
    assert all(torch.equal(weights[key], start[key]) for key in start)
    assert step.learning == {} and "loss" not in metrics
    [taught] = results["qwen"][0]
    assert list(taught.supervising_votes) == list(step.votes["internvl"])
    assert results["qwen"][2][0]["grad_norm"] > 0


def test_two_copies_of_one_model_draw_different_completions():
    model = {"model": str(AGENTS / "qwen2_5_vl"), "freeze": ["vision"]}
    results = train(cohort_config(agents={"first": model, "second": model}), steps=1)
    texts = [
        [c.text for g in results[name][0][0].rollouts for c in g.completions] for name in ("first", "second")
    ]
    assert texts[0] != texts[1]


def test_copies_that_draw_the_same_completions_are_refused(monkeypatch):
    """Were two agents given one stream of noise, each would learn from its own vote unnoticed."""
    sample = Trainer.sample

    def with_shared_noise(self, agent, problems, number, *key):
        with_one_name = replace(self, agent=replace(self.agent, name="same"))
        return sample(with_one_name, agent, problems, number, *key)

    monkeypatch.setattr(Trainer, "sample", with_shared_noise)
    model = {"model": str(AGENTS / "qwen2_5_vl"), "freeze": ["vision"]}
    rollouts = {"problems_per_step": 24, "per_problem": 4, "max_tokens": 10, "temperature": 2.0}
    config = cohort_config(agents={"first": model, "second": model}, rollouts=rollouts)
    data = load_problems(config.data.train)
    store, _ = open_store(f"memory://{uuid.uuid4()}", is_host=True)
    refused = []

    with ExitStack() as stack:
        grader, trainers = stack.enter_context(Grader()), []
        for name in config.agents:
            exchange = Exchange(store, list(config.agents), name, run="test", attempt="1", dead_after=60)
            stack.enter_context(exchange)
            trainers.append(load_trainer(config, name, World(), data, {}, grader, exchange, None))

        def work(trainer):
            with pytest.raises(CohortMismatch, match="sampled the same completions"):
                trainer.step(1)
            refused.append(trainer.agent.name)

        threads = [threading.Thread(target=work, args=(trainer,)) for trainer in trainers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=120)
    assert sorted(refused) == ["first", "second"]


def test_a_text_model_and_a_vision_language_model_share_text_problems(tiny_folder, tmp_path):
    questions = [{"id": f"q{i}", "question": f"What is {i} + {i}?", "answer": str(2 * i)} for i in range(8)]
    path = tmp_path / "sums.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in questions))
    config = cohort_config(
        agents={"reads": {"model": str(tiny_folder("qwen2"))}, "sees": {"model": str(AGENTS / "internvl")}},
        data={"train": {"path": str(path)}},
    )
    results = train(config, steps=1)
    assert list(results["reads"][0][0].supervising_votes) == list(results["sees"][0][0].votes["sees"])
    assert results["sees"][0][0].problems == results["reads"][0][0].problems


@pytest.mark.parametrize("rule", ["teacher_vote", "twin_vote", "entropy"])
def test_a_resumed_run_goes_on_bit_for_bit(rule, twin_file, tmp_path):
    """The teacher too: it is neither the start nor the agent, so that only its own saved weights go on with it."""
    config = alone(
        run={"dir": str(tmp_path), "steps": 3},
        reward={"rule": rule, "teacher_start": 0.3},
        data={**cohort_config().data.model_dump(), "twin": twin_file},
        loss={"beta": 0.01},
    )
    data, folder = load_problems(config.data.train), RunFolder.of(config).checkpoints("qwen")
    with Grader() as grader:

        def trainer(resume_step=None):
            store, _ = open_store(f"memory://{uuid.uuid4()}", is_host=True)
            exchange = Exchange(store, ["qwen"], "qwen", run="test", attempt="1", dead_after=60)
            return exchange, load_trainer(config, "qwen", World(), data, {}, grader, exchange, resume_step)

        exchange, whole = trainer()
        with exchange:
            whole.step(1)
            whole.step(2)
            checkpoints.save(folder, 2, whole.snapshot())
            expected = whole.step(3)
        exchange, resumed = trainer(resume_step=2)
        with exchange:
            found = resumed.step(3)
    assert [[c.text for c in g.completions] for g in found.rollouts] == [
        [c.text for c in g.completions] for g in expected.rollouts
    ]
    assert found.rewards == expected.rewards and found.learning == expected.learning
    pairs = [(resumed.agent, whole.agent)]
    if rule == "teacher_vote":
        assert expected.learning["kl"] > 0  # the reference is the teacher, which has left the start behind
        pairs.append((resumed.teacher.agent, whole.teacher.agent))
    for ours, theirs in pairs:
        for (name, a), b in zip(ours.model.named_parameters(), theirs.model.parameters(), strict=True):
            assert torch.equal(a, b), name


def test_one_agents_wish_to_stop_reaches_all_at_the_same_step():
    results = train(cohort_config(), steps=2, stop_at=1)
    for name in ("qwen", "internvl"):
        assert [step.stop for step in results[name][0]] == [True, False]
