import pytest

from mmcorl.errors import MmcorlError
from mmcorl.files import read_lines, replacing, stream_lines, write_whole


def test_a_line_that_a_killed_process_began_is_left_out(tmp_path):
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b'{"step": 1}\n{"step": 2}\n{"step"')
    assert read_lines(path) == [{"step": 1}, {"step": 2}]
    path.write_bytes(b'{"step": 1}')
    assert read_lines(path) == []
    assert read_lines(tmp_path / "none.jsonl") == []


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
