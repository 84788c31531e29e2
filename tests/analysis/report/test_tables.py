from mmcorl.analysis.report.runs import read_runs
from mmcorl.analysis.report.tables import result_table


def test_start_end_interval_and_gain_of_every_agent_and_their_mean(make_run):
    table = result_table(read_runs([make_run(evaluation={"samples": 8})]))
    assert table.heads == ["greedy, start", "greedy, end", "gain", "avg@8, start", "avg@8, end", "gain"]
    assert [(row.agent, row.cells[:3]) for row in table.rows] == [
        ("ann", ["50.0", "80.0 [80.0, 80.0]", "+30.0"]),
        ("bob", ["50.0", "80.0 [80.0, 80.0]", "+30.0"]),
        ("mean", ["50.0", "80.0", "+30.0"]),
    ]


def test_without_evaluations_the_table_shows_what_needs_no_labels(make_run):
    table = result_table(read_runs([make_run(evaluated=False)]))
    assert not table.evaluated
    assert table.heads == [
        "agreement, start",
        "agreement, end",
        "gain",
        "vote share, start",
        "vote share, end",
        "gain",
    ]
    assert table.rows[0].cells[:3] == ["25.0", "75.0", "+50.0"]


def test_a_run_that_has_written_nothing_beside_one_that_has(make_run):
    table = result_table(read_runs([make_run(name="done"), make_run(name="new", steps=0, evaluated=False)]))
    assert [row.cells[0] for row in table.rows] == ["50.0", "50.0", "50.0", "-", "-", "-"]
    assert result_table(read_runs([make_run(name="only", steps=0, evaluated=False)])).heads == []
