"""Differences between two result folders made by hand."""

from __future__ import annotations

import argparse
import json

import pytest

from mmcorl.cli import eval_compare
from mmcorl.errors import MmcorlError
from mmcorl.evaluation.compare import Change, compare
from mmcorl.statistics import mcnemar_test

GOLDS = {str(i): "1" for i in range(10)}


def rows(right: str, wrong: str = "0") -> dict[str, list[str]]:
    """A letter a problem: R is right."""
    return {p: ["1" if letter == "R" else wrong] for p, letter in zip(GOLDS, right, strict=True)}


def test_single_samples_are_tested_by_mcnemar(write_results):
    """Both right 3, only the first 1, only the second 5, neither 1."""
    first = write_results("first", {"a": rows("RRRRwwwwww")}, GOLDS)
    second = write_results("second", {"b": rows("RRRwRRRRRw")}, GOLDS)
    [d] = compare(first, second)
    assert (d.problems, d.unpaired, d.first_model, d.second_model) == (10, 0, "a", "b")
    assert (d.first, d.second, d.difference) == pytest.approx((0.4, 0.8, 0.4))
    assert d.test == "exact McNemar" and d.p == mcnemar_test(1, 5)
    assert d.low < 0.4 < d.high
    assert [c.problem for c in d.changes] == ["3", "4", "5", "6", "7", "8"]
    assert d.changes[0] == Change("3", "Question 3?", "1", 1.0, 0.0, "1", "0")


def test_a_result_does_not_differ_from_itself(write_results):
    out = write_results("r", {"a": rows("RRRwwRRRww")}, GOLDS)
    [d] = compare(out, out)
    assert (d.difference, d.low, d.high, d.p, d.changes) == (0, 0, 0, 1, ())
    assert d.same_declaration


def test_averages_are_tested_by_sign_flips(write_results):
    """Every one of ten problems goes from 1/2 to 1: the only more extreme signs are all turned, 2 in 1024."""
    first = write_results("first", {"a": {p: ["1", "0"] for p in GOLDS}}, GOLDS)
    second = write_results("second", {"a": {p: ["1", "1"] for p in GOLDS}}, GOLDS)
    [d] = compare(first, second)
    assert d.test == "sign flips" and d.p == pytest.approx(2 / 1024, abs=0.002)
    assert d.difference == 0.5 and (d.changes[0].first_rate, d.changes[0].second_rate) == (0.5, 1.0)


def test_problems_of_one_cluster_are_one_observation(write_results):
    declaration = {"cluster": "family"}
    fields = {p: {"family": "all"} for p in GOLDS}
    first = write_results("first", {"a": rows("wwwwwwwwww")}, GOLDS, fields, declaration=declaration)
    second = write_results("second", {"a": rows("RRRRRRRRRR")}, GOLDS, fields, declaration=declaration)
    [d] = compare(first, second)
    assert d.p == 1 and d.test == "sign flips"


def test_only_problems_that_are_the_same_are_paired(write_results):
    first = write_results("first", {"a": rows("RRRRRRRRRR")}, GOLDS)
    other = {**GOLDS, "9": "0"}
    del other["0"]
    second = write_results("second", {"a": {p: ["1"] for p in other}}, other)
    [d] = compare(first, second)
    assert (d.problems, d.unpaired, d.difference) == (8, 2, 0)


def test_models_are_paired_by_name_or_named(write_results):
    first = write_results("first", {"a": rows("R" * 10), "b": rows("w" * 10)}, GOLDS)
    second = write_results("second", {"b": rows("R" * 10), "c": rows("w" * 10)}, GOLDS)
    assert [(d.first_model, d.second_model, d.difference) for d in compare(first, second)] == [("b", "b", 1)]
    assert [d.difference for d in compare(first, second, ("a", "c"))] == [-1]
    with pytest.raises(MmcorlError, match="no model 'c'; it has a, b"):
        compare(first, second, ("c", "c"))
    third = write_results("third", {"x": rows("R" * 10), "y": rows("R" * 10)}, GOLDS)
    with pytest.raises(MmcorlError, match="give --models A B"):
        compare(first, third)


def test_no_benchmark_in_common_is_an_error(write_results):
    first = write_results("first", {"a": rows("R" * 10)}, GOLDS)
    second = write_results("second", {"a": rows("R" * 10)}, GOLDS, benchmark="other")
    with pytest.raises(MmcorlError, match="no benchmark in common"):
        compare(first, second)
    begun = write_results("begun", {"a": {}}, GOLDS, samples=1)
    with pytest.raises(MmcorlError, match="no problem in common that both have finished"):
        compare(first, begun)


def test_the_command_prints_the_difference_and_what_changed(write_results, capsys):
    first = write_results("first", {"a": rows("RRRRwwwwww")}, GOLDS)
    second = write_results("second", {"b": rows("RRRwRRRRRw")}, GOLDS)
    parser = argparse.ArgumentParser()
    eval_compare.add_parser(parser.add_subparsers())

    def run(*arguments: str) -> str:
        options = parser.parse_args(["compare", str(first), str(second), *arguments])
        assert options.command(options) == 0
        return capsys.readouterr().out

    text = " ".join(run("--show", "1").split())
    assert "+40.0" in text and "exact McNemar" in text
    assert "toy: 5 problems are solved more often now, 1 less often" in text
    assert "3: 1.00 -> 0.00, gold '1', answers '1' -> '0': Question 3?" in text and "4: 0.00" not in text
    [printed] = json.loads(run("--json"))
    assert printed["p"] == mcnemar_test(1, 5) and len(printed["changes"]) == 6
