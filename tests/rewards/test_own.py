from pathlib import Path

import pytest

from mmcorl.config import RewardConfig
from mmcorl.config_loading import load_config, validate
from mmcorl.errors import MmcorlError
from mmcorl.graders import Answer, Grader
from mmcorl.problems import Problem
from mmcorl.rewards import RewardInputs, rule_of
from mmcorl.rewards.words import method_name, uses_labels, what_is_rewarded

RULES = """
from __future__ import annotations

from dataclasses import dataclass
from mmcorl.rewards import RewardInputs, Rewards, Rule, agreement, without_labels

def answered(inputs: RewardInputs) -> Rewards:
    return without_labels([[0.0 if answer is None else 1.0 for answer in row] for row in inputs.answers])

@dataclass(frozen=True)
class Brief:
    limit: int
    def __call__(self, inputs: RewardInputs) -> Rewards:
        return without_labels([[float(len(text) <= self.limit) for text in row] for row in inputs.texts])

brief = Rule(Brief(limit=9), frozenset({"texts"}))

def two_rows(inputs): return without_labels([[0.0], [0.0]])
def not_a_number(inputs): return without_labels([[1.0, float("nan")]])
def bare_list(inputs): return [[1.0, 0.0]]
peeking = Rule(answered, frozenset({"gold"}))
seven = 7
"""


@pytest.fixture
def own(tmp_path):
    (tmp_path / "rules.py").write_text(RULES)
    return lambda name: rule_of(RewardConfig(rule=f"{tmp_path}/rules.py:{name}"), {})


@pytest.fixture
def step():
    grader = Grader()
    problems, answers = [Problem("p1", "How many?")], [[Answer("math", "4"), None]]
    return RewardInputs(problems, answers, [], [], grader.same, grader.correct, texts=[["4", "I cannot say"]])


def test_a_function_is_a_rule(own, step):
    rule = own("answered")
    assert rule(step).values == [[1, 0]] and rule.needs == frozenset()


def test_a_rule_tells_its_needs(own, step):
    rule = own("brief")
    assert rule(step).values == [[1, 0]] and rule.needs == {"texts"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none", "rules.py defines no function none"),
        ("seven", "rules.py defines no function seven"),
        ("peeking", "peeking needs gold; a rule of one's own may need entropy, self_certainty, texts"),
    ],
)
def test_what_is_no_rule_is_refused_when_it_is_loaded(own, name, message):
    with pytest.raises(MmcorlError, match=message):
        own(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("two_rows", r"rows of \[1, 1\] rewards and 2 `labelled` for problems with \[2\] completions"),
        ("not_a_number", r"gave \[1.0, nan\] to problem p1; rewards are finite"),
        ("bare_list", "gave list; return Rewards"),
    ],
)
def test_wrong_rewards_are_refused_by_the_name_of_their_rule(own, step, name, message):
    with pytest.raises(MmcorlError, match=rf"rules.py:{name} .*{message}"):
        own(name)(step)


def test_a_missing_file_is_named_with_the_place_that_was_looked_in(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        MmcorlError, match=f"reward.rule=rules.py:f: rules.py does not exist below {tmp_path}"
    ):
        rule_of(RewardConfig(rule="rules.py:f"), {})
    with pytest.raises(MmcorlError, match=f"{tmp_path}/rules.py does not exist$"):
        rule_of(RewardConfig(rule=f"{tmp_path}/rules.py:f"), {})


@pytest.mark.parametrize("rule", ["peer_vot", "rules.py", "rules.py:", "rules:f", "rules.py:f()"])
def test_a_name_that_is_neither_is_refused_by_the_configuration(rule):
    with pytest.raises(MmcorlError, match=r"rule: .* is no rule; the nearest is"):
        validate(RewardConfig, {"rule": rule}, "run.yaml")


def test_reports_and_model_cards_call_it_by_what_was_set():
    path = Path(__file__).parents[2] / "configs" / "quickstart.yaml"
    config = load_config(path, ["reward.rule=rules.py:brief"])
    assert method_name(config) == "a reward of one's own" and not uses_labels(config)
    assert what_is_rewarded(config) == "A completion is rewarded by rules.py:brief"
