"""Worked numbers of kappa, c, w and u."""

import math
import random

import numpy as np
import pytest

from mmcorl.analysis.diversity import (
    Answers,
    Estimate,
    Shares,
    difference,
    measures,
    own_shares,
    pair,
    pair_shares,
)
from mmcorl.analysis.partners import anchored, by_kappa, recommend
from mmcorl.graders.answers import Answer


def classes(answers):
    groups: dict = {}
    for index, answer in enumerate(answers):
        if answer is not None:
            groups.setdefault(answer, []).append(index)
    return list(groups.values())


def model(*said: str | None, gold: str = "g") -> Answers:
    """Answers as letters; "g" is right, None abstains."""
    return Answers([s and Answer("math", s) for s in said], [s == gold for s in said])


def test_ten_problems():
    assert measures(Shares(4, 2, 1, 3, 1)) == pytest.approx((0.4, 0.3, 0.1, 0.7))


@pytest.mark.parametrize(
    ("counts", "kappa", "c", "w", "u"),
    [
        ((159, 94, 62, 185, 12), 0.3769, 31.2, 2.4, 63.0),
        ((101, 120, 44, 235, 15), 0.3104, 32.8, 3.0, 53.0),
        ((278, 46, 49, 127, 26), 0.5819, 19.0, 5.2, 74.6),
    ],
)
def test_rows_of_table_6(counts, kappa, c, w, u):
    found = measures(Shares(*counts))
    assert found.kappa == pytest.approx(kappa, abs=5e-5)
    assert [100 * v for v in found[1:]] == pytest.approx([c, w, u])


def test_kappa_is_undefined_where_chance_agreement_is_certain():
    assert math.isnan(measures(Shares(10, 0, 0, 0, 0)).kappa)
    assert math.isnan(measures(Shares(0, 0, 0, 10, 5)).kappa)
    assert measures(Shares(0, 10, 0, 0, 0)).kappa == 0.0


def test_a_model_that_agrees_with_itself_throughout():
    assert measures(Shares(6, 0, 0, 4, 3)) == pytest.approx((1.0, 0.0, 0.3, 0.6))


def test_identities():
    generator = random.Random(0)
    for _ in range(200):
        both, first, second, neither = (generator.randrange(1, 50) for _ in range(4))
        shares = Shares(both, first, second, neither, generator.randrange(neither + 1))
        n, found = both + first + second + neither, measures(shares)
        assert found.u - found.c == pytest.approx(both / n)
        assert found.u - found.c / 2 == pytest.approx((2 * both + first + second) / (2 * n))
        assert found.w <= 1 - found.u + 1e-12
        assert measures(Shares(both, second, first, neither, shares.same_wrong)) == pytest.approx(found)


def test_outcomes_of_single_samples():
    assert pair_shares(model("g"), model("g"), classes) == (1, 0, 0, 0, 0)
    assert pair_shares(model("g"), model("x"), classes) == (0, 1, 0, 0, 0)
    assert pair_shares(model(None), model("g"), classes) == (0, 0, 1, 0, 0)
    assert pair_shares(model("x"), model("x"), classes) == (0, 0, 0, 1, 1)
    assert pair_shares(model("x"), model("y"), classes) == (0, 0, 0, 1, 0)
    assert pair_shares(model(None), model(None), classes) == (0, 0, 0, 1, 0)


def test_outcomes_of_several_samples_are_means_over_all_pairs():
    first, second = model("g", "x", "x", None), model("x", "g")
    pairs = [pair_shares(model(a), model(b), classes) for a in ("g", "x", "x", None) for b in ("x", "g")]
    assert pair_shares(first, second, classes) == pytest.approx(np.mean(pairs, axis=0))


def test_outcomes_with_itself_leave_out_the_same_sample():
    said = ("g", "x", "x", "y", None)
    pairs = [
        pair_shares(model(a), model(b), classes)
        for i, a in enumerate(said)
        for j, b in enumerate(said)
        if i != j
    ]
    assert own_shares(model(*said), classes) == pytest.approx(np.mean(pairs, axis=0))


def problems(counts: Shares) -> list[Shares]:
    both, first, second, neither, same = map(int, counts)
    unit = np.eye(5)
    unit[4, 3] = 1
    return [
        Shares(*unit[i]) for i, n in enumerate((both, first, second, neither - same, same)) for _ in range(n)
    ]


def test_intervals_have_the_width_of_the_paper_s_sample():
    found = pair("a", "b", problems(Shares(159, 94, 62, 185, 12)))
    assert found.problems == 500 and found.accuracies == pytest.approx((0.506, 0.442))
    assert (found.kappa.low, found.kappa.high) == pytest.approx((0.29, 0.46), abs=0.015)
    assert (found.c.high - found.c.low) / 3.92 == pytest.approx(0.021, abs=0.002)
    assert (found.w.high - found.w.low) / 3.92 == pytest.approx(0.007, abs=0.001)
    assert found.rescued == pytest.approx(62 / 247)
    assert pair("a", "b", problems(Shares(159, 94, 62, 185, 12))).kappa == found.kappa


def test_a_pair_seen_from_its_other_model():
    found = pair("a", "b", problems(Shares(4, 2, 1, 3, 1)))
    other = found.with_first("b")
    assert (other.first, other.second, other.accuracies) == ("b", "a", found.accuracies[::-1])
    assert other.kappa == found.kappa and other.rescued == pytest.approx(2 / 5)
    assert found.with_first("a") is found


def test_differences_are_taken_on_the_same_resamples():
    rows = problems(Shares(159, 94, 62, 185, 12))
    one, same = pair("a", "b", rows), pair("a", "c", rows)
    assert difference(one, same, "kappa") == Estimate(0, 0, 0)


def test_undefined_measures_do_not_break_the_interval():
    found = pair("a", "b", [Shares(1, 0, 0, 0, 0)] * 5)
    assert all(math.isnan(v) for v in (found.kappa.value, found.kappa.low, found.kappa.high))
    assert found.c == Estimate(0.0, 0.0, 0.0)
    assert math.isnan(found.rescued)


# ------------------------------------------------------------------------------------------- partners

ALIKE, APART = Shares(210, 20, 20, 250, 100), Shares(130, 100, 100, 170, 5)


def test_pairs_are_listed_from_the_most_different_or_the_most_alike():
    undefined = pair("a", "d", [Shares(1, 0, 0, 0, 0)] * 5)
    pairs = [
        undefined,
        pair("a", "b", problems(ALIKE)),
        pair("c", "a", problems(APART)),
        pair("b", "c", problems(ALIKE)),
    ]
    assert [p.second for p in by_kappa(pairs[:3])] == ["a", "b", "d"]
    assert [(p.first, p.second) for p in anchored(pairs, "a")] == [("a", "d"), ("a", "b"), ("a", "c")]


def test_the_partner_that_errs_elsewhere_is_recommended():
    pairs = [
        pair("a", "a", problems(APART)),
        pair("a", "b", problems(ALIKE)),
        pair("c", "a", problems(APART)),
    ]
    advice = recommend(pairs, "a")
    assert advice.partner == "c" and advice.certain
    assert "kappa is lower than with every other candidate" in advice.reason


def test_shared_mistakes_decide_where_kappa_does_not():
    fewer = Shares(130, 100, 100, 170, 60)
    advice = recommend([pair("a", "b", problems(fewer)), pair("a", "c", problems(APART))], "a")
    assert advice.partner == "c" and advice.certain
    assert "kappa does not tell it apart from b, but w is lower" in advice.reason


def test_what_the_data_do_not_tell_apart_is_said():
    rows = problems(APART)
    advice = recommend([pair("a", "b", rows), pair("a", "c", rows[1:], seed=1)], "a")
    assert not advice.certain
    assert "neither kappa nor w tells it apart" in advice.reason


def test_candidates_of_another_accuracy_are_not_compared():
    weak = Shares(20, 210, 10, 260, 1)
    pairs = [pair("a", "b", problems(weak)), pair("a", "c", problems(ALIKE))]
    advice = recommend(pairs, "a")
    assert advice.partner == "c"
    assert "not compared, as more than 10 points apart in accuracy: b" in advice.reason
    alone = recommend(pairs[:1], "a")
    assert alone.partner == "b" and not alone.certain
    assert "no candidate is within 10 points" in alone.reason
    assert recommend([pair("a", "a", problems(ALIKE))], "a").partner is None


def test_a_partner_of_no_kappa_is_not_certain():
    advice = recommend([pair("a", "b", [Shares(1, 0, 0, 0, 0)] * 5)], "a")
    assert advice.partner == "b" and not advice.certain
    assert advice.reason.startswith("kappa has no value") and "nan" not in advice.reason
