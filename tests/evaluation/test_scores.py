"""Scores of result folders made by hand, each checked against arithmetic on paper."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mmcorl.errors import MmcorlError
from mmcorl.evaluation.records import BenchmarkResult, read_result
from mmcorl.evaluation.scores import Scores, groups, pooled, score
from mmcorl.graders import Grader


def scored(result: BenchmarkResult, model: str = "a") -> Scores:
    with Grader() as grader:
        scores = score(result, model, grader.classes)
    assert scores is not None
    return scores


def test_greedy_scores(write_results):
    answers = {"a": {"1": ["4"], "2": ["5"], "3": [None], "4": ["7"]}}
    out = write_results("r", answers, {"1": "4", "2": "5", "3": "6", "4": "8"})
    scores = scored(read_result(out / "toy"))
    assert (scores.accuracy.value, scores.accuracy.problems, scores.samples) == (0.5, 4, 1)
    assert 0 <= scores.accuracy.low < 0.5 < scores.accuracy.high <= 1
    assert scores.extraction_rate == 0.75 and scores.truncation_rate == 0.25
    assert (scores.tokens, scores.seconds) == (4, 2.0)
    assert scores.pass_at == {1: 0.5} and scores.majority is None


def test_several_samples(write_results):
    """Right 2, 1 and 3 of 4: avg 6/12; pass@2 = 1 - C(4-c,2)/C(4,2) = 5/6, 1/2, 1; maj: a tie, wrong, right."""
    answers = {"a": {"1": ["4", "4", "7", "7"], "2": ["5", "9", "9", None], "3": ["6", "6", "1", "6"]}}
    out = write_results("r", answers, {"1": "4", "2": "5", "3": "6"})
    scores = scored(read_result(out / "toy"))
    assert scores.accuracy.value == pytest.approx(6 / 12)
    assert scores.pass_at == pytest.approx({1: 0.5, 2: (5 / 6 + 1 / 2 + 1) / 3, 4: 1.0})
    assert scores.majority is not None and scores.majority.value == pytest.approx(1.5 / 3)
    assert scores.tie_rate == pytest.approx(1 / 3)


def test_an_average_over_eight_is_over_eight_real_samples(write_results):
    """One problem solved in 3 of 8 samples, one in 8: 11/16, not what the first sample alone would give."""
    answers = {"a": {"1": ["9"] * 5 + ["4"] * 3, "2": ["5"] * 8}}
    out = write_results("r", answers, {"1": "4", "2": "5"})
    result = read_result(out / "toy")
    assert {p: len(g) for p, g in groups(result, "a").items()} == {"1": 8, "2": 8}
    assert scored(result).accuracy.value == pytest.approx(11 / 16)
    seven = BenchmarkResult(result.benchmark, result.problems, result.samples[1:])
    assert (scored(seven).missing, scored(seven).accuracy.problems) == (1, 1)


def test_a_sample_that_is_there_twice_is_refused(write_results):
    out = write_results("r", {"a": {"1": ["4", "4"]}}, {"1": "4"})
    result = read_result(out / "toy")
    doubled = BenchmarkResult(result.benchmark, result.problems, [*result.samples, result.samples[0]])
    with pytest.raises(MmcorlError, match="sample 0 of problem 1 by a is one too many"):
        groups(doubled, "a")


def test_nothing_finished_is_no_score(write_results):
    result = read_result(write_results("r", {"a": {"1": ["4"]}}, {"1": "4"}, samples=2) / "toy")
    with Grader() as grader:
        assert score(result, "a", grader.classes) is None


def test_breakdown_by_the_fields_of_the_rows(write_results):
    fields = {
        "1": {"version": "Text Only", "skills": ["algebra", "logic"]},
        "2": {"version": "Vision Only", "skills": ["algebra"]},
        "3": {"version": "Vision Only"},
    }
    answers = {"a": {"1": ["4"], "2": ["5"], "3": ["0"]}}
    by = {"by": ["version", "skills", "absent"]}
    out = write_results("r", answers, {"1": "4", "2": "5", "3": "6"}, fields, declaration=by)
    split = scored(read_result(out / "toy")).breakdown
    assert {k: (e.value, e.problems) for k, e in split["version"].items()} == {
        "Text Only": (1.0, 1),
        "Vision Only": (0.5, 2),
    }
    assert {k: e.problems for k, e in split["skills"].items()} == {"algebra": 2, "logic": 1}
    assert split["absent"] == {}


def test_versions_of_a_problem_are_one_problem_to_the_interval(write_results):
    """Ten problems in five versions, each all right or all wrong."""
    rows = {f"{i}-{v}": "1" if i < 6 else "0" for i in range(10) for v in range(5)}
    fields = {p: {"problem_index": p.partition("-")[0]} for p in rows}
    answers, golds = {"a": {p: [x] for p, x in rows.items()}}, dict.fromkeys(rows, "1")
    plain, clustered = (
        scored(
            read_result(
                write_results(f"{cluster}", answers, golds, fields, declaration={"cluster": cluster}) / "toy"
            )
        ).accuracy
        for cluster in (None, "problem_index")
    )
    assert plain.value == clustered.value == 0.6
    assert clustered.high - clustered.low > 2 * (plain.high - plain.low)


def test_we_math_is_scored_in_four_dimensions_for_each_sample(write_results):
    """First sample: all right, complete mastery. Second: steps right and composite wrong, half a point."""
    fields = {
        "s1": {"problem": "7", "key": "2steps_1"},
        "s2": {"problem": "7", "key": "2steps_2"},
        "m": {"problem": "7", "key": "2steps_multi"},
    }
    answers = {"a": {"s1": ["4", "4"], "s2": ["5", "5"], "m": ["6", "9"]}}
    result = read_result(
        write_results(
            "r", answers, {"s1": "4", "s2": "5", "m": "6"}, fields, declaration={"metric": "wemath"}
        )
        / "toy"
    )
    dimensions = scored(result).four_dimensions
    assert dimensions is not None
    assert dimensions["score_strict"] == 0.75
    assert dimensions["mastery_strict"] == dimensions["inadequate_generalization"] == 0.5


def test_pooling_two_models_at_the_budget_of_one(write_results):
    """The worked vote: [4,4,6,7] + [6,6,4,6] elects 6; the fifth samples are beyond the budget."""
    answers = {"a": {"1": ["4", "4", "6", "7", "4"]}, "b": {"1": ["6", "6", "4", "6", "4"]}}
    result = read_result(write_results("r", answers, {"1": "6"}) / "toy")
    with Grader() as grader:
        found = pooled([(result, "a"), (result, "b")], 4, grader.classes)
        assert found is not None and (found[0].value, found[1]) == (1.0, 0.0)
        with pytest.raises(MmcorlError, match="a has 5 samples a problem, and the vote takes 6"):
            pooled([(result, "a"), (result, "b")], 6, grader.classes)
        other = replace(result, benchmark=replace(result.benchmark, fingerprint="0" * 64))
        with pytest.raises(MmcorlError, match="b answered other problems"):
            pooled([(result, "a"), (other, "b")], 4, grader.classes)
        assert pooled([(result, "a"), (replace(result, samples=[]), "b")], 4, grader.classes) is None
