import pytest

from mmcorl.analysis.report.digests import Digest
from mmcorl.analysis.report.runs import read_runs
from mmcorl.analysis.report.series import Point, charts_of, phase_seconds, thin


def chart_of(runs, key, digests=None):
    found = [chart for chart in charts_of(runs, digests or [{} for _ in runs]) if chart.key == key]
    return found[0] if found else None


def test_every_agent_of_every_run_has_its_line(make_run):
    runs = read_runs([make_run(name="first"), make_run(name="second", steps=2)])
    lines = {(s.run, s.agent): [p.value for p in s.points] for s in chart_of(runs, "agreement").series}
    assert lines == {
        (0, "ann"): [0.25, 0.5, 0.75],
        (0, "bob"): [0.25, 0.5, 0.75],
        (1, "ann"): [0.25, 0.5],
        (1, "bob"): [0.25, 0.5],
    }


def test_evaluations_carry_their_intervals_and_what_was_not_logged_has_no_chart(make_run):
    runs = read_runs([make_run()])
    assert chart_of(runs, "accuracy").series[0].points[0] == Point(0, 0.5, 0.5, 0.5)
    assert chart_of(runs, "entropy") is None and chart_of(runs, "spread") is None


def test_spread_is_relative_to_the_first_step_that_has_any(make_run):
    runs = read_runs([make_run()])
    digests = [{"ann": Digest(spread=[(1, 0.0), (2, 0.4), (3, 0.1)]), "bob": Digest(spread=[(1, 0.0)])}]
    chart = chart_of(runs, "spread", digests)
    assert [(s.agent, [p.value for p in s.points]) for s in chart.series] == [
        ("ann", pytest.approx([0, 1, 0.25]))
    ]


def test_long_lines_become_means_of_neighbours():
    points = [Point(step, step % 2) for step in range(1, 1001)]
    thinned = thin(points, 100)
    assert len(thinned) == 100 and {point.value for point in thinned} == {0.5}
    assert (thinned[0].step, thinned[-1].step) == (5.5, 995.5)
    assert thin(points[:7], 100) == points[:7] and thin([], 100) == []


def test_phases_are_means_over_steps(make_run):
    [run] = read_runs([make_run()])
    assert phase_seconds(run, "ann") == {"rollout": 1.0, "update": 2.0}


def test_without_completions_the_spread_comes_from_the_metrics(make_run):
    path = make_run()
    with (path / "agents" / "ann" / "metrics.jsonl").open("a") as file:
        file.write(
            '{"kind": "train", "step": 4, "reward_std": 0.4}\n{"kind": "train", "step": 5, "reward_std": 0.1}\n'
        )
    chart = chart_of(read_runs([path]), "spread", [{"ann": Digest(), "bob": Digest()}])
    assert [[p.value for p in s.points] for s in chart.series] == [pytest.approx([1, 0.25])]
