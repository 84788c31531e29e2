"""The debate of MAPoRL on warm tiny agents."""

import threading
from collections import Counter

import pytest
import torch

from mmcorl.data.loading import load_problems
from mmcorl.errors import MmcorlError
from mmcorl.problems import Gold
from mmcorl.training.interaction.maporl import Maporl
from mmcorl.training.interaction.maporl_rewards import incentives, shared_rewards

LOOSE = {
    "rollouts": {"problems_per_step": 4, "per_problem": 4, "max_tokens": 10, "temperature": 1.0},
}


def scores_of(step, golds):
    """Right or wrong of every record, by turn, from the answers that were logged."""
    found = {}
    for record in step.records:
        gold = golds[record.problem.partition("#")[0]].answer
        found.setdefault(record.role, []).append(float(record.answer == gold))
    return found


def test_every_turn_is_rewarded_by_what_it_and_later_turns_score(interaction_config, interact):
    config = interaction_config("maporl", changes=LOOSE, turns=3)
    golds = load_problems(config.data.train).golds
    results = interact(config)
    scores = [list(scores_of(step, golds).values()) for [step], *_ in results.values()]
    expected = shared_rewards(torch.tensor(scores).permute(2, 0, 1), torch.ones(16, 3), 0.3)
    for place, ([step], _, [metrics]) in enumerate(results.values()):
        assert Counter(r.role for r in step.records) == {f"debater {t}": 16 for t in (1, 2, 3)}
        for turn in (1, 2, 3):
            rewards = [r.reward for r in step.records if r.role == f"debater {turn}"]
            assert rewards == pytest.approx(expected[:, place, turn - 1].tolist(), abs=1e-6)
            assert metrics[f"accuracy_{turn}"] == pytest.approx(sum(scores[place][turn - 1]) / 16)
        assert metrics["label_free"] is False and metrics["grad_norm"] > 0
        assert 0 < metrics["accuracy_1"] < 1


def test_the_labelled_answers_do_reach_the_weights(interaction_config, interact):
    """The counterpart of the label-free methods' test: the verifier reads the labels, and the run says so."""
    config = interaction_config("maporl", changes=LOOSE, turns=2)
    golds = load_problems(config.data.train).golds
    honest = interact(config)["ann"]
    noise = interact(config, golds={key: Gold("1000") for key in golds})["ann"]
    assert not all(torch.equal(honest[1][key], noise[1][key]) for key in honest[1])
    assert honest[2][0]["reward"] > 0 and noise[2][0]["reward"] == 0 and noise[2][0]["grad_norm"] == 0


def test_problems_without_a_label_are_debated_and_not_learned_from(interaction_config, interact):
    config = interaction_config("maporl", changes=LOOSE, turns=2)
    golds = load_problems(config.data.train).golds
    some = dict(list(golds.items())[::2])
    [step], _, [metrics] = interact(config, golds=some)["ann"]
    assert 0 < metrics["labelled"] < 1
    for record in step.records:
        assert (record.reward is None) == (record.problem.partition("#")[0] not in some)


def test_a_debate_may_end_when_all_agree(interaction_config, interact):
    config = interaction_config("maporl", changes=LOOSE, turns=3, stop_on_agreement=True)
    results = interact(config)
    ended = None
    for turn in (1, 2):
        answers = []
        for [step], *_ in results.values():
            said = {r.problem: r.answer for r in step.records if r.role == f"debater {turn}"}
            if turn == 1:  # an ask for each problem: four answers under one id
                said = {}
                for number, record in enumerate(r for r in step.records if r.role == "debater 1"):
                    said[f"{record.problem}#debater1.{number % 4}"] = record.answer
            answers.append({key.replace(f"debater{turn}", "debater"): answer for key, answer in said.items()})
        agreed = {key for key, answer in answers[0].items() if answer and answer == answers[1][key]}
        for [step], *_ in results.values():
            following = {
                r.problem.replace(f"debater{turn + 1}", "debater")
                for r in step.records
                if r.role == f"debater {turn + 1}"
            }
            assert following == answers[0].keys() - agreed
        ended = agreed or ended
    assert ended
    for _, _, [metrics] in results.values():
        assert 1 == metrics["reached_1"] > metrics["reached_2"] >= metrics["reached_3"]


def test_incentives_are_added(interaction_config, interact):
    config = interaction_config("maporl", changes=LOOSE, turns=2, incentives=[0.0, 2.0, 0.0, 4.0])
    golds = load_problems(config.data.train).golds
    results = interact(config)
    scores = [list(scores_of(step, golds).values()) for [step], *_ in results.values()]
    scores = torch.tensor(scores).permute(2, 0, 1)
    added = incentives(scores, torch.ones(16, 2), (0.0, 2.0, 0.0, 4.0))
    expected = shared_rewards(scores, torch.ones(16, 2), 0.3) + added
    assert added.count_nonzero() > 0
    for place, ([step], *_) in enumerate(results.values()):
        rewards = torch.tensor([r.reward for r in step.records]).view(2, 16).T
        assert torch.allclose(rewards.double(), expected[:, place], atol=1e-6)


def test_without_any_label_there_is_no_verifier(interaction_config, interact):
    with pytest.raises(MmcorlError, match=r"data\.train has none"):
        interact(interaction_config("maporl"), golds={})


def test_a_foreign_verdict_is_blamed_on_its_sender(interaction_config, interact, monkeypatch):
    errors = []

    def verdict(self, problem, answer):
        return "0.5" if self.agent.name == "bob" else "1"

    monkeypatch.setattr(Maporl, "verdict", verdict)
    monkeypatch.setattr(threading, "excepthook", lambda raised: errors.append(str(raised.exc_value)))
    with pytest.raises(AssertionError):
        interact(interaction_config("maporl"))
    assert len(errors) == 2
    assert all("agent bob sent '0.5' as the verdict" in error for error in errors)


@pytest.mark.parametrize(
    ("families", "changes", "message"),
    [
        (
            ("internvl",),
            {"cohort": {"topology": "self"}},
            "interaction.kind=maporl needs a second agent; add one",
        ),
        (("internvl",) * 2, {"loss": {"scale": "batch"}}, "set loss.scale to group or none"),
    ],
)
def test_settings_that_mean_nothing_here_are_refused(interaction_config, families, changes, message):
    with pytest.raises(ValueError, match=message):
        interaction_config("maporl", families, changes)
