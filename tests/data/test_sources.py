from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from mmcorl.agents.lengths import PromptLengths
from mmcorl.config import DataConfig
from mmcorl.data.bad_rows import BadRow
from mmcorl.data.loading import LoadedData, load_problems
from mmcorl.data.preparing import prepare
from mmcorl.data.quirks import QUIRKS
from mmcorl.data.reading import read_rows, source_of
from mmcorl.data.sources import SOURCES, declaration_of
from mmcorl.errors import MmcorlError
from mmcorl.graders import Grader
from mmcorl.problems import Gold, Problem

FIXTURES = Path(__file__).parent / "fixtures"


def png(colour: str = "red") -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8), colour).save(buffer, "PNG")
    return buffer.getvalue()


RED, BLUE = png("red"), png("blue")
PICTURE = {"bytes": RED, "path": None}


def load(name: str, path: Path, **settings: Any) -> LoadedData:
    return load_problems(DataConfig(source=name, path=str(path), **settings))


def test_declarations_are_whole():
    for name, declaration in SOURCES.items():
        assert declaration.name == name
        assert declaration.facts.endswith(".")
        assert {quirk[0] for quirk in declaration.quirks} <= set(QUIRKS)
    assert len(SOURCES) == 15


def test_an_unknown_source_names_the_nearest():
    with pytest.raises(
        MmcorlError, match=r"data\.train\.source=open_r1 is no public source; the nearest is open-r1"
    ):
        declaration_of("open_r1")


def test_a_source_that_is_given_out_as_files_needs_a_copy():
    with pytest.raises(
        MmcorlError, match=r"data\.train\.source=comas is not on the hub; set data\.train\.path"
    ):
        load_problems(DataConfig(source="comas"))


NATIVE: list[tuple[str, dict[str, Any], Problem, str]] = [
    (
        "open-r1",
        {
            "image": PICTURE,
            "problem": "<image>How long is AB?\nChoices:\n(A) 3\n(B) 4",
            "solution": "<think>It is 4.</think>\n\n<answer>B</answer>",
            "original_question": "How long?",
            "original_answer": "It is 4",
        },
        Problem("0", "<image>How long is AB?", (RED,), ("3", "4"), "choice"),
        "B",
    ),
    (
        "open-r1",
        {"image": PICTURE, "problem": "Where is D?", "solution": "prose", "original_answer": "On AC"},
        Problem("0", "Where is D?", (RED,)),
        "On AC",
    ),
    (
        "mmr1",
        {"images": [PICTURE], "problem": "<image>Find x.", "answer": " 12 "},
        Problem("0", "<image>Find x.", (RED,)),
        "12",
    ),
    (
        "geometry3k-choice",
        {
            "images": [PICTURE],
            "problem": "<image>Find x.",
            "answer": "7",
            "id": 9,
            "choices": ["3", "7"],
            "ground_truth": "B",
        },
        Problem("9", "<image>Find x.", (RED,), ("3", "7"), "choice"),
        "B",
    ),
    (
        "geoqa",
        {"image": PICTURE, "problem": "Find angle 1 ()", "solution": "<answer> 145° </answer>"},
        Problem("0", "Find angle 1 ()", (RED,)),
        "145°",
    ),
    (
        "geoqa",  # the layout of G-LLaVA
        {
            "image": PICTURE,
            "question": "Find angle 1 ()",
            "choices": ["9π", "6π"],
            "answer": "A",
            "answer_value": "9π",
        },
        Problem("0", "Find angle 1 ()", (RED,), ("9π", "6π"), "choice"),
        "9π",
    ),
    (
        "clevr-count",
        {"image": PICTURE, "problem": "How many items are there?", "solution": "<answer> 3 </answer>"},
        Problem("0", "How many items are there?", (RED,)),
        "3",
    ),
    (
        "mmk12",
        {
            "id": "u-1",
            "image": PICTURE,
            "question": "<image> What is x?\nA. 1\nB. 2",
            "answer": "B",
            "subject": "math",
        },
        Problem("u-1", "<image> What is x?", (RED,), ("1", "2"), "choice"),
        "B",
    ),
    (
        "openmmreasoner-rl",
        {
            "prompt": [{"role": "user", "content": "<image><image>Which is larger?"}],
            "images": [PICTURE, {"bytes": BLUE, "path": None}],
            "reward_model": {"ground_truth": "the first", "style": "rule"},
        },
        Problem("0", "<image><image>Which is larger?", (RED, BLUE)),
        "the first",
    ),
    (
        "mmfinereason",
        {
            "question": "<image>Find x.",
            "answer": "2",
            "image": PICTURE,
            "is_consistent": True,
            "pass_rate": 0.5,
            "id": 4,
        },
        Problem("0", "<image>Find x.", (RED,)),
        "2",
    ),
    (
        "zwz-37k",
        {
            "images": [PICTURE],
            "problem": "<image>What is written?",
            "answer": "STOP",
            "original_images": [PICTURE],
        },
        Problem("0", "<image>What is written?", (RED,)),
        "STOP",
    ),
    ("math-level345", {"prompt": "What is 1 + 1?", "answer": "2"}, Problem("0", "What is 1 + 1?"), "2"),
    (
        "math-12345",
        {"problem": "What is 1 + 1?", "level": "Level 1", "type": "Algebra", "solution": r"It is \boxed{2}."},
        Problem("0", "What is 1 + 1?"),
        "2",
    ),
    ("dapo-math-17k", {"prompt": "What is 1 + 1?", "solution": "2"}, Problem("0", "What is 1 + 1?"), "2"),
    (
        "gsm8k",
        {"question": "How many?", "answer": "1 + 1 = <<1+1=2>>2\n#### 2"},
        Problem("0", "How many?"),
        "2",
    ),
    (
        "comas",
        {"query": "What is 1 + 1?", "gt": "2", "tag": "math"},
        Problem("0", "What is 1 + 1?"),
        "2",
    ),
    (
        "comas",
        {"query": "Write f.", "gt": "def f(): ...", "source": "code"},
        Problem("0", "Write f.", kind="code"),
        "def f(): ...",
    ),
]


@pytest.mark.parametrize(("name", "row", "problem", "gold"), NATIVE)
def test_native_rows(name: str, row: dict[str, Any], problem: Problem, gold: str):
    source = source_of(DataConfig(source=name, path="copy"))
    assert list(read_rows([row], source)) == [(problem, Gold(gold))]


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("math-level345", {"problem": "q", "level": 2, "solution": "s"}),
        ("math-level345", {"problem": "q", "level": "Level 1", "solution": "s"}),
        (
            "mmfinereason",
            {"question": "q", "answer": "2", "image": PICTURE, "is_consistent": False, "pass_rate": 0.5},
        ),
        (
            "mmfinereason",
            {"question": "q", "answer": "2", "image": PICTURE, "is_consistent": True, "pass_rate": 1.0},
        ),
        ("mmk12", {"id": "1", "question": "q", "answer": "2", "image": "images/none.png"}),
    ],
)
def test_rows_that_are_dropped(name: str, row: dict[str, Any]):
    (bad,) = read_rows([row], source_of(DataConfig(source=name, path="copy")))
    assert isinstance(bad, BadRow)


@pytest.mark.parametrize(
    ("name", "file", "rows", "golds"),
    [
        ("geometry3k", "geometry3k/hf_style.jsonl", 2, ["120", "22"]),
        ("geometry3k-choice", "geometry3k/hf_style.jsonl", 2, ["D", "C"]),
        ("mmk12", "mmk12/k12_sample.jsonl", 6, None),
        ("gsm8k", "gsm8k_test.jsonl", 6, ["18", "3", "70000", "540", "20", "64"]),
        ("math-12345", "math500.jsonl", 8, ["6", "1", "2k+2", "6+9i", "18", "0", "0.15", "-50"]),
        ("math-level345", "math500.jsonl", 1, ["6+9i"]),
    ],
)
def test_real_rows(name: str, file: str, rows: int, golds: list[str] | None):
    data = load(name, FIXTURES / file)
    assert len(data.problems) == len(data.golds) == rows
    if golds is not None:
        assert [gold.answer for gold in data.golds.values()] == golds
    with Grader() as grader:
        read = [grader.read(data.golds[problem.id].answer, problem) for problem in data.problems]
    assert sum(answer is None for answer in read) == (1 if name == "mmk12" else 0)  # ">" is no answer


@pytest.mark.parametrize(
    ("name", "file"), [("mmk12", "mmk12/k12_sample.jsonl"), ("gsm8k", "gsm8k_test.jsonl")]
)
def test_a_prepared_sample_is_what_its_source_is(name: str, file: str, tmp_path: Path):
    native = load(name, FIXTURES / file)
    prepare(source_of(DataConfig(source=name, path=str(FIXTURES / file))), tmp_path / "out")
    prepared = load_problems(DataConfig(path=str(tmp_path / "out")))
    assert prepared.golds == native.golds
    for ready, problem in zip(prepared.problems, native.problems, strict=True):
        assert (ready.id, ready.question, ready.choices) == (problem.id, problem.question, problem.choices)
        assert ready.images == tuple(
            image.read_bytes() for image in problem.images if isinstance(image, Path)
        )
    with pytest.raises(MmcorlError, match=r"is prepared already; name it by data\.train\.path alone"):
        load(name, tmp_path / "out")


@pytest.mark.parametrize("family", ["qwen2_5_vl", "internvl", "gemma3"])
def test_prompts_of_a_real_visual_sample(
    family: str, tiny_agent: Callable[..., Any], tiny_folder: Callable[[str], Path]
):
    agent = tiny_agent(family)
    lengths = PromptLengths(tiny_folder(family))
    for file, name in (
        ("geometry3k/hf_style.jsonl", "geometry3k-choice"),
        ("mmk12/k12_sample.jsonl", "mmk12"),
    ):
        for problem in load(name, FIXTURES / file).problems:
            prompt = agent.encode(problem)
            assert len(prompt.images) == 1
            assert len(prompt.ids) == lengths(problem)


def test_unusable_rows_of_a_public_source_are_announced(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    path = tmp_path / "rows.jsonl"
    rows = [{"id": "a", "question": "q", "answer": "1"}, {"id": "a", "question": "q"}, {"answer": "1"}]
    path.write_text("\n".join(map(json.dumps, rows)))
    assert [problem.id for problem in load("mmk12", path).problems] == ["a"]
    assert "1 rows are problems, 2 are left out (duplicate id: 1, no question column: 1)" in caplog.text
    path.write_text('{"answer": "1"}')
    with pytest.raises(MmcorlError, match=r"none of the 1 rows of .* can be used; the first: row 0 of"):
        load("mmk12", path)


def test_a_limit_counts_the_problems_of_a_source(tmp_path: Path):
    path = tmp_path / "rows.jsonl"
    levels = [1, 3, 1, 4, 5]
    path.write_text("\n".join(json.dumps({"problem": f"{n}", "level": n, "answer": "1"}) for n in levels))
    assert [problem.question for problem in load("math-level345", path, limit=2).problems] == ["3", "4"]


def test_columns_belong_to_the_source():
    with pytest.raises(ValueError, match="source=mmk12 knows its columns"):
        DataConfig.model_validate({"source": "mmk12", "columns": {"answer": "a"}})


def test_the_split_of_a_source_can_be_another(tmp_path: Path):
    source = source_of(DataConfig(source="gsm8k", split="test"))
    assert source.hub is not None
    assert (source.hub.split, source.hub.configs, source.split) == ("test", ("main",), "test")
    assert source.name == "openai/gsm8k on the hub (split test, config main)"
