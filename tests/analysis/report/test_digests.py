import pyarrow.parquet as pq
import pytest

from mmcorl.analysis.report.digests import digest, evenly
from mmcorl.analysis.report.runs import read_runs
from mmcorl.errors import MmcorlError
from mmcorl.training.completions import CompletionRecord, CompletionsLog


def rewrite(folder, step, change):
    file = folder / f"step-{step:06d}.parquet"
    rows = pq.read_table(file).drop_columns("step").to_pylist()
    CompletionsLog(folder, 3).write(step, [CompletionRecord(**change(row)) for row in rows])


def ann_of(path):
    [run] = read_runs([path])
    return run.folder.completions("ann"), run.config


def test_samples_are_spread_over_a_step_and_everything_is_counted(make_run):
    file, config = ann_of(make_run())
    found = digest(file, config, steps={1, 3}, per_step=2)
    kept = [(group.step, group.problem) for group in found.samples]
    assert kept == [(step, f"count-1-{place}") for step in (1, 3) for place in (0, 3)]
    assert (found.count, len(found.votes), {vote.answer for vote in found.votes}) == (48, 12, {"3"})
    assert found.spread == [(step, pytest.approx(0.5)) for step in (1, 2, 3)]


def test_groups_without_a_label_have_no_spread(make_run):
    file, config = ann_of(make_run())
    for step in (1, 2, 3):
        rewrite(file, step, lambda line: line | {"reward": None, "vote": None})
    found = digest(file, config, steps={1}, per_step=1)
    assert found.count == 48 and found.spread == []


def test_damage_is_told(make_run):
    folder, config = ann_of(make_run())
    file = folder / "step-000002.parquet"
    file.write_bytes(file.read_bytes()[:-200])
    with pytest.raises(MmcorlError, match=r"step-000002\.parquet is damaged"):
        digest(folder, config, steps=(), per_step=1)


def test_no_folder_is_no_completions(make_run, tmp_path):
    _, config = ann_of(make_run())
    assert digest(tmp_path / "none", config, steps={1}, per_step=1).count == 0


@pytest.mark.parametrize(
    ("length", "count", "chosen"),
    [(3, 5, [0, 1, 2]), (10, 3, [0, 4, 9]), (10, 1, [0]), (0, 2, []), (5, 5, [0, 1, 2, 3, 4])],
)
def test_evenly_keeps_the_first_and_the_last(length, count, chosen):
    assert evenly(range(length), count) == chosen


def test_a_problem_is_kept_with_all_the_roles_it_was_answered_in(make_run):
    file, config = ann_of(make_run())
    rows = pq.read_table(file / "step-000001.parquet").drop_columns("step").to_pylist()
    told = [
        CompletionRecord(**row | {"role": role, "own_vote": vote})
        for role, vote in (("solver", "3"), ("judge", "9"))
        for row in rows
    ]
    CompletionsLog(file).write(1, told)
    found = digest(file, config, steps={1}, per_step=1)
    assert [(group.problem, group.role) for group in found.samples] == [
        ("count-1-0", "solver"),
        ("count-1-0", "judge"),
    ]
    assert {vote.answer for vote in found.votes} == {"3"}, "the vote is that of the first role"
