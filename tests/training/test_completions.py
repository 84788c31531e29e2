import resource

import datasets
import pandas
import pyarrow.parquet as pq
import pytest

from mmcorl.errors import MmcorlError
from mmcorl.training.completions import CompletionRecord, CompletionsLog, completion_files, read_completions


def a_completion(text, **fields):
    values = {
        "problem": "p1", "text": text, "tokens": 7, "finished": True, "answer": "3", "reward": 1.0, "vote": "3",
        "own_vote": None, "advantage": 0.5,
    }  # fmt: skip
    return CompletionRecord(**values | fields)


def steps(folder):
    return list(completion_files(folder))


def test_a_step_is_read_back_as_it_was_written(tmp_path):
    CompletionsLog(tmp_path).write(3, [a_completion("drei \u2028 Äpfel\n"), a_completion("", role="judge 1")])
    [(step, rows)] = read_completions(tmp_path)
    assert step == 3
    assert rows[0] == {
        "step": 3, "problem": "p1", "role": None, "text": "drei \u2028 Äpfel\n", "tokens": 7, "finished": True,
        "answer": "3", "own_vote": None, "vote": "3", "reward": 1.0, "advantage": 0.5,
    }  # fmt: skip
    assert (rows[1]["text"], rows[1]["role"]) == ("", "judge 1")


def test_texts_are_read_of_the_steps_that_are_asked_for(tmp_path):
    log = CompletionsLog(tmp_path)
    for step in (1, 2):
        log.write(step, [a_completion("long")])
    assert [("text" in rows[0]) for _, rows in read_completions(tmp_path, texts_of={2})] == [False, True]


def test_a_resumed_log_has_every_step_once(tmp_path):
    log = CompletionsLog(tmp_path)
    for step in (1, 2, 3, 4):
        log.write(step, [a_completion(f"first {step}")])
    (tmp_path / ".step-000005.parquet.77.partial").write_bytes(b"half")
    resumed = CompletionsLog(tmp_path, resume_step=2)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["step-000001.parquet", "step-000002.parquet"]
    resumed.write(3, [a_completion("again")])
    texts = [rows[0]["text"] for _, rows in read_completions(tmp_path)]
    assert texts == ["first 1", "first 2", "again"]
    CompletionsLog(tmp_path)
    assert steps(tmp_path) == []


def test_a_rank_without_a_folder_writes_nothing(tmp_path):
    CompletionsLog(None).write(1, [a_completion("x")])
    assert not list(tmp_path.iterdir())


def test_the_oldest_steps_make_room(tmp_path):
    log = CompletionsLog(tmp_path, limit_mib=0.025)
    for step in range(1, 10):
        log.write(step, [a_completion("x")])
    size = (tmp_path / "step-000009.parquet").stat().st_size
    assert steps(tmp_path) == list(range(10 - int(0.025 * 2**20 / size), 10))
    resumed = CompletionsLog(tmp_path, resume_step=9, limit_mib=1e-6)
    resumed.write(10, [a_completion("x")])
    assert steps(tmp_path) == [10], "the newest stays, however large"


def test_values_that_no_file_can_hold(tmp_path):
    CompletionsLog(tmp_path).write(1, [a_completion("\ud800!", reward=float("nan"), advantage=float("inf"))])
    [(_, [row])] = read_completions(tmp_path)
    assert (row["text"], row["reward"], row["advantage"]) == ("\\ud800!", None, None)


def test_datasets_and_pandas_read_the_folder(tmp_path):
    log = CompletionsLog(tmp_path / "completions")
    for step in (1, 2):
        log.write(step, [a_completion("a", token_ids=(5, 6)), a_completion("b")])
    frame = pandas.read_parquet(tmp_path / "completions")
    assert len(frame) == 4 and frame["reward"].mean() == 1.0
    rows = datasets.Dataset.from_parquet(
        [str(file) for file in completion_files(tmp_path / "completions").values()],
        cache_dir=str(tmp_path / "cache"),
    )
    assert rows["step"][:] == [1, 1, 2, 2] and rows[0]["token_ids"] == [5, 6] and rows[1]["token_ids"] is None


def test_a_damaged_file_is_named(tmp_path):
    CompletionsLog(tmp_path).write(1, [a_completion("x")])
    (tmp_path / "step-000001.parquet").write_bytes(b"PAR1 no table PAR1")
    with pytest.raises(MmcorlError, match=r"step-000001\.parquet is damaged .*; remove it"):
        list(read_completions(tmp_path))


def test_a_file_of_other_columns_is_named(tmp_path):
    CompletionsLog(tmp_path).write(1, [a_completion("x")])
    file = tmp_path / "step-000001.parquet"
    pq.write_table(pq.read_table(file).drop_columns("vote"), file)
    with pytest.raises(MmcorlError, match=r"step-000001\.parquet is damaged .*vote"):
        list(read_completions(tmp_path))


def test_a_full_disk_is_one_clear_error_and_leaves_no_file(tmp_path):
    log = CompletionsLog(tmp_path)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(MmcorlError, match=r"step-000001\.parquet cannot be written \(File too large\)"):
            log.write(1, [a_completion("x")])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert steps(tmp_path) == []
