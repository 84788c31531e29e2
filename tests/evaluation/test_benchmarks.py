"""Declarations read rows of the public benchmarks, in their original schema, as the right problems with the right golds."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from PIL import Image

from mmcorl.errors import MmcorlError
from mmcorl.evaluation.benchmarks import benchmark_names, chosen, load_declaration, suites
from mmcorl.evaluation.declaration import Declaration
from mmcorl.evaluation.loading import LoadedBenchmark, load_benchmark
from mmcorl.evaluation.reading import Item
from mmcorl.graders import Grader

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture(scope="module")
def grader():
    with Grader() as grader:
        yield grader


@pytest.fixture
def read(tmp_path, grader):
    """Rows of ours, in a benchmark's schema, as its items; `image.png` is a picture they can name."""

    def read(name: str, *rows: dict, **changes) -> LoadedBenchmark:
        Image.new("RGB", (40, 30), "white").save(tmp_path / "image.png")
        path = tmp_path / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return load_benchmark(load_declaration(name).model_copy(update=changes), grader, path)

    return read


def gold_text(item: Item) -> str:
    assert item.record.choices is not None and item.record.gold is not None
    return item.record.choices["ABCDEFGHIJ".index(item.record.gold)]


def test_every_shipped_declaration_is_whole():
    names = benchmark_names()
    declarations = [load_declaration(name) for name in names]
    assert [d.name for d in declarations] == names
    assert {name for members in suites().values() for name in members} <= set(names)
    assert len({d.digest for d in declarations}) == len(names)
    assert [d.name for d in chosen(["vlm4"], ["gsm8k", "wemath"])] == [*suites()["vlm4"], "gsm8k"]


def test_unknown_names_are_met_with_the_nearest():
    with pytest.raises(MmcorlError, match="no benchmark 'mathvsta'; the nearest is mathvista"):
        load_declaration("mathvsta")
    with pytest.raises(MmcorlError, match="no suite 'vlm'; the nearest is vlm4"):
        chosen(["vlm"], [])


def test_mathvision(grader):
    loaded = load_benchmark(load_declaration("mathvision"), grader, FIXTURES / "mathvision" / "test.jsonl")
    letters, worded, free = loaded.items
    assert letters.problem.kind == "choice" and letters.problem.choices is None
    assert letters.problem.question.endswith("<image>\nThe options A, B, C, D, E are in the picture.")
    assert letters.record.choices == list("ABCDE") and letters.record.gold == "B"
    assert worded.problem.choices is not None and gold_text(worded) == "$1$"
    assert (free.problem.kind, free.problem.choices, free.record.gold) == ("math", None, "3")
    assert all(len(item.problem.images) == 1 and item.record.images for item in loaded.items)
    assert [item.record.fields["level"] for item in loaded.items] == [2, 4, 3]


def test_mathverse(grader):
    loaded = load_benchmark(load_declaration("mathverse"), grader, FIXTURES / "mathverse" / "testmini.jsonl")
    listed, inlined, in_picture = loaded.items  # the fourth row is text only, which the benchmark leaves out
    assert loaded.dropped == {}
    assert listed.problem.choices == ("Yes", "No") and gold_text(listed) == "No"
    assert inlined.problem.question.endswith("bearing of point B from point C.")
    assert inlined.problem.choices is not None and gold_text(inlined) == "053 ^\\circ T"
    assert in_picture.problem.question == "Answer the question in the picture."
    assert in_picture.record.fields["problem_version"] == "Vision Only"


def test_mathverse_vision_only_is_graded_with_the_options_it_does_not_show(read, grader):
    row = {
        "sample_index": "5", "problem_index": "1", "problem_version": "Vision Only", "question": "", "image": "image.png",
        "answer": "C", "question_type": "multi-choice", "metadata": {"subject": "Plane Geometry"},
        "question_for_eval": "How large is angle CED?\nChoices:\nA:40°\nB:60°\nC:120°",
    }  # fmt: skip
    [item] = read("mathverse", row, row | {"sample_index": "6", "answer": "A\nC"}).items
    assert item.problem.choices is None and item.problem.kind == "choice"
    graded = item.record.problem()
    answer = grader.answer("It is \\boxed{120°}", graded)
    assert grader.correct(answer, grader.read("C", graded), graded)


def test_mathvista(read):
    base = {"pid": "1", "question": "How old?", "image": "image.png", "choices": None, "unit": None, "precision": None,
            "question_type": "free_form", "answer_type": "integer", "metadata": {"task": "figure question answering"}}  # fmt: skip
    loaded = read(
        "mathvista",
        base | {"unit": "years", "answer": "7"},
        base | {"pid": "2", "precision": 1.0, "answer_type": "float", "answer": "0.8"},
        base | {"pid": "3", "choices": ["(c)", "(a)", "(b)"], "answer": "(b)", "answer_type": "text"},
        base | {"pid": "4", "choices": ["50", "15", "50"], "answer": "15", "answer_type": "text"},
        base | {"pid": "5", "answer": "[0, 2, 1]", "answer_type": "list"},
        base | {"pid": "6", "answer": ""},
    )
    years, rounded, letters, repeated, listed = loaded.items
    assert years.problem.question == "How old?\n(Unit: years)"
    assert rounded.problem.question.endswith("Decimal places of the answer: 1.")
    assert rounded.record.fields["precision"] == 1 and "unit" not in rounded.record.fields
    assert gold_text(letters) == "(b)" and gold_text(repeated) == "15"
    assert listed.record.gold == "[0, 2, 1]"
    assert loaded.dropped == {"no gold answer": 1}


def test_wemath_options_of_one_string(read):
    row = {"ID": "2steps_1", "key": "2steps_1", "question": "Which pile?", "image_path": "image.png",
           "knowledge concept": "Triangles", "answer": "G",
           "option": "A. ①, ③; B. ②;C. (2; 3); D. ④; E. ①; F. Cannot be determined; G. No correct answer"}  # fmt: skip
    one, many = read("wemath", row, row | {"key": "2steps_multi", "answer": "C"}).items
    assert gold_text(one) == "No correct answer" and gold_text(many) == "(2; 3)"
    assert [item.problem.id for item in (one, many)] == ["2steps_1/2steps_1", "2steps_1/2steps_multi"]
    assert one.record.fields == {"problem": "2steps_1", "key": "2steps_1", "knowledge": "Triangles"}


def test_mmmu_images_stand_where_they_are_named(read):
    row = {"id": "validation_Math_1", "question": "Is <image 2> like <image 1>?", "question_type": "multiple-choice",
           "options": "['as <image 3>', \"it's not\"]", "answer": "B", "subfield": "Graphs"}  # fmt: skip
    row |= {f"image_{i}": "image.png" if i < 4 else None for i in range(1, 8)}
    [item] = read("mmmu", row).items
    assert item.problem.question == "Is <image> like <image>?" and len(item.problem.images) == 3
    assert item.problem.choices == ("as <image>", "it's not")


def test_mmmu_pro_has_options_to_j(read):
    row = {"id": "test_1", "question": "<image 1> Which?", "image_1": "image.png", "subject": "Math",
           "options": str([f"option {i}" for i in range(10)]), "answer": "J"}  # fmt: skip
    [item] = read("mmmu_pro", row).items
    assert gold_text(item) == "option 9"
    [seen] = read("mmmu_pro_vision", {k: row[k] for k in ("id", "options", "answer", "subject")} | {"image": "image.png", "question": ""}).items  # fmt: skip
    assert seen.problem.choices is None and gold_text(seen) == "option 9"


def test_gpqa_shuffles_by_the_number_of_the_row(read):
    row = {"Question": "Which?", "Correct Answer": "right", "Incorrect Answer 1": "w1", "Incorrect Answer 2": "w2",
           "Incorrect Answer 3": "w3", "High-level domain": "Physics"}  # fmt: skip
    items = read("gpqa_diamond", *({**row, "Record ID": str(i)} for i in range(6))).items
    for number, item in enumerate(items):
        order = ["right", "w1", "w2", "w3"]
        random.Random(number).shuffle(order)
        assert item.problem.choices == tuple(order) and gold_text(item) == "right"
    assert len({item.record.gold for item in items}) > 1


@pytest.mark.parametrize(
    ("name", "file", "golds"),
    [
        ("gsm8k", "gsm8k.jsonl", ["18", "3", "70000"]),
        ("math500", "math500.jsonl", None),
        ("mmlu", "mmlu.jsonl", ["B", "C"]),
    ],
)
def test_text_benchmarks(grader, name, file, golds):
    loaded = load_benchmark(load_declaration(name), grader, FIXTURES / file)
    assert loaded.dropped == {}
    rows = [json.loads(line) for line in (FIXTURES / file).read_text().splitlines()]
    assert [i.record.gold for i in loaded.items] == (golds or [row["answer"] for row in rows])


def test_mmlu_of_the_hub_has_numbers_for_letters(read):
    [item] = read(
        "mmlu", {"question": "?", "subject": "s", "choices": ["w", "x", "y", "z"], "answer": 2}
    ).items
    assert gold_text(item) == "y"


def test_scibench_and_amc_numbers(read, grader):
    unit, bare = read(
        "scibench",
        {
            "problem_text": "How heavy?",
            "answer_number": "-1.49",
            "unit": " $\\mathrm{~kg}$",
            "source": "atkins",
        },
        {"problem_text": "How many?", "answer_number": "+12", "unit": " ", "source": "atkins"},
    ).items
    assert unit.problem.question == "How heavy?\nThe unit of the answer is $\\mathrm{~kg}$."
    assert bare.problem.question == "How many?" and "unit" not in bare.record.fields
    [amc] = read("amc", {"id": 0, "problem": "What is m+n?", "answer": 142.0}).items
    assert amc.record.gold == "142.0"
    assert grader.read("142", amc.problem) == grader.read("142.0", amc.problem)


def test_logicvista_drops_golds_of_several_letters(read):
    row = {
        "id": 1,
        "question": "Which of A, B, C and D?",
        "image": "image.png",
        "skill": "deductive",
        "answer": "C",
    }
    loaded = read("logicvista", row, row | {"id": 2, "answer": "A, C"})
    assert [i.record.gold for i in loaded.items] == ["C"]
    assert loaded.dropped == {"gold answer cannot be read": 1}


def test_the_same_rows_have_the_same_fingerprint_and_others_another(read):
    row = {"question": "1+1?", "answer": "#### 2"}
    first = read("gsm8k", row).fingerprint
    assert read("gsm8k", row).fingerprint == first
    assert read("gsm8k", row | {"answer": "#### 3"}).fingerprint != first


def test_scenes_need_no_data(grader):
    loaded = load_benchmark(load_declaration("scenes"), grader, limit=3)
    assert [i.record.id for i in loaded.items] == ["count-2-0", "count-2-1", "count-2-2"]


def test_mistakes_are_named(read, grader, tmp_path):
    with pytest.raises(MmcorlError, match=r"gsm8k: there is no column 'answer', only question, solution"):
        read("gsm8k", {"question": "?", "solution": "2"})
    row = {"id": "1", "question": "?", "options": [], "answer": "1", "image": "images/1.jpg"}
    with pytest.raises(MmcorlError, match=r"images/1.jpg does not exist.*name a whole copy of mathvision"):
        read("mathvision", row)
    with pytest.raises(MmcorlError, match=r"gsm8k: .* has the answer 'B', without ####"):
        load_benchmark(load_declaration("gsm8k"), grader, FIXTURES / "mmlu.jsonl")
    with pytest.raises(MmcorlError, match="two rows have the id 1"):
        read("mathvision", *[row | {"image": "image.png"}] * 2)
    with pytest.raises(MmcorlError, match=r"holds no problem of this benchmark: .*has none"):
        read("gsm8k", {"question": "?", "answer": "#### "})
    with pytest.raises(MmcorlError, match=r"nowhere\.jsonl does not exist"):
        load_benchmark(load_declaration("gsm8k"), grader, tmp_path / "nowhere.jsonl")


@pytest.mark.parametrize("precision", [float("inf"), "two", [1], -1])
def test_a_precision_that_is_none_drops_its_row(read, precision):
    row = {
        "pid": "1", "question": "How wide?", "image": "image.png", "choices": None, "unit": 5, "answer": "1.2",
        "question_type": "free_form", "answer_type": "float", "metadata": {},
    }  # fmt: skip
    kept = read("mathvista", row | {"precision": 1.0})
    assert kept.items[0].record.fields["precision"] == 1
    assert kept.items[0].record.fields["unit"] == "5"
    with pytest.raises(MmcorlError, match="precision is no number of decimals"):
        read("mathvista", row | {"precision": precision})


def test_a_folder_without_the_split_is_refused(grader, tmp_path):
    (tmp_path / "train.jsonl").write_text('{"question": "?", "answer": "#### 1"}\n')
    with pytest.raises(MmcorlError, match=r"gsm8k: .*cannot be read.*(main|test)"):
        load_benchmark(load_declaration("gsm8k"), grader, tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"convention": "gsm9k"}, "convention=gsm9k is none of"),
        ({"by": ["subject"]}, "by and cluster name facts"),
        ({"samples": 8}, "samples=8 would all be the same"),
        ({"fields": None}, "fields are needed"),
        ({"suffixes": ["{"]}, "is no text with no facts in braces"),
        ({"suffixes": ["({unti})"], "facts": {"unit": "unit"}}, "is no text with unit in braces"),
        ({"letters_in_image": "{}"}, "is no text with letters in braces"),
    ],
)
def test_declarations_that_cannot_be_right(change, message):
    tree = load_declaration("gsm8k").model_dump(mode="json")
    with pytest.raises(ValueError, match=message):
        Declaration.model_validate(tree | change)
