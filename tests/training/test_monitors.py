"""Every alarm goes off for its own trouble, says so once, and a healthy run hears none."""

import pytest

from mmcorl.config import MonitorsConfig
from mmcorl.training.monitors import Monitor

HEALTHY = {
    "abstained": 0.1, "truncated": 0.05, "live_groups": 0.7, "reward_std": 0.4, "constant_answer": 0.2,
    "distinct_labels": 12, "vote_share": 0.6, "length": 200.0, "agreement": 0.7, "masked": 0.01,
}  # fmt: skip

TROUBLE = {
    "few_answers": {"abstained": 0.6},
    "cut_off": {"truncated": 0.3},
    "no_contrast": {"live_groups": 0.1},
    "reward_gone": {"reward_std": 0.03},
    "constant_answer": {"constant_answer": 0.5},
    "fewer_answers": {"vote_share": 0.99, "distinct_labels": 4},
    "length_gone": {"length": 50.0},
    "at_odds": {"agreement": 0.02},
    "alike": {"agreement": 1.0},
    "off_policy": {"masked": 0.4},
}


def run(*phases, **settings):
    """Alarms of a run that has each phase's metrics for its number of steps."""
    monitor, alarms, step = Monitor(MonitorsConfig(patience=3, **settings)), [], 0
    for steps, changed in phases:
        for _ in range(steps):
            step += 1
            alarms += monitor.look(step, HEALTHY | changed)
    return alarms


def test_a_healthy_run_hears_nothing():
    assert run((200, {})) == []


@pytest.mark.parametrize("name", TROUBLE)
def test_each_trouble_sets_off_its_alarm_once(name):
    alarms = run((10, {}), (30, TROUBLE[name]))
    assert [(alarm.name, alarm.step) for alarm in alarms] == [(name, 13)]
    assert str(alarms[0]).startswith(alarms[0].what) and len(alarms[0].advice) > 20


@pytest.mark.parametrize("name", TROUBLE)
def test_trouble_that_passes_within_the_patience_is_none(name):
    assert run((10, {}), (2, TROUBLE[name]), (10, {}), (2, TROUBLE[name]), (5, {})) == []


def test_trouble_that_comes_back_is_told_again():
    odd = TROUBLE["at_odds"]
    assert [alarm.step for alarm in run((10, {}), (5, odd), (5, {}), (5, odd))] == [13, 23]


def test_a_run_that_was_always_so_does_not_alarm_about_change():
    for name in ("cut_off", "reward_gone", "constant_answer", "fewer_answers", "length_gone"):
        assert run((60, TROUBLE[name])) == []


def test_only_a_collapse_is_marked_as_one():
    marked = {
        alarm.name for trouble in TROUBLE.values() for alarm in run((10, {}), (5, trouble)) if alarm.collapse
    }
    assert marked == {"few_answers", "cut_off", "constant_answer", "fewer_answers"}


def test_the_limits_are_settings():
    assert run((10, {}), (5, TROUBLE["few_answers"]), parsed_min=0.3) == []
    assert run((10, {}), (5, TROUBLE["alike"]), agreement_max=1.0) == []


def test_metrics_that_a_run_does_not_have_set_nothing_off():
    bare = dict.fromkeys(("reward_std", "constant_answer", "distinct_labels", "agreement", "masked"))
    assert run((30, bare)) == []
