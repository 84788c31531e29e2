import json

import pytest

from mmcorl.data.twin import load_twin
from mmcorl.errors import MmcorlError
from mmcorl.problems import Problem

PROBLEMS = [
    Problem("a", "How many?", (b"picture",)),
    Problem("b", "Which?", choices=("red", "blue"), kind="choice"),
]


def written(folder, *rows):
    path = folder / "twin.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_twins_are_in_the_order_of_the_problems_and_keep_all_but_the_words(tmp_path):
    path = written(
        tmp_path,
        {"id": "unused", "question": "?"},
        {"id": "b", "question": "What colour?", "choices": ["rot", "blau"]},
        {"id": "a", "question": "Count them."},
    )
    assert load_twin(PROBLEMS, path) == [
        Problem("a", "Count them.", (b"picture",)),
        Problem("b", "What colour?", choices=("rot", "blau"), kind="choice"),
    ]


def test_a_problem_without_a_twin_is_named(tmp_path):
    path = written(tmp_path, {"id": "a", "question": "Count them."})
    with pytest.raises(MmcorlError, match=r"1 of 2 problems, such as 'b'"):
        load_twin(PROBLEMS, path)


def test_other_options_would_mean_other_letters(tmp_path):
    rows = [{"id": "a", "question": "?"}, {"id": "b", "question": "?", "choices": ["rot"]}]
    with pytest.raises(MmcorlError, match="1 options"):
        load_twin(PROBLEMS, written(tmp_path, *rows))


def test_a_file_that_is_not_there_is_named_by_its_setting(tmp_path):
    with pytest.raises(MmcorlError, match=r"data\.twin"):
        load_twin(PROBLEMS, tmp_path / "none.jsonl")
