from pathlib import Path
from typing import get_args

import pytest

from mmcorl.analysis.report.runs import read_runs
from mmcorl.analysis.report.words import alarms, describe, status
from mmcorl.config import Config, InteractionConfig
from mmcorl.config.learning import RuleName
from mmcorl.config_loading import load_config
from mmcorl.rewards.words import method_name, what_is_rewarded

CONFIGS = Path(__file__).parents[3] / "configs"
TREE = {
    "agents": {name: {"model": name} for name in ("ann", "bob", "cy")},
    "data": {"train": {"scenes": {}}},
}


def config(**settings):
    return Config.model_validate(TREE | settings)


@pytest.mark.parametrize("rule", [*get_args(RuleName), "rules/mine.py:short"])
def test_every_reward_rule_has_its_words(rule):
    twin = {"train": {"scenes": {}}, "twin": "twin.jsonl"}
    tree = config(reward={"rule": rule}, data=twin if rule == "twin_vote" else TREE["data"])
    assert f"{method_name(tree)}. {what_is_rewarded(tree)}." in " ".join(describe(tree))


@pytest.mark.parametrize("kind", get_args(InteractionConfig.model_fields["kind"].annotation))
def test_agents_that_read_each_other_have_words_of_their_own(kind):
    told = config(interaction={"kind": kind})
    assert f"{method_name(told)}. Agents" in " ".join(describe(told)) and "vote is" not in " ".join(
        describe(told)
    )


def test_the_cohort_and_who_supervises_whom_are_said():
    ring = " ".join(describe(config(cohort={"topology": "ring", "threshold": 0.5})))
    assert "3 agents: ann (ann), bob (bob) and cy (cy)" in ring
    assert "that of cy for ann, ann for bob and bob for cy (topology ring)" in ring
    assert "needs 50% of the readable answers" in ring and "no held-out evaluation" in ring
    own = config(cohort={"topology": "self"})
    assert method_name(own) == "TTRL: own votes" and "supervises itself" in " ".join(describe(own))


def test_the_quickstart_is_described():
    text = " ".join(describe(load_config(CONFIGS / "quickstart.yaml")))
    assert "same 24 problems, each 8 times" in text and "every 10 steps" in text


@pytest.mark.parametrize(
    ("steps", "code", "words"),
    [
        (3, 0, "Complete: 3 of 3 steps"),
        (1, None, "Unfinished: 1 of 3 steps. It is still going on, or was killed"),
        (2, 1, "ended with exit code 1"),
        (2, 0, "stopped as asked"),
    ],
)
def test_how_far_a_run_came(make_run, steps, code, words):
    [run] = read_runs([make_run(steps=steps, code=code)])
    assert words in status(run)


def test_alarms_are_told_in_their_own_words_or_with_all_they_hold(make_run):
    [run] = read_runs(
        [
            make_run(
                alarms=[{"step": 3, "what": "hot", "advice": "cool"}, {"step": 1, "name": "cold", "value": 2}]
            )
        ]
    )
    assert alarms(run) == [
        "ann, step 1: name cold, value 2",
        "bob, step 1: name cold, value 2",
        "ann, step 3: hot: cool",
        "bob, step 3: hot: cool",
    ]
