"""Pooled votes: the worked examples of the matched-budget ensemble, ties included."""

from __future__ import annotations

import itertools

from mmcorl.evaluation.votes import Majority, majority
from mmcorl.graders import Answer, Grader
from mmcorl.problems import Problem

PROBLEM = Problem("1", "How large is it?")


def math_answers(values: list[str | None]) -> list[Answer | None]:
    return [None if value is None else Answer("math", value) for value in values]


def elect(grader: Grader, values: list[str | None], gold: str) -> Majority:
    answers = math_answers(values)
    return majority(answers, grader.classes, {a: a.value == gold for a in answers if a is not None})


def test_two_models_pooled_elect_what_neither_pair_would_alone():
    """[4,4,6,7] + [6,6,4,6]: 6 has four of eight."""
    with Grader() as grader:
        assert elect(grader, ["4", "4", "6", "7"], "6").winners == (Answer("math", "4"),)
        pooled = elect(grader, ["4", "4", "6", "7", "6", "6", "4", "6"], "6")
    assert pooled == Majority((Answer("math", "6"),), 1.0)
    assert not pooled.tie


def test_a_tie_is_worth_its_expected_credit_whoever_is_first():
    """[4,4,4,7] + [6,6,6,7]: 4 and 6 have three each, 7 two."""
    first, second = ["4", "4", "4", "7"], ["6", "6", "6", "7"]
    with Grader() as grader:
        for pool in (first + second, second + first):
            for gold, credit in (("4", 0.5), ("6", 0.5), ("7", 0.0)):
                vote = elect(grader, [*pool], gold)
                assert vote.tie and vote.credit == credit


def test_equal_answers_count_together_in_any_order():
    """1/2, 0.5 and 50 % are one class of three against two of 3."""
    answers = [Answer("math", v) for v in ("1/2", "3", "3")]
    with Grader() as grader:
        half, percent = grader.read("0.50", PROBLEM), grader.read("50\\%", PROBLEM)
        for order in itertools.permutations([*answers, half, percent]):
            vote = majority(order, grader.classes, {a: a.value != "3" for a in order if a})
            assert vote.credit == 1.0 and not vote.tie


def test_abstentions_elect_nothing():
    with Grader() as grader:
        assert elect(grader, [None, None], "4") == Majority((), 0.0)
        assert elect(grader, [None, None, "4"], "4").credit == 1.0
