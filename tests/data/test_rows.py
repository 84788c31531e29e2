from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from mmcorl.config import ColumnsConfig
from mmcorl.data.bad_rows import BadRow
from mmcorl.data.rows import Source, read_row, suggest_column
from mmcorl.problems import Gold, Problem


def picture(form: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (4, 4)).save(buffer, form)
    return buffer.getvalue()


@pytest.fixture
def source(tmp_path: Path) -> Source:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "a.png").write_bytes(picture())
    return Source(tmp_path / "rows.jsonl")


def refused(row: dict[str, Any], source: Source, number: int = 3) -> BadRow:
    with pytest.raises(BadRow) as caught:
        read_row(row, number, source)
    assert str(caught.value).startswith(f"row {number} of {source.path}: ")
    return caught.value


def test_the_least_a_row_can_be(source: Source):
    assert read_row({"question": "1 + 1?"}, 3, source) == (Problem("3", "1 + 1?"), None)


def test_columns_go_by_their_configured_names(source: Source, tmp_path: Path):
    columns = ColumnsConfig(
        id="n", question="prompt", images="figure", choices="options", answer="label", kind="type"
    )
    row = {
        "n": 7,
        "prompt": "<image>Which?",
        "figure": "pictures/a.png",
        "options": ["one", "two"],
        "label": "B",
        "type": "text",
        "question": "another",
    }
    problem, gold = read_row(row, 0, Source(source.path, columns))
    assert problem == Problem("7", "<image>Which?", (tmp_path / "pictures/a.png",), ("one", "two"), "text")
    assert gold == Gold("B")


def test_null_columns_are_left_out(source: Source):
    row = {
        "id": "x",
        "question": "q",
        "images": ["nowhere.png"],
        "choices": ["1", "2"],
        "answer": "2",
        "kind": "text",
    }
    columns = ColumnsConfig(id=None, images=None, choices=None, answer=None, kind=None)
    assert read_row(row, 5, Source(source.path, columns)) == (Problem("5", "q"), None)


@pytest.mark.parametrize(
    "stored",
    [
        picture(),
        {"bytes": picture(), "path": None},
        {"bytes": picture(), "path": "nowhere.png"},
        base64.b64encode(picture()).decode(),
        "data:image/png;base64," + base64.b64encode(picture()).decode(),
    ],
)
def test_encoded_images(source: Source, stored: object):
    for images in (stored, [stored]):
        problem, _ = read_row({"question": "q", "images": images}, 0, source)
        assert problem.images == (picture(),)


@pytest.mark.parametrize("form", ["JPEG", "GIF", "WEBP"])
def test_base64_is_told_from_paths_by_how_it_begins(source: Source, form: str):
    problem, _ = read_row({"question": "q", "images": base64.b64encode(picture(form)).decode()}, 0, source)
    assert problem.images == (picture(form),)


def test_images_by_path_are_relative_to_the_file_or_folder(source: Source, tmp_path: Path):
    for stored in (
        "pictures/a.png",
        {"bytes": None, "path": "pictures/a.png"},
        str(tmp_path / "pictures/a.png"),
    ):
        problem, _ = read_row({"question": "q", "images": [stored, stored]}, 0, source)
        assert problem.images == (tmp_path / "pictures/a.png",) * 2
    problem, _ = read_row({"question": "q", "images": "a.png"}, 0, Source(tmp_path / "pictures"))
    assert problem.images == (tmp_path / "pictures/a.png",)


@pytest.mark.parametrize("nothing", [None, "", []])
def test_rows_without_an_image(source: Source, nothing: object):
    assert read_row({"question": "q", "images": nothing}, 0, source)[0].images == ()


@pytest.mark.parametrize(
    ("images", "reason"),
    [
        ("pictures/b.png", "image file missing"),
        (["pictures/a.png", "pictures"], "image file missing"),
        ("x" * 5000, "image file missing"),
        ("https://example.org/a.png", "image is a URL"),
        ("data:image/png;base64,AAA", "broken base64 image"),
        ("iVBORw0KGgo(", "broken base64 image"),
        ("data:image/png;base64,é", "broken base64 image"),
        (3, "not an image"),
        ([None], "not an image"),
        ([""], "not an image"),
        (b"", "not an image"),
        ({"bytes": None, "path": None}, "not an image"),
    ],
)
def test_images_that_are_none(source: Source, images: object, reason: str):
    error = refused({"question": "q", "images": images}, source)
    assert error.reason == reason
    assert len(str(error)) < 600


def test_a_missing_image_names_its_file(source: Source, tmp_path: Path):
    message = str(refused({"question": "q", "images": "pictures/b.png"}, source))
    assert str(tmp_path / "pictures/b.png") in message
    assert f"`images` are relative to {tmp_path}" in message


def test_image_markers_stay_in_the_question(source: Source):
    row = {"question": "<image> and <image>?", "images": ["pictures/a.png"] * 3}
    assert read_row(row, 0, source)[0].question == "<image> and <image>?"
    error = refused(row | {"images": "pictures/a.png"}, source)
    assert error.reason == "more <image> markers than images"
    assert "2 <image> markers in the question for 1 images" in str(error)


def test_markers_without_an_image_column_name_the_column(source: Source):
    message = str(refused({"question": "<image>?", "image_path": "pictures/a.png"}, source))
    assert "set data.train.columns.images=image_path" in message


def test_kinds(source: Source):
    for row, kind in (
        ({}, "math"),
        ({"kind": None}, "math"),
        ({"choices": ["a", "b"]}, "choice"),
        ({"choices": []}, "math"),
        ({"choices": None}, "math"),
        ({"kind": "code"}, "code"),
        ({"kind": "choice"}, "choice"),
    ):
        assert read_row({"question": "q", **row}, 0, source)[0].kind == kind
    assert "kind='maths' (str) is none of math, choice, text, code" in str(
        refused({"question": "q", "kind": "maths"}, source)
    )
    assert refused({"question": "q", "kind": ["math"]}, source).reason == "unknown answer kind"


@pytest.mark.parametrize(
    "choices", ['["a", "b"]', "A. 1; B. 2", [1, 2], ["a", None], {"A": "1", "B": "2"}, 4]
)
def test_choices_are_lists_of_text(source: Source, choices: object):
    error = refused({"question": "q", "choices": choices}, source)
    assert error.reason == "choices are not a list of strings"
    assert "the column `choices` holds" in str(error)


@pytest.mark.parametrize("number", [1, 27])
def test_choices_have_letters_to_choose_from(source: Source, number: int):
    assert f"lists {number} options; a choice has 2 to 26" in str(
        refused({"question": "q", "choices": ["x"] * number}, source)
    )


@pytest.mark.parametrize(
    ("stored", "answer"),
    [
        ("<answer> 3 </answer>", "<answer> 3 </answer>"),
        (" 7\n", " 7\n"),
        (0, "0"),
        (27.0, "27.0"),
        (True, "true"),
        ([1, 2], "[1, 2]"),
    ],
)
def test_golds_are_kept_as_they_stand(source: Source, stored: object, answer: str):
    assert read_row({"question": "q", "answer": stored}, 0, source)[1] == Gold(answer)


@pytest.mark.parametrize("stored", [None, "", "  ", float("nan")])
def test_rows_without_gold(source: Source, stored: object):
    assert read_row({"question": "q", "answer": stored}, 0, source)[1] is None


@pytest.mark.parametrize("stored", [None, True, 1.5, "", ["a"]])
def test_ids_are_text_or_integers(source: Source, stored: object):
    assert refused({"id": stored, "question": "q"}, source).reason == "id is no text or integer"


@pytest.mark.parametrize("stored", [None, 3, [{"role": "user", "content": "q"}]])
def test_questions_are_text(source: Source, stored: object):
    assert refused({"question": stored}, source).reason == "question is not text"


@pytest.mark.parametrize("column", ["id", "question", "answer"])
def test_texts_are_whole_characters(source: Source, column: str):
    error = refused({"question": "q", column: "half of \ud83d"}, source)
    assert error.reason == "text is not Unicode"
    assert r"half of \ud83d" in str(error)


def test_a_question_may_be_all_image(source: Source):
    assert read_row({"question": "", "images": "pictures/a.png"}, 0, source)[0].question == ""
    assert refused({"question": " "}, source).reason == "empty question"


@pytest.mark.parametrize(
    ("configured", "present", "suggested"),
    [
        ("question", ["solution", "problem", "answer"], "problem"),
        ("question", ["Question", "answer"], "Question"),
        ("question", ["source", "questions"], "questions"),
        ("promt", ["problem", "prompt"], "prompt"),
        ("q", ["problem", "x"], "problem"),
    ],
)
def test_the_nearest_column(configured: str, present: list[str], suggested: str):
    source = Source(Path("f"), ColumnsConfig(question=configured), prefix="data.eval.")
    hint = suggest_column("question", present, source)
    assert (
        hint
        == f"; set data.eval.columns.question={suggested}, the nearest of its columns {', '.join(present)}"
    )
    assert f"no column `{configured}`{hint}" in str(refused(dict.fromkeys(present), source))


def test_without_a_near_column_all_are_listed():
    source = Source(Path("f"), prefix="--")
    assert (
        suggest_column("question", ["a", "b"], source)
        == "; set --columns.question to one of its columns a, b"
    )
    assert suggest_column("question", ["question"], source) == ""
