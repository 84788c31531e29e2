import pytest

from mmcorl.analysis.report.runs import find_runs, read_runs
from mmcorl.errors import MmcorlError


def test_a_folder_of_runs_stands_for_all_of_them_and_none_comes_twice(make_run, tmp_path):
    pair, other = make_run(), make_run(name="other")
    (tmp_path / "notes").mkdir()
    assert find_runs([pair]) == [pair]
    assert find_runs([pair, tmp_path]) == [pair, other]
    assert [run.title for run in read_runs(find_runs([tmp_path]))] == ["other", "pair"]


def test_runs_of_one_name_are_told_apart_by_their_folders(make_run, tmp_path):
    for home in ("first", "second"):
        (tmp_path / home).mkdir()
        make_run(name="pair").rename(tmp_path / home / "pair")
    runs = read_runs(find_runs([tmp_path / "first", tmp_path / "second"]))
    assert [run.title for run in runs] == ["first/pair", "second/pair"]


def test_lines_are_sorted_by_kind_and_a_kind_not_known_is_passed_over(make_run):
    path = make_run(alarms=[{"step": 2, "what": "hot"}])
    with (path / "agents" / "ann" / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "weather", "step": 3}\n{"kind": "train", "st')
    [run] = read_runs([path])
    ann = run.agents["ann"]
    assert (ann.steps, len(ann.evaluations), [line["what"] for line in ann.alarms]) == (
        [1, 2, 3],
        4,
        ["hot"],
    )
    assert run.complete and run.steps_done == 3


@pytest.mark.parametrize(
    ("name", "reason"), [("nowhere", "does not exist"), ("empty", "no config.yaml in it")]
)
def test_what_is_no_run_is_named(tmp_path, name, reason):
    (tmp_path / "empty").mkdir()
    with pytest.raises(MmcorlError, match=reason):
        find_runs([tmp_path / name])
