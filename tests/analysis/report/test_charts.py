import pytest

from mmcorl.analysis.report.charts import DASHES, PAPER, SCREEN, Style, limits


@pytest.mark.parametrize(
    ("low", "high", "least"),
    [(0, 0, 0), (0, 0, 5), (8, 8.01, 0), (-0.5, -0.3, 0), (-1, 2, 0), (40, 60, 5), (0, 0.2, 5)],
)
def test_an_axis_holds_its_values_and_is_not_narrower_than_noise(low, high, least):
    bottom, top = limits(low, high, least)
    assert bottom <= low <= high <= top and bottom < top
    assert top - bottom >= max(least, 0.1 * max(abs(low), abs(high)))
    assert low < 0 or bottom >= -0.03 * (top - bottom)


def test_colours_tell_agents_of_one_run_and_runs_of_several():
    one, several = Style(["ann", "bob"], runs=1), Style(["ann", "bob"], runs=2)
    assert [one.colour(0, name) for name in one.agents] == [0, 1]
    assert [several.colour(run, "ann") for run in (0, 1)] == [0, 1]
    assert DASHES[one.dash("bob")] == "" != DASHES[several.dash("bob")]


def luminance(colour):
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colour", [*PAPER.series, PAPER.ink])
def test_lines_stand_out_from_paper(colour):
    """Contrast of graphical objects as WCAG 2.1 asks for it (1.4.11)."""
    assert (luminance(PAPER.card) + 0.05) / (luminance(colour) + 0.05) >= 3
    assert len(SCREEN.series) == len(PAPER.series)
