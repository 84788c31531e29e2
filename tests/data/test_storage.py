from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import datasets
import pyarrow.parquet as pq
import pytest
from PIL import Image

from mmcorl.data import storage
from mmcorl.data.storage import HEADER_FILE, ROWS_FILE, read_header, read_problems, write_problems
from mmcorl.errors import MmcorlError
from mmcorl.problems import Gold, Problem

RED = Image.new("RGB", (6, 4), (255, 0, 0))


def png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def text_problems(count: int) -> Iterator[tuple[Problem, Gold]]:
    return ((Problem(str(number), f"What is {number}?"), Gold(str(number))) for number in range(count))


def test_what_was_written_is_read(tmp_path: Path):
    file = tmp_path / "red.png"
    file.write_bytes(png(RED))
    pairs = [
        (Problem("open", "How much is it?"), Gold("<answer> 3 </answer>")),
        (Problem("bytes", "<image>What?", (png(RED), png(RED))), None),
        (Problem("file", "Which colour?", (file,), ("red", "blue"), "choice"), Gold("A")),
        (Problem("drawn", "Which word?", (RED,), None, "text"), Gold("rot")),
    ]
    header = write_problems(iter(pairs), tmp_path / "out", source="made here")
    assert (header.count, header.source) == (4, "made here")
    assert read_header(tmp_path / "out") == header

    problems, golds = zip(*read_problems(tmp_path / "out"), strict=True)
    assert list(golds) == [gold for _, gold in pairs]
    for problem, (original, _) in zip(problems, pairs, strict=True):
        assert (problem.id, problem.question) == (original.id, original.question)
        assert (problem.choices, problem.kind) == (original.choices, original.kind)
        assert [type(image) for image in problem.images] == [bytes] * len(original.images)
    assert problems[2].images[0] == file.read_bytes()
    assert Image.open(io.BytesIO(problems[3].images[0])).tobytes() == RED.tobytes()


def test_datasets_reads_the_parquet_file_with_images(tmp_path: Path):
    write_problems([(Problem("a", "q", (RED,)), Gold("1")), (Problem("b", "q"), None)], tmp_path / "out")
    rows = datasets.load_dataset(
        "parquet",
        data_files=str(tmp_path / "out" / ROWS_FILE),
        split="train",
        cache_dir=str(tmp_path / "cache"),
    )
    assert list(rows.features) == ["id", "question", "images", "choices", "kind", "answer", "program"]
    assert rows[0]["images"][0].tobytes() == RED.tobytes()
    assert rows[1]["images"] == []
    assert rows[1]["answer"] is None and rows[1]["program"] is None


@pytest.mark.parametrize("mode", ["RGBA", "CMYK", "L", "I;16", "F", "P", "1", "LA"])
def test_drawn_images_of_any_mode_can_be_written(mode: str, tmp_path: Path):
    write_problems([(Problem("a", "q", (Image.new(mode, (6, 4)),)), None)], tmp_path / "out")
    ((problem, _),) = read_problems(tmp_path / "out")
    (image,) = problem.images
    assert isinstance(image, bytes)
    assert Image.open(io.BytesIO(image)).size == (6, 4)


def test_problems_are_written_as_they_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(storage, "GROUP_ROWS", 10)
    monkeypatch.setattr(storage, "GROUP_BYTES", 5 * len(png(RED)))
    write_problems(text_problems(35), tmp_path / "by_rows")
    write_problems(((Problem(str(n), "q", (RED,)), None) for n in range(12)), tmp_path / "by_bytes")
    assert pq.read_metadata(tmp_path / "by_rows" / ROWS_FILE).num_row_groups == 4
    assert pq.read_metadata(tmp_path / "by_bytes" / ROWS_FILE).num_row_groups == 3
    assert [problem.id for problem, _ in read_problems(tmp_path / "by_rows")] == [str(n) for n in range(35)]


def test_a_folder_that_fails_midway_does_not_appear(tmp_path: Path):
    def breaks() -> Iterator[tuple[Problem, None]]:
        yield Problem("a", "q"), None
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_problems(breaks(), tmp_path / "deep" / "out")
    assert list((tmp_path / "deep").iterdir()) == []


def test_folders_are_not_written_over(tmp_path: Path):
    write_problems(text_problems(2), tmp_path / "out")
    with pytest.raises(MmcorlError, match="exists already"):
        write_problems(text_problems(3), tmp_path / "out")
    assert read_header(tmp_path / "out").count == 2
    (tmp_path / "file").touch()
    with pytest.raises(MmcorlError, match="exists already"):
        write_problems(text_problems(3), tmp_path / "file")
    with pytest.raises(MmcorlError, match="cannot be written"):
        write_problems(text_problems(3), tmp_path / "file" / "out")
    (tmp_path / "empty").mkdir()
    assert write_problems(text_problems(3), tmp_path / "empty").count == 3


def test_nothing_and_repeated_ids_are_refused(tmp_path: Path):
    with pytest.raises(MmcorlError, match="no problems to write"):
        write_problems([], tmp_path / "out")
    with pytest.raises(MmcorlError, match="two problems have the id same"):
        write_problems([(Problem("same", "q"), None), (Problem("same", "r"), None)], tmp_path / "out")
    with pytest.raises(MmcorlError, match="image of problem a cannot be read"):
        write_problems([(Problem("a", "q", (tmp_path / "none.png",)), None)], tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_damaged_and_newer_folders_are_refused(tmp_path: Path):
    folder = tmp_path / "out"
    write_problems(text_problems(3), folder)
    header = json.loads((folder / HEADER_FILE).read_text())

    def refuses(text: str, message: str) -> None:
        (folder / HEADER_FILE).write_text(text)
        with pytest.raises(MmcorlError, match=message):
            list(read_problems(folder))

    refuses(json.dumps(header | {"format_version": 99}), "has format version 99, this mmcorl reads 1")
    refuses(json.dumps(header | {"count": 4}), "should hold 4 problems and holds 3")
    refuses("{", "not a whole prepared folder")
    refuses("[]", "not a whole prepared folder")
    (folder / HEADER_FILE).write_text(json.dumps(header))
    rows = (folder / ROWS_FILE).read_bytes()
    (folder / ROWS_FILE).write_bytes(rows[: len(rows) // 2])
    with pytest.raises(MmcorlError, match="not a whole prepared folder"):
        read_header(folder)
