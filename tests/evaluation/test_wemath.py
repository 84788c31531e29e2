"""The four-dimensional score, against worked families and a published row of the benchmark's own program."""

from __future__ import annotations

import pytest

from mmcorl.evaluation.wemath import FourDimensions, four_dimensions


def family(identity: str, steps: str, composite: bool) -> list[tuple[str, str, bool]]:
    """`steps` has a letter a step: R for right, w for wrong."""
    parts = [(identity, f"{len(steps)}steps_{i}", step == "R") for i, step in enumerate(steps, 1)]
    return [*parts, (identity, f"{len(steps)}steps_multi", composite)]


@pytest.mark.parametrize(
    ("steps", "composite", "dimensions"),
    [
        ("RR", True, {"mastery_strict", "mastery_loose"}),
        ("Rw", True, {"rote_strict", "mastery_loose"}),
        ("ww", True, {"rote_strict", "rote_loose"}),
        ("RR", False, {"inadequate_generalization"}),
        ("Rw", False, {"insufficient_knowledge"}),
        ("RRR", True, {"mastery_strict", "mastery_loose"}),
        ("wRw", True, {"rote_strict", "mastery_loose"}),
        ("RRR", False, {"inadequate_generalization"}),
        ("www", False, {"insufficient_knowledge"}),
    ],
)
def test_each_family_has_its_place(steps: str, composite: bool, dimensions: set[str]):
    counts = four_dimensions(family("1", steps, composite)).to_json()
    assert {name for name in FourDimensions().__dict__ if counts[name]} == dimensions


def test_families_of_two_and_three_steps_may_share_an_id():
    """One mastered, one of three steps half known and wrong: (1 + 0) / 2."""
    score = four_dimensions([*family("7", "RR", True), *family("7", "RRw", False)])
    assert score.composites == 2
    assert score.score_strict == score.score_loose == 0.5


def test_an_incomplete_family_is_counted_and_left_out():
    score = four_dimensions([*family("1", "RR", False), ("2", "2steps_1", True), ("2", "2steps_multi", True)])
    assert (score.composites, score.incomplete) == (1, 1)
    assert score.score_strict == 0.5


def test_the_published_row_of_internvl2():
    """InternVL2 on testmini's 525 families, as the benchmark's program printed it: 15.33 and 32.48 %, RM 71.35 and 18.71 %."""
    row = FourDimensions(291, 63, mastery_strict=49, mastery_loose=139, rote_strict=122, rote_loose=32)
    assert row.composites == 525
    assert row.score_strict == pytest.approx(0.1533, abs=5e-5)
    assert row.score_loose == pytest.approx(0.3248, abs=5e-5)
    assert row.to_json()["rote_rate_strict"] == pytest.approx(0.7135, abs=5e-5)
    assert row.to_json()["rote_rate_loose"] == pytest.approx(0.1871, abs=5e-5)


def test_nothing_scores_nothing():
    assert four_dimensions([]).to_json()["score_strict"] == 0
