"""Code problems out of rows in the forms of MBPP, HumanEval and LiveCodeBench."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mmcorl.config import ColumnsConfig, DataConfig
from mmcorl.data.bad_rows import BadRow
from mmcorl.data.loading import load_problems
from mmcorl.data.preparing import prepare
from mmcorl.data.reading import read_rows, source_of
from mmcorl.data.rows import Source, read_row
from mmcorl.data.storage import read_problems, write_problems
from mmcorl.graders import Grader
from mmcorl.problems import Completion, Gold, Problem
from mmcorl.sandbox import ProgramSpec

ASSERTS = {
    "id": "asserts",
    "question": "Write largest(xs).",
    "tests": ["assert largest([1, 3, 2]) == 3", "assert largest([-1]) == -1"],
    "setup": "import math",
}
CHECK = {
    "id": "check",
    "question": "Complete it.",
    "tests": "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(3) == 9\n",
    "entry_point": "square",
    "before": "import math\n",
}
SCRIPT = {
    "id": "script",
    "question": "Add two numbers.",
    "tests": json.dumps([{"input": "1 2\n", "output": "3\n"}, {"input": "2 2\n", "output": "4\n"}]),
}
WRITTEN = {
    "asserts": "```python\ndef largest(xs):\n    return max(xs)\n```",
    "check": "```python\ndef square(x):\n    return x * x\n```",
    "script": "```python\nprint(sum(map(int, input().split())))\n```",
}
SOURCE = Source(Path("rows.jsonl"))


def test_tests_make_a_code_problem_whose_inputs_are_apart_from_its_gold():
    rows = (ASSERTS, CHECK, SCRIPT)
    problems, golds = zip(*(read_row(row, 0, SOURCE) for row in rows), strict=True)
    assert {problem.kind for problem in problems} == {"code"}
    assert [problem.program for problem in problems] == [
        ProgramSpec(("largest([1, 3, 2])", "largest([-1])"), after="import math"),
        ProgramSpec(("square(2)", "square(3)"), before="import math\n"),
        ProgramSpec(("1 2\n", "2 2\n"), "stdin"),
    ]
    assert golds == (Gold(json.dumps(ASSERTS["tests"])), Gold(CHECK["tests"]), Gold(SCRIPT["tests"]))


@pytest.mark.usefixtures("walled_machine")
def test_what_the_tests_expect_decides_no_vote():
    """The counterpart: it does decide what is right."""
    with Grader() as grader:
        seen = []
        for noise in (False, True):
            noisy = str.maketrans("349", "768") if noise else {}
            rows = [
                {**ASSERTS, "tests": [t[:-1] + t[-1].translate(noisy) for t in ASSERTS["tests"]]},
                {**CHECK, "tests": CHECK["tests"].replace("== 4", "== 5") if noise else CHECK["tests"]},
                {**SCRIPT, "tests": SCRIPT["tests"].replace('"3', '"8') if noise else SCRIPT["tests"]},
            ]
            pairs = [read_row(row, 0, SOURCE) for row in rows]
            problems, golds = [p for p, _ in pairs], [gold for _, gold in pairs]
            answers = grader.answers([(Completion(WRITTEN[p.id], (), (), True), p) for p in problems])
            right = [
                grader.correct(a, grader.read(gold.answer, p), p)
                for a, gold, p in zip(answers, golds, problems, strict=True)
                if gold is not None
            ]
            seen.append((problems, answers, golds, right))
    (problems, answers, golds, right), (noisy_problems, noisy_answers, noisy_golds, noisy_right) = seen
    assert golds != noisy_golds and right == [True] * 3 and noisy_right == [False] * 3
    assert noisy_problems == problems and noisy_answers == answers
    assert [a and a.value for a in answers] == ['["3", "-1"]', '["4", "9"]', '["3", "4"]']


def test_a_prepared_folder_keeps_what_programs_are_run_on(tmp_path: Path):
    pairs = [
        read_row(row, 0, SOURCE) for row in (ASSERTS, CHECK, SCRIPT, {"question": "2 + 2?", "answer": 4})
    ]
    unlabelled = [(problem, None) for problem, _ in pairs]
    write_problems(pairs, tmp_path / "labelled")
    write_problems(unlabelled, tmp_path / "unlabelled")
    assert list(read_problems(tmp_path / "labelled")) == pairs
    assert list(read_problems(tmp_path / "unlabelled")) == unlabelled


def test_a_file_is_prepared_and_loaded(tmp_path: Path):
    file = tmp_path / "rows.jsonl"
    rows = [{**row, "checks": row["tests"]} for row in (ASSERTS, {**ASSERTS, "id": "random"})]
    rows[1]["checks"] = ["for i in range(9): assert largest([i]) == i"]
    file.write_text("".join(json.dumps({**row, "tests": None}) + "\n" for row in rows))
    columns = ColumnsConfig(tests="checks")
    header = prepare(Source(file, columns), tmp_path / "out")
    assert header.count == 1 and header.dropped == {"tests without inputs": 1}
    [problem] = load_problems(DataConfig(path=str(tmp_path / "out"))).problems
    assert problem == read_row(ASSERTS, 0, SOURCE)[0]
    with pytest.raises(BadRow, match="row 1 of"):
        load_problems(DataConfig(path=str(file), columns=columns))


def test_inputs_alone_are_enough():
    row = {"question": "Write f.", "program": {"cases": ["f(1)"], "before": "import math"}}
    problem, gold = read_row(row, 0, SOURCE)
    assert problem == Problem(
        "0", "Write f.", kind="code", program=ProgramSpec(("f(1)",), before="import math")
    )
    assert gold is None
    _, gold = read_row({**row, "answer": "assert f(1) == 2"}, 0, SOURCE)
    assert gold == Gold("assert f(1) == 2")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (
            {"tests": "def check(candidate):\n    assert candidate(1)"},
            "tests cannot be read",
        ),  # of which function?
        ({"tests": "not python"}, "tests cannot be read"),
        ({"tests": ["assert True"]}, "tests without inputs"),
        ({"tests": ["assert f(1) == 2"], "setup": 3}, "source is not text"),
        ({"program": {"cases": []}}, "program cannot be read"),
        ({"program": {"cases": ["f(1"]}}, "program cannot be read"),
        ({"program": {"cases": ["x"], "reads": "files"}}, "program cannot be read"),
        ({"program": {"cases": ["f(1)"]}, "answer": "def f(): ..."}, "tests cannot be read"),
    ],
)
def test_rows_that_no_program_can_answer_are_refused(row: dict[str, Any], reason: str):
    with pytest.raises(BadRow) as caught:
        read_row({"question": "Write f.", **row}, 3, SOURCE)
    assert caught.value.reason == reason and str(caught.value).startswith("row 3 of rows.jsonl: ")


def test_other_kinds_leave_such_columns_alone():
    problem, gold = read_row({"question": "q", "program": "add(1, 2)", "answer": "3"}, 0, SOURCE)
    assert (problem, gold) == (Problem("0", "q"), Gold("3"))
    problem, gold = read_row({"question": "q", "kind": "text", "tests": ["a"], "answer": "3"}, 0, SOURCE)
    assert (problem.kind, problem.program, gold) == ("text", None, Gold("3"))


def test_the_mixture_of_comas():
    source = source_of(DataConfig(source="comas", path="copy"))
    row = {"query": "Write largest(xs).", "test": ASSERTS["tests"], "tag": "code", "setup": "import math"}
    expected, _ = read_row({**ASSERTS, "id": "0"}, 0, SOURCE)
    assert list(read_rows([row], source)) == [(expected, Gold(json.dumps(ASSERTS["tests"])))]
