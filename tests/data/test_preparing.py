from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from mmcorl.config import ColumnsConfig, DataConfig
from mmcorl.data import preparing
from mmcorl.data.loading import load_problems
from mmcorl.data.preparing import Progress, prepare
from mmcorl.data.rows import Source
from mmcorl.data.storage import ROWS_FILE, read_header
from mmcorl.errors import MmcorlError


def rows_file(folder: Path, count: int = 40) -> Path:
    """Rows of which every tenth is none, and two share an id."""
    lines = [
        {
            "id": f"p{number}",
            "question": f"<image>How many {number}?",
            "images": f"{number % 3}.png",
            "answer": number,
        }
        for number in range(count)
    ]
    for number in range(0, count, 10):
        del lines[number]["question"]
    lines[5]["id"] = "p4"
    for colour in range(3):
        Image.new("RGB", (8, 8), (80 * colour, 0, 0)).save(folder / f"{colour}.png")
    (folder / "broken.png").write_bytes((folder / "1.png").read_bytes()[:40])
    lines[7]["images"] = "broken.png"
    path = folder / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


@pytest.mark.parametrize("workers", [1, 3])
def test_usable_rows_are_written_and_others_counted(tmp_path: Path, workers: int):
    seen: list[Progress] = []
    header = prepare(Source(rows_file(tmp_path)), tmp_path / "out", workers, report=seen.append)
    assert header.count == 34
    assert header.dropped == {"no question column": 4, "duplicate id": 1, "unreadable image": 1}
    assert header == read_header(tmp_path / "out")
    data = load_problems(DataConfig(path=str(tmp_path / "out")))
    kept = [number for number in range(40) if number % 10 and number not in (5, 7)]
    assert [problem.id for problem in data.problems] == [f"p{number}" for number in kept]
    assert data.problems[0].images == ((tmp_path / "1.png").read_bytes(),)
    assert data.golds["p11"].answer == "11"
    assert [progress.rows for progress in seen] == [0, 8, 16, 24, 32, 40]
    assert not list(tmp_path.glob(".out*"))


def test_a_limit_counts_native_rows(tmp_path: Path):
    assert prepare(Source(rows_file(tmp_path)), tmp_path / "out", limit=4).count == 3


class Stop(Exception):
    pass


def interrupted(source: Source, out: Path, after: int) -> None:
    def stop(progress: Progress) -> None:
        if progress.rows >= after:
            raise Stop

    with pytest.raises(Stop):
        prepare(source, out, report=stop)


def test_it_goes_on_where_it_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(preparing, "GROUP_ROWS", 6)
    source = Source(rows_file(tmp_path))
    prepare(source, tmp_path / "whole")
    interrupted(source, tmp_path / "out", 24)
    assert not (tmp_path / "out").exists()

    read: list[int] = []
    stored = preparing._stored_row

    def noted(number: int, *rest: object) -> object:
        read.append(number)
        return stored(number, *rest)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(preparing, "_stored_row", noted)
    prepare(source, tmp_path / "out")
    assert min(read) >= 16  # rows of finished parts are not decoded again
    assert (tmp_path / "out" / ROWS_FILE).read_bytes() == (tmp_path / "whole" / ROWS_FILE).read_bytes()
    assert read_header(tmp_path / "out") == read_header(tmp_path / "whole")


def test_a_repeated_id_is_known_after_a_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(preparing, "GROUP_ROWS", 4)
    path = tmp_path / "rows.jsonl"
    rows = [{"id": number % 20, "question": "q"} for number in range(40)]
    path.write_text("\n".join(map(json.dumps, rows)))
    interrupted(Source(path), tmp_path / "out", 16)
    assert prepare(Source(path), tmp_path / "out").dropped == {"duplicate id": 20}


def test_a_half_written_part_is_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(preparing, "GROUP_ROWS", 6)
    source = Source(rows_file(tmp_path))
    interrupted(source, tmp_path / "out", 24)
    (tmp_path / ".out.unfinished" / "part-00077.parquet").write_bytes(b"PAR1 cut")
    assert prepare(source, tmp_path / "out").count == 34


def test_another_source_does_not_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(preparing, "GROUP_ROWS", 6)
    path = rows_file(tmp_path)
    interrupted(Source(path), tmp_path / "out", 16)
    with pytest.raises(MmcorlError, match="is an unfinished preparation of something else"):
        prepare(Source(path, ColumnsConfig(answer=None)), tmp_path / "out")


KILLED = """
import sys, time
from pathlib import Path
from mmcorl.data import preparing
from mmcorl.data.rows import Source

preparing.GROUP_ROWS = 6
def slow(progress):
    print(progress.rows, flush=True)
    time.sleep(0.05)
preparing.prepare(Source(Path(sys.argv[1])), Path(sys.argv[2]), report=slow)
"""


def test_it_goes_on_after_a_kill(tmp_path: Path):
    path = rows_file(tmp_path, 400)
    command = [sys.executable, "-c", KILLED, str(path), str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        until(process.stdout, 120)
        os.kill(process.pid, signal.SIGKILL)
    assert not (tmp_path / "out").exists()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert int(process.stdout.readline()) >= 96
        process.stdout.read()
    prepare(Source(path), tmp_path / "whole")
    assert read_header(tmp_path / "out") == read_header(tmp_path / "whole")
    pairs = [load_problems(DataConfig(path=str(tmp_path / name))) for name in ("out", "whole")]
    assert pairs[0] == pairs[1]


def until(lines: Iterator[str], rows: int) -> None:
    for line in lines:
        if int(line) >= rows:
            return
    raise AssertionError("it ended before it could be killed")


def test_nothing_usable(tmp_path: Path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"prompt": "q"}\n')
    with pytest.raises(
        MmcorlError,
        match=r"none of the 1 rows of .* is a problem; the first: row 0 of .*columns\.question=prompt",
    ):
        prepare(Source(path), tmp_path / "out")
    assert [file.name for file in tmp_path.iterdir()] == ["rows.jsonl"]


def test_what_cannot_be_opened_leaves_nothing(tmp_path: Path):
    with pytest.raises(MmcorlError, match="does not exist"):
        prepare(Source(tmp_path / "none.jsonl"), tmp_path / "out")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(MmcorlError, match="exists already"):
        prepare(Source(rows_file(tmp_path)), tmp_path / "full")
    assert not list(tmp_path.glob(".*"))


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(MmcorlError, match=r"unfinished cannot be written .* another OUT"):
        prepare(Source(rows_file(tmp_path)), tmp_path / "file" / "out")


def test_a_named_column_that_is_nowhere(tmp_path: Path):
    with pytest.raises(MmcorlError, match="has no column `label`"):
        prepare(Source(rows_file(tmp_path), ColumnsConfig(answer="label")), tmp_path / "out")
