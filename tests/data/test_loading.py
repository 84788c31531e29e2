from __future__ import annotations

import gzip
import io
import json
import logging
from pathlib import Path
from typing import Any

import datasets
import pytest
from PIL import Image

from mmcorl.config import DataConfig
from mmcorl.data.loading import LoadedData, load_problems
from mmcorl.data.scenes import scenes
from mmcorl.data.storage import HEADER_FILE, write_problems
from mmcorl.errors import MmcorlError
from mmcorl.problems import Gold, Problem

ROWS = [
    {"id": "a", "question": "<image>How many?", "images": ["red.png"], "answer": "3"},
    {"id": "b", "question": "Which?", "images": None, "choices": ["one", "two"], "answer": "B"},
    {"id": "c", "question": "Why?", "images": [], "choices": None, "answer": None},
]
PICTURE = Image.new("RGB", (6, 4), (255, 0, 0))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    PICTURE.save(tmp_path / "red.png")
    return tmp_path


def write_lines(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), encoding="utf-8")
    return path


def load(path: Path, require_gold: bool = False, **settings: Any) -> LoadedData:
    config = DataConfig.model_validate({"path": str(path), **settings})
    return load_problems(config, "data.eval", require_gold)


def complaint(path: Path, require_gold: bool = False, **settings: Any) -> str:
    with pytest.raises(MmcorlError) as caught:
        load(path, require_gold, **settings)
    return str(caught.value)


def expected(image: Path | bytes) -> LoadedData:
    problems = [
        Problem("a", "<image>How many?", (image,)),
        Problem("b", "Which?", (), ("one", "two"), "choice"),
        Problem("c", "Why?"),
    ]
    return LoadedData(problems, {"a": Gold("3"), "b": Gold("B")})


def test_a_row_a_line(folder: Path):
    path = write_lines(folder / "rows.jsonl", ROWS)
    assert load(path) == expected(folder / "red.png")


def test_lines_may_be_blank_and_begin_with_a_mark(folder: Path):
    lines = "\n\n".join(json.dumps(row) for row in ROWS)
    (folder / "rows.jsonl").write_text(f"\ufeff\n{lines}", encoding="utf-8")
    assert load(folder / "rows.jsonl") == expected(folder / "red.png")


@pytest.mark.parametrize("indent", [None, 2])
def test_one_list_of_rows(folder: Path, indent: int | None):
    (folder / "rows.json").write_text(json.dumps(ROWS, indent=indent))
    assert load(folder / "rows.json") == expected(folder / "red.png")


def test_a_json_file_may_hold_a_row_a_line(folder: Path):
    assert load(write_lines(folder / "rows.json", ROWS)) == expected(folder / "red.png")


@pytest.mark.parametrize("indent", [None, 2])
def test_one_object_of_rows(folder: Path, indent: int | None):
    (folder / "rows.json").write_text(json.dumps({row["id"]: row for row in ROWS}, indent=indent))
    assert load(folder / "rows.json") == expected(folder / "red.png")


def test_gzipped_lines(folder: Path):
    lines = write_lines(folder / "rows.jsonl", ROWS).read_bytes()
    (folder / "rows.jsonl.gz").write_bytes(gzip.compress(lines))
    assert load(folder / "rows.jsonl.gz") == expected(folder / "red.png")
    (folder / "rows.jsonl.gz").write_bytes(gzip.compress(lines)[:40])
    assert "is not a whole gzip file" in complaint(folder / "rows.jsonl.gz")


def test_images_with_their_metadata(folder: Path):
    write_lines(folder / "metadata.jsonl", [{"file_name": "red.png", "question": "How many?", "answer": "3"}])
    data = load(folder, columns={"images": "image"})
    assert data.problems == [Problem("0", "How many?", (folder / "red.png",))]
    assert data.golds == {"0": Gold("3")}


def test_parquet_with_paths(folder: Path):
    columns = {
        name: [row.get(name) for row in ROWS] for name in ("id", "question", "images", "choices", "answer")
    }
    datasets.Dataset.from_dict(columns).to_parquet(folder / "rows.parquet")
    assert load(folder / "rows.parquet") == expected(folder / "red.png")


def with_features() -> datasets.Dataset:
    features = datasets.Features(
        {
            "question": datasets.Value("string"),
            "image": datasets.Image(),
            "choices": [datasets.Value("string")],
            "answer": datasets.ClassLabel(names=["A", "B"]),
        }
    )
    rows = [
        {"question": "Which?", "image": PICTURE, "choices": ["x", "y"], "answer": 1},
        {"question": "Which?", "image": None, "choices": ["x", "y"], "answer": None},
    ]
    return datasets.Dataset.from_list(rows, features=features)


@pytest.mark.parametrize("form", ["parquet", "saved"])
def test_image_and_label_columns_of_datasets(tmp_path: Path, form: str):
    path = tmp_path / f"rows.{form}"
    if form == "parquet":
        with_features().to_parquet(path)
    else:
        with_features().save_to_disk(path)
    data = load(path, columns={"images": "image"})
    first, second = data.problems
    assert isinstance(first.images[0], bytes)
    assert Image.open(io.BytesIO(first.images[0])).tobytes() == PICTURE.tobytes()
    assert (first.id, first.choices, first.kind) == ("0", ("x", "y"), "choice")
    assert second.images == ()
    assert data.golds == {"0": Gold("B")}


def test_a_prepared_folder(folder: Path):
    pairs = [
        (problem, expected(folder / "red.png").golds.get(problem.id))
        for problem in expected(folder / "red.png").problems
    ]
    write_problems(pairs, folder / "prepared")
    assert load(folder / "prepared") == expected((folder / "red.png").read_bytes())


def test_scenes():
    config = DataConfig.model_validate({"scenes": {"size": 6, "choice_share": 0.5}, "limit": 4})
    assert config.scenes is not None
    data = load_problems(config, require_gold=True)
    assert [problem.id for problem in data.problems] == [problem.id for problem, _ in scenes(config.scenes)][
        :4
    ]
    assert data.golds == {problem.id: gold for problem, gold in scenes(config.scenes)[:4]}


def test_a_limit_takes_the_first_and_reads_no_further(folder: Path):
    path = write_lines(folder / "rows.jsonl", [*ROWS, "not a row"])
    assert [problem.id for problem in load(path, limit=2).problems] == ["a", "b"]
    assert "row 3 of" in complaint(path)


def test_a_path_that_does_not_exist(tmp_path: Path):
    message = complaint(tmp_path / "none.jsonl")
    assert message.startswith(f"data.eval.path: {tmp_path}/none.jsonl does not exist; name a prepared folder")


def test_forms_that_are_not_known(tmp_path: Path):
    (tmp_path / "rows.csv").write_text("question\n1")
    assert "rows.csv is of no known form" in complaint(tmp_path / "rows.csv")
    (tmp_path / "rows.csv").unlink()
    assert "cannot be read as a data set" in complaint(tmp_path)


def test_a_dataset_of_several_splits(tmp_path: Path):
    one = datasets.Dataset.from_list([{"question": "q"}])
    datasets.DatasetDict({"train": one, "test": one}).save_to_disk(tmp_path / "both")
    assert "both has the splits test, train; name the folder of one" in complaint(tmp_path / "both")
    assert len(load(tmp_path / "both" / "train").problems) == 1


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json"])
@pytest.mark.parametrize("text", ["", "[]", "\n \n"])
def test_an_empty_data_set(tmp_path: Path, name: str, text: str):
    (tmp_path / name).write_text(text)
    assert complaint(tmp_path / name) == f"data.eval.path={tmp_path / name} holds no problems"


def test_an_empty_parquet_file(tmp_path: Path):
    datasets.Dataset.from_dict({"question": []}).to_parquet(tmp_path / "rows.parquet")
    assert "holds no problems" in complaint(tmp_path / "rows.parquet")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('{"question": "q"}\n{"question"', "line 2, is not one JSON object"),
        ('{"question": "q"}\n{"question": ' + "[" * 100_000, "line 2, is nested too deeply"),
        ("[" * 100_000, "nested too deeply"),
        ('[{"question": "q"},\n', "is not valid JSON in line"),
        ('{\n "1": {"question": "q"},\n}', "is not valid JSON in line"),
        ('[{"question": "q"}, 3]', "row 1 of"),
        ('"text"', "is a str, not an object"),
    ],
)
def test_broken_json(tmp_path: Path, text: str, part: str):
    (tmp_path / "rows.json").write_text(text)
    message = complaint(tmp_path / "rows.json")
    assert part in message
    assert str(tmp_path / "rows.json") in message


def test_text_that_is_not_utf8(tmp_path: Path):
    (tmp_path / "rows.jsonl").write_bytes('{"question": "é"}'.encode("latin-1"))
    assert "rows.jsonl is not UTF-8 text" in complaint(tmp_path / "rows.jsonl")


def test_broken_parquet_and_saved_folders(tmp_path: Path):
    (tmp_path / "rows.parquet").write_bytes(b"PAR1 not really PAR1")
    assert "rows.parquet is not a whole Parquet file" in complaint(tmp_path / "rows.parquet")
    with_features().save_to_disk(tmp_path / "saved")
    (tmp_path / "saved" / "data-00000-of-00001.arrow").write_bytes(b"cut")
    assert "saved is not a whole `save_to_disk` folder" in complaint(tmp_path / "saved")
    (tmp_path / "prepared").mkdir()
    (tmp_path / "prepared" / HEADER_FILE).write_text("{}")
    assert "data.eval.path: " in complaint(tmp_path / "prepared")


def test_the_first_bad_row_ends_loading(folder: Path):
    path = write_lines(folder / "rows.jsonl", [*ROWS, {"question": "q", "choices": "a, b"}])
    assert f"row 3 of {path}: the column `choices` holds 'a, b' (str)" in complaint(path)


def test_a_question_column_of_another_name(folder: Path):
    path = write_lines(folder / "rows.jsonl", [{"problem": "q", "answer": "1"}])
    assert "no column `question`; set data.eval.columns.question=problem" in complaint(path)
    assert load(path, columns={"question": "problem"}).golds == {"0": Gold("1")}


@pytest.mark.parametrize("field", ["id", "images", "choices", "answer", "kind"])
def test_a_named_column_that_is_nowhere(folder: Path, field: str):
    path = write_lines(
        folder / "rows.jsonl", [{"question": "q", "answers": "1"}, {"question": "r", "option": []}]
    )
    message = complaint(path, columns={field: "optoin"})
    assert f"has no column `optoin`; set data.eval.columns.{field}=option, the nearest" in message


def test_a_named_column_may_be_absent_in_some_rows(folder: Path):
    path = write_lines(folder / "rows.jsonl", [{"question": "q"}, {"question": "r", "options": ["1", "2"]}])
    assert [p.choices for p in load(path, columns={"choices": "options"}).problems] == [None, ("1", "2")]


def test_image_columns_that_are_not_read_are_announced(folder: Path, caplog: pytest.LogCaptureFixture):
    path = write_lines(folder / "rows.jsonl", [{"question": "q", "image_path": "red.png"}])
    with caplog.at_level(logging.WARNING):
        load(path)
        assert (
            "without the images of its column image_path; set data.eval.columns.images=image_path"
            in caplog.text
        )
        caplog.clear()
        load(path, columns={"images": "image_path"})
        load(path, columns={"images": None})
        assert not caplog.records


def test_ids_that_are_not_unique(folder: Path):
    path = write_lines(
        folder / "rows.jsonl",
        [{"id": 1, "question": "q"}, {"id": 2, "question": "r"}, {"id": "1", "question": "s"}],
    )
    message = complaint(path)
    assert f"rows 0 and 2 of {path} have the same id 1" in message
    assert "data.eval.columns.id" in message
    assert [problem.id for problem in load(path, columns={"id": None}).problems] == ["0", "1", "2"]


def test_answers_where_they_are_asked_for(folder: Path):
    path = write_lines(folder / "rows.jsonl", ROWS)
    assert f"data.eval: row 2 of {path} has no answer in the column `answer`" in complaint(
        path, require_gold=True
    )
    assert len(load(path, require_gold=True, limit=2).golds) == 2
