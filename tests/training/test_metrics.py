import json
import resource

import pytest

from mmcorl.errors import MmcorlError
from mmcorl.files import read_lines
from mmcorl.training.metrics import (
    MetricsLog,
    Tail,
    read_metrics,
)


def write_steps(log, steps):
    for step in steps:
        log.write("train", step, reward=step / 7)
        if step % 2 == 0:
            log.write("eval", step, accuracy=step / 11)


def test_lines_are_on_disk_as_they_are_written_and_read_back_exactly(tmp_path):
    log = MetricsLog(tmp_path / "agents" / "ann" / "metrics.jsonl")
    write_steps(log, [1, 2])
    path = tmp_path / "agents" / "ann" / "metrics.jsonl"
    assert [line["kind"] for line in read_metrics(path)] == ["train", "train", "eval"]
    assert read_metrics(path, "train")[1] == {"kind": "train", "step": 2, "reward": 2 / 7}
    assert read_metrics(path, "eval") == [{"kind": "eval", "step": 2, "accuracy": 2 / 11}]


def test_no_file_is_no_records(tmp_path):
    assert read_metrics(tmp_path / "metrics.jsonl") == []


def test_values_that_are_no_finite_number_become_null(tmp_path):
    MetricsLog(tmp_path / "m.jsonl").write("train", 1, loss=float("nan"), ratio=float("inf"), kl=None)
    assert read_metrics(tmp_path / "m.jsonl") == [
        {"kind": "train", "step": 1, "loss": None, "ratio": None, "kl": None}
    ]


def test_a_torn_last_line_is_left_out(tmp_path):
    path = tmp_path / "m.jsonl"
    path.write_text('{"kind": "train", "step": 1}\n{"kind": "train", "st')
    assert read_metrics(path) == [{"kind": "train", "step": 1}]


def test_damage_before_the_end_is_an_error_that_names_the_line(tmp_path):
    path = tmp_path / "m.jsonl"
    path.write_text('{"step": 1}\n{"step": \n{"step": 3}\n')
    with pytest.raises(MmcorlError, match=r"m\.jsonl, line 2 is not JSON"):
        read_metrics(path)


def test_a_resumed_log_equals_an_uninterrupted_one(tmp_path):
    whole = MetricsLog(tmp_path / "whole.jsonl")
    write_steps(whole, range(1, 9))
    interrupted = MetricsLog(tmp_path / "resumed.jsonl")
    write_steps(interrupted, range(1, 7))
    interrupted.close()
    with (tmp_path / "resumed.jsonl").open("a") as file:
        file.write('{"kind": "train", "step": 7, "rew')
    write_steps(MetricsLog(tmp_path / "resumed.jsonl", resume_step=4), range(5, 9))
    assert (tmp_path / "resumed.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_a_new_log_starts_empty_and_a_rank_without_a_file_writes_nothing(tmp_path):
    write_steps(MetricsLog(tmp_path / "m.jsonl"), [1, 2])
    MetricsLog(tmp_path / "m.jsonl")
    assert read_metrics(tmp_path / "m.jsonl") == []
    silent = MetricsLog(None)
    write_steps(silent, [1])
    silent.close()
    assert [path.name for path in tmp_path.iterdir()] == ["m.jsonl"]


def test_a_full_disk_is_one_clear_error(tmp_path):
    log = MetricsLog(tmp_path / "m.jsonl")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        for close_or_write in (lambda: log.write("train", 1, text="x" * 200), log.close):
            with pytest.raises(MmcorlError, match=r"m\.jsonl cannot be written \(File too large\)"):
                close_or_write()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert read_lines(tmp_path / "m.jsonl") == []


def test_a_tail_starts_at_the_end(tmp_path):
    path = tmp_path / "m.jsonl"
    path.write_text('damaged\n{"step": 1}\n')
    tail = Tail(path)
    assert tail.read() == (False, [])
    with path.open("a") as file:
        file.write('{"step": 2}\n')
    assert tail.read() == (False, [{"step": 2}])


def test_a_tail_gives_whole_new_lines_and_notices_that_the_file_was_replaced(tmp_path):
    path = tmp_path / "m.jsonl"
    tail = Tail(path)
    assert tail.read() == (False, [])
    path.write_text('{"step": 1}\n{"st')
    assert tail.read() == (True, [{"step": 1}])
    with path.open("a") as file:
        file.write('ep": 2}\n')
    assert tail.read() == (False, [{"step": 2}])
    assert tail.read() == (False, [])
    replacement = tmp_path / "other"
    replacement.write_text(json.dumps({"step": 9}) + "\n")
    replacement.replace(path)
    assert tail.read() == (True, [{"step": 9}])
