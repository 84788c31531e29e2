"""The loop of CoMAS on warm tiny agents."""

import json
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import torch

from mmcorl.config import AgentConfig
from mmcorl.data.loading import load_problems
from mmcorl.problems import Gold
from mmcorl.training.interaction.comas import Comas
from mmcorl.training.interaction.comas_rewards import role_rewards

SMALL = {"problems_per_step": 3, "per_problem": 2, "max_tokens": 10, "temperature": 1.5}
THREE = ("qwen2_5_vl", "qwen2_5_vl", "qwen2_5_vl")


def by_role(step):
    found = {}
    for record in step.records:
        found.setdefault(record.role, []).append(record)
    return found


def test_everybody_solves_evaluates_and_scores_in_every_round(
    interaction_config, interact, digits_are_scores
):
    results = interact(interaction_config("comas", THREE))
    for [step], _, [metrics] in results.values():
        counts = Counter(record.role for record in step.records)
        assert counts == {f"{role} {at}": 6 for at in (1, 2) for role in ("solver", "evaluator", "scorer")}
        assert metrics["grad_norm"] > 0 and metrics["label_free"] is True
        assert 0 < metrics["live_groups"] <= 1 and 0 < metrics["labelled"] <= 1
        assert step.problems == results["ann"][0][0].problems


def test_rewards_follow_from_what_was_written(interaction_config, interact, digits_are_scores):
    """Every score is found again in its scorer's text, and is worth the same to solver, evaluator and scorer."""
    results = interact(interaction_config("comas", THREE, rounds=1))
    scores = Counter(
        digits_are_scores(r.text) for [step], *_ in results.values() for r in by_role(step)["scorer 1"]
    )
    for role in ("solver", "evaluator", "scorer"):
        rewards = Counter(r.reward for [step], *_ in results.values() for r in by_role(step)[f"{role} 1"])
        expected = Counter()
        for score, count in scores.items():
            expected[getattr(role_rewards(score), role)] += count
        assert rewards == expected
    assert len(scores) > 1


def test_a_solution_its_evaluation_and_its_score_belong_together(
    interaction_config, interact, digits_are_scores
):
    """With one agent everything is its own: the texts of a run stand in the prompts of the next role."""
    alone = {"cohort": {"topology": "self"}}
    config = interaction_config("comas", ("qwen2_5_vl",), alone, rounds=1)
    [([step], _, [metrics])] = interact(config).values()
    assert metrics["self_evaluation"] == metrics["self_scoring"] == 1
    roles = by_role(step)
    for solver, evaluator, scorer in zip(
        roles["solver 1"], roles["evaluator 1"], roles["scorer 1"], strict=True
    ):
        rewards = role_rewards(digits_are_scores(scorer.text))
        assert (solver.reward, evaluator.reward, scorer.reward) == (
            rewards.solver, rewards.evaluator, rewards.scorer,
        )  # fmt: skip


def test_agents_do_not_judge_themselves_where_that_is_excluded(
    interaction_config, interact, digits_are_scores
):
    [[metrics], *_] = [
        m for _, _, m in interact(interaction_config("comas", THREE, self_evaluation=False)).values()
    ]
    assert metrics["self_evaluation"] == metrics["self_scoring"] == 0
    shares = [m["self_evaluation"] for _, _, [m] in interact(interaction_config("comas", THREE)).values()]
    assert shares[0] == shares[1] == shares[2] and 0.1 < shares[0] < 0.6


def test_without_readable_scores_only_scorers_are_punished_and_nobody_learns(interaction_config, interact):
    results = interact(interaction_config("comas"))
    for [step], _, [metrics] in results.values():
        rewards = {role: {r.reward for r in records} for role, records in by_role(step).items()}
        assert all(values == {-1.0 if "scorer" in role else 0.0} for role, values in rewards.items())
        assert metrics["labelled"] == 0 and metrics["score"] is None and metrics["grad_norm"] == 0


def test_gold_answers_never_reach_the_weights(interaction_config, interact, digits_are_scores):
    """Replacing every gold answer by noise leaves every weight and text bit-identical; only diagnostics notice."""
    config = interaction_config("comas")
    golds = load_problems(config.data.train).golds
    honest = interact(config, (1, 2))
    noise = interact(config, (1, 2), {key: Gold(f"{1000 + i}") for i, key in enumerate(golds)})
    for name in config.agents:
        (steps, weights, metrics), (noisy_steps, noisy_weights, noisy_metrics) = (
            honest[name],
            noise[name],
        )
        assert all(torch.equal(weights[key], noisy_weights[key]) for key in weights)
        assert [s.records for s in steps] == [s.records for s in noisy_steps]
        assert metrics[0]["vote_accuracy"] > 0 and noisy_metrics[0]["vote_accuracy"] == 0


def test_a_step_depends_on_its_number_and_the_weights_alone(interaction_config, interact, digits_are_scores):
    """So a run that resumes after step 1 makes the same step 2."""
    still = {"optimizer": {"lr": 1e-30}}  # too small to move a weight
    config = interaction_config("comas", changes=still)
    walked, jumped = interact(config, (1, 2)), interact(config, (2,))
    for name in config.agents:
        assert walked[name][0][1].records == jumped[name][0][0].records
        assert walked[name][0][0].records != walked[name][0][1].records


def test_a_frozen_agent_judges_and_does_not_learn(interaction_config, interact, digits_are_scores):
    config = interaction_config("comas")
    judge = config.agents["bob"].model_copy(update={"frozen": True})
    config = config.model_copy(update={"agents": {**config.agents, "bob": judge}})
    start = interact(config, ())["bob"][1]
    results = interact(config)
    [step], weights, [metrics] = results["bob"]
    assert all(torch.equal(weights[key], start[key]) for key in start)
    assert step.learning == {} and "grad_norm" not in metrics
    assert results["ann"][2][0]["grad_norm"] > 0


def test_truncated_completions_can_be_left_out(interaction_config, interact, digits_are_scores):
    changes = {
        "rollouts": {"problems_per_step": 4, "per_problem": 2, "max_tokens": 2},
        "loss": {"mask_truncated": True},
    }
    results = interact(interaction_config("comas", changes=changes))
    for _, _, [metrics] in results.values():
        assert metrics["truncated"] == 1 and metrics["grad_norm"] == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reward": {"rule": "gold"}}, "has rewards of its own; leave `reward` out"),
        ({"rollouts": {"votes": 8}}, "make rollouts.votes null"),
        ({"loss": {"updates_per_rollout": 2}}, "set loss.updates_per_rollout=1"),
    ],
)
def test_settings_that_mean_nothing_here_are_refused(interaction_config, changes, message):
    with pytest.raises(ValueError, match=message):
        interaction_config("comas", changes=changes)


def test_a_lone_agent_must_judge_itself(interaction_config):
    alone = {"cohort": {"topology": "self"}}
    with pytest.raises(ValueError, match=r"add one, or set interaction\.comas\.self_evaluation=true"):
        interaction_config("comas", ("internvl",), alone, self_evaluation=False)


def test_texts_reach_those_who_have_to_read_them(
    interaction_config, interact, digits_are_scores, monkeypatch
):
    """What evaluators, scorers and solvers of the second round read are the solutions and evaluations that were written."""
    said = []  # role, problem, texts that were read, text that was written
    speak = Comas.speak

    def overheard(self, number, role, asks, samples):
        phase = speak(self, number, role, asks, samples)
        rows = zip(asks, phase.texts, strict=True)
        said.extend((role, ask.problem.id, ask.texts, text) for ask, texts in rows for text in texts)
        return phase

    monkeypatch.setattr(Comas, "speak", overheard)
    interact(interaction_config("comas", THREE, references=3))

    def written(role):
        return Counter((problem, text) for r, problem, _, text in said if r == role)

    def read(role):
        return Counter((problem, *texts) for r, problem, texts, _ in said if r == role)

    def judged(role):
        return Counter((problem, *texts, text) for r, problem, texts, text in said if r == role)

    for at in (1, 2):
        assert read(f"evaluator {at}") == written(f"solver {at}")
        assert read(f"scorer {at}") == judged(f"evaluator {at}")
    shown = [(problem, texts) for role, problem, texts, _ in said if role == "solver 2"]
    pairs = [(problem, *texts[i : i + 2]) for problem, texts in shown for i in (0, 2, 4)]
    assert len(shown) == 18 and set(pairs) <= judged("evaluator 1").keys()
    assert len(set(pairs)) > 6


class Judge(BaseHTTPRequestHandler):
    """An OpenAI-compatible server that scores in tags, and answers all else with words."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked = json.dumps(body["messages"])
        text = f"Seen. <score>{len(asked) % 3 + 1}</score>" if "<score>" in asked else "It is \\boxed{2}."
        choice = {"message": {"content": text}, "finish_reason": "stop"}
        reply = json.dumps({"choices": [choice] * body.get("n", 1)}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, format, *arguments):
        pass


def test_scores_of_an_endpoint_teach_a_tiny_agent(interaction_config, interact):
    """Nothing stands in for the tags here: the other agent is a server that writes them."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Judge)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        config = interaction_config("comas", changes={"rollouts": SMALL | {"per_problem": 4}})
        judge = {"model": "m", "frozen": True, "endpoint": f"http://127.0.0.1:{server.server_port}/v1"}
        agents = {"ann": config.agents["ann"], "bob": AgentConfig.model_validate(judge)}
        results = interact(config.model_copy(update={"agents": agents}))
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    [step], _, [metrics] = results["ann"]
    assert metrics["grad_norm"] > 0 and 0 < metrics["labelled"] < 1
    assert metrics["labelled"] == pytest.approx(
        sum(r.reward == 0 for r in results["bob"][0][0].records if r.role.startswith("scorer")) / (2 * 2 * 12)
    )
    solved = [r.reward for r in step.records if r.role.startswith("solver")]
    assert len(set(solved)) > 1 and set(solved) <= {0.0, 0.5, 1.0}
    assert results["bob"][2][0]["length"] is None and results["bob"][0][0].learning == {}
