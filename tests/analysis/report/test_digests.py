import json

import pytest

from mmcorl.analysis.report.digests import digest, evenly
from mmcorl.analysis.report.runs import read_runs
from mmcorl.errors import MmcorlError
from mmcorl.files import read_lines


def rewrite(path, change):
    lines = [change(line) for line in read_lines(path)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


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
    rewrite(file, lambda line: line | {"reward": None, "vote": None})
    found = digest(file, config, steps={1}, per_step=1)
    assert found.spread == []


def test_a_torn_last_step_is_read_as_far_as_it_goes(make_run):
    file, config = ann_of(make_run())
    file.write_bytes(file.read_bytes()[:-200])
    found = digest(file, config, steps={3}, per_step=4)
    assert 32 < found.count < 48


def test_damage_before_the_end_is_told(make_run):
    file, config = ann_of(make_run())
    file.write_text("not json\n" + file.read_text())
    with pytest.raises(MmcorlError, match="line 1 is not JSON"):
        digest(file, config, steps=(), per_step=1)


def test_no_file_is_no_completions(make_run, tmp_path):
    _, config = ann_of(make_run())
    assert digest(tmp_path / "none.jsonl", config, steps={1}, per_step=1).count == 0


@pytest.mark.parametrize(
    ("length", "count", "chosen"),
    [(3, 5, [0, 1, 2]), (10, 3, [0, 4, 9]), (10, 1, [0]), (0, 2, []), (5, 5, [0, 1, 2, 3, 4])],
)
def test_evenly_keeps_the_first_and_the_last(length, count, chosen):
    assert evenly(range(length), count) == chosen


def test_a_problem_is_kept_with_all_the_roles_it_was_answered_in(make_run):
    file, config = ann_of(make_run())
    lines = read_lines(file)
    told = [
        line | {"role": role, "own_vote": vote}
        for role, vote in (("solver", "3"), ("judge", "9"))
        for line in lines[:16]
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in told))
    found = digest(file, config, steps={1}, per_step=1)
    assert [(group.problem, group.role) for group in found.samples] == [
        ("count-1-0", "solver"),
        ("count-1-0", "judge"),
    ]
    assert {vote.answer for vote in found.votes} == {"3"}, "the vote is that of the first role"
