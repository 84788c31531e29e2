from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from mmcorl.config import ColumnsConfig
from mmcorl.data.leaks import Contents
from mmcorl.data.rows import Source
from mmcorl.data.survey import percentile, survey
from mmcorl.errors import MmcorlError
from mmcorl.graders import Grader
from mmcorl.problems import Problem


def source(folder: Path, rows: list[dict[str, object]], columns: ColumnsConfig | None = None) -> Source:
    path = folder / "rows.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return Source(path, columns or ColumnsConfig(), prefix="--")


def test_rows_are_counted(tmp_path: Path):
    Image.new("RGB", (4, 4)).save(tmp_path / "a.png")
    Image.new("RGB", (4, 4), "red").save(tmp_path / "b.png")
    counts = survey(
        source(
            tmp_path,
            [
                {"id": "1", "question": "q", "images": "a.png", "answer": "1"},
                {"id": "2", "question": "q", "images": "a.png", "answer": "1"},
                {"id": "3", "question": "q", "images": "b.png"},
                {"id": "4", "question": "q", "choices": ["x", "y"], "answer": "A"},
                {"id": "5", "question": "q", "choices": ["y", "x"], "answer": "A"},
                {"id": "5", "question": "q"},
                {"id": "6", "question": "q", "images": "none.png"},
                {"id": "7", "question": "q", "images": "gone.png"},
                {"id": "8", "question": "q", "images": "rows.jsonl"},
                {"id": "9"},
            ],
        )
    )
    assert (counts.rows, counts.kept) == (10, 5)
    assert counts.refused == {
        "image file missing": 2,
        "duplicate id": 1,
        "unreadable image": 1,
        "no question column": 1,
    }
    assert "row 6 of" in counts.examples["image file missing"]
    assert "row 8 of" in counts.examples["unreadable image"]
    assert (counts.multiple_choice, counts.with_images, counts.without_gold, counts.repeated) == (2, 3, 1, 1)
    table = "\n".join(counts.lines())
    assert "kept                                       5   50.0%" in table
    assert "  multiple choice                          2   40.0%" in table


def test_a_refused_row_leaves_its_id_free(tmp_path: Path):
    counts = survey(source(tmp_path, [{"id": "1"}, {"id": "1", "question": "q"}]))
    assert counts.kept == 1
    assert list(counts.refused) == ["no question column"]


def test_nothing_to_count(tmp_path: Path):
    counts = survey(source(tmp_path, []))
    assert counts.rows == 0
    assert list(counts.lines())


def test_a_named_column_that_is_nowhere(tmp_path: Path):
    with pytest.raises(MmcorlError, match=r"has no column `label`; set --columns\.answer="):
        survey(source(tmp_path, [{"question": "q", "answer": "1"}], ColumnsConfig(answer="label")))


def test_golds_that_no_grader_reads(tmp_path: Path):
    rows = [
        {"question": "q", "answer": "3"},
        {"question": "q", "answer": "?"},
        {"question": "q", "choices": ["red", "blue"], "answer": "blue"},
        {"question": "q", "choices": ["red", "blue"], "answer": "green"},
        {"question": "q"},
    ]
    with Grader() as grader:
        counts = survey(source(tmp_path, rows), grader)
    assert (counts.unread_gold, counts.without_gold) == (2, 1)
    assert counts.unread_example.endswith("rows.jsonl: '?'")
    assert survey(source(tmp_path, rows)).unread_gold is None


def test_lengths_and_what_the_model_cannot_take(tmp_path: Path):
    def length(problem: Problem) -> int:
        if problem.question == "bad":
            raise MmcorlError("too odd")
        return len(problem.question)

    rows = [{"question": "x" * n} for n in range(1, 101)] + [{"question": "bad"}]
    counts = survey(source(tmp_path, rows), prompt_length=length)
    assert counts.refused == {"the model cannot take it": 1}
    table = "\n".join(counts.lines())
    assert "50 % have at most                       50" in table
    assert "longest                                100" in table


def test_percentiles_are_values_of_the_list():
    assert [percentile([5, 1, 9], p) for p in (1, 33, 34, 50, 67, 99, 100)] == [1, 1, 5, 5, 9, 9, 9]


def test_rows_of_a_tested_set(tmp_path: Path):
    red, green, blue = (Image.new("RGB", (4, 4), colour) for colour in ("red", "green", "blue"))
    red.save(tmp_path / "red.png")
    red.save(tmp_path / "same.bmp")
    blue.save(tmp_path / "blue.png")
    tested = Contents()
    tested.add(Problem("1", "<image>Find x.", (red,)), [red])
    tested.add(Problem("2", "What is 2 + 2?"), [])
    tested.add(Problem("3", "Which?", ()), [green])
    rows = [
        {"question": "find  X.", "images": "same.bmp"},
        {"question": "How long is it?", "images": "red.png"},
        {"question": "Find x.", "images": "blue.png"},
        {"question": "What is 2 + 2?"},
        {"question": "What is 2 + 3?"},
    ]
    counts = survey(source(tmp_path, rows), tested=tested)
    assert counts.overlaps == {"question and image": 1, "image": 1, "words": 1, "question": 1}
    assert counts.leaks == 3
    assert "row 0 of" in counts.overlap_examples["question and image"]
    assert "words alone, with another image          1   20.0%" in "\n".join(counts.lines())
    assert survey(source(tmp_path, rows)).leaks == 0
