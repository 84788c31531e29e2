import resource

import pytest

from mmcorl.errors import MmcorlError
from mmcorl.files import Lines, read_lines, replacing, stream_lines, write_whole


def test_a_line_that_a_killed_process_began_is_left_out(tmp_path):
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b'{"step": 1}\n{"step": 2}\n{"step"')
    assert read_lines(path) == [{"step": 1}, {"step": 2}]
    path.write_bytes(b'{"step": 1}')
    assert read_lines(path) == []
    assert read_lines(tmp_path / "none.jsonl") == []


def test_a_line_is_whole_and_reads_back_whatever_it_holds(tmp_path):
    path = tmp_path / "new" / "lines.jsonl"
    with Lines(path) as lines:
        lines.append([{"text": "Äpfel \ud800\n\u2028"}, {"text": ""}])
        assert read_lines(path) == [{"text": "Äpfel \ud800\n\u2028"}, {"text": ""}]
    path.write_bytes(path.read_bytes() + b'{"te')
    with Lines(path) as lines:
        lines.append([{"text": "after"}])
    assert [line["text"] for line in read_lines(path)] == ["Äpfel \ud800\n\u2028", "", "after"]


def test_a_full_disk_is_one_clear_error_when_the_file_is_closed_too(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with (
            pytest.raises(MmcorlError, match=r"cannot be written \(File too large\).* another --out"),
            Lines(tmp_path / "lines.jsonl", "--out") as lines,
        ):
            lines.append([{"text": "x" * 200}])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_damage_before_the_end_is_told_when_it_is_reached(tmp_path):
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b'{"step": 1}\nbroken\n{"step": 3}\n')
    lines = stream_lines(path)
    assert next(lines) == {"step": 1}
    with pytest.raises(MmcorlError, match="line 2 is not JSON"):
        next(lines)


def test_a_file_is_replaced_when_its_successor_is_whole(tmp_path):
    path = tmp_path / "summary.json"
    write_whole(path, "old")
    with pytest.raises(RuntimeError), replacing(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]
