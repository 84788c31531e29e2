from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from mmcorl.config import ColumnsConfig
from mmcorl.data.rows import Source
from mmcorl.data.survey import survey
from mmcorl.errors import MmcorlError


def source(folder: Path, rows: list[dict[str, object]], columns: ColumnsConfig | None = None) -> Source:
    path = folder / "rows.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return Source(path, columns or ColumnsConfig(), prefix="--")


def test_rows_are_counted(tmp_path: Path):
    Image.new("RGB", (4, 4)).save(tmp_path / "a.png")
    Image.new("RGB", (4, 4)).save(tmp_path / "b.png")
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
