"""Code benchmarks: their tests are read in every form, and a program is right when it passes all of them."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from pathlib import Path

import pytest

from mmcorl.evaluation.benchmarks import load_declaration
from mmcorl.evaluation.loading import load_benchmark
from mmcorl.evaluation.programs import CODE, grade_programs
from mmcorl.graders import Grader
from mmcorl.graders.code import limits_of
from mmcorl.sandbox import Sandbox

FIXTURES = Path(__file__).parent / "fixtures"
LCB = {
    "question_id": "1", "question_content": "Add the numbers.", "difficulty": "easy", "contest_date": "2025-01-01T00:00:00",
    "starter_code": "", "metadata": "{}",
}  # fmt: skip


@pytest.fixture(scope="module")
def sandbox(walled_machine):
    with Sandbox(limits_of(CODE), workers=1) as sandbox:
        yield sandbox


def load(name: str, path: Path):
    with Grader() as grader:
        return load_benchmark(load_declaration(name), grader, path)


def packed(tests: list[dict]) -> str:
    """As LiveCodeBench stores private tests."""
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(tests)))).decode()


def verdicts(loaded, sandbox, *completions: str) -> list[bool]:
    item = loaded.items[0]
    asked = [(item.record, item.gold, f"So:\n```python\n{c}\n```") for c in completions]
    return [right for _, right in grade_programs(asked, loaded.declaration.prelude, sandbox)]


def test_humaneval(sandbox):
    loaded = load("humaneval", FIXTURES / "humaneval.jsonl.gz")
    assert [i.problem.kind for i in loaded.items] == ["code", "code"]
    right = "def unique(l: list):\n    return sorted(set(l))"
    assert verdicts(loaded, sandbox, right, "def unique(l):\n    return l", "def other(l): pass") == [
        True,
        False,
        False,
    ]


def test_mbpp(sandbox):
    loaded = load("mbpp", FIXTURES / "mbpp.jsonl")
    assert loaded.items[0].problem.question.endswith("pass these tests:\nassert find(3,3) == 0\nassert find(10,3) == 1\nassert find(16,5) == 1")  # fmt: skip
    assert verdicts(loaded, sandbox, "def find(n, m):\n    return n % m", "def find(n, m):\n    return n") == [True, False]  # fmt: skip


def test_livecodebench_standard_input(sandbox, tmp_path):
    public = [{"input": "1 2\n", "output": "3\n", "testtype": "stdin"}]
    private = [{"input": "2 2\n", "output": "4\n", "testtype": "stdin"}]
    row = LCB | {"public_test_cases": json.dumps(public), "private_test_cases": packed(private)}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    loaded = load("livecodebench", tmp_path / "rows.jsonl")
    assert json.loads(loaded.items[0].gold) == public + private
    assert verdicts(loaded, sandbox, "print(sum(map(int, input().split())))", "print(3)") == [True, False]


def test_livecodebench_functions_and_large_tests(sandbox, tmp_path):
    tests = [{"input": "[1, 2]\n3", "output": "[4, 5]", "testtype": "functional"}]
    large = [{"input": json.dumps(list(range(30_000))) + "\n0", "output": json.dumps(list(range(30_000))), "testtype": "functional"}]  # fmt: skip
    row = LCB | {
        "starter_code": "class Solution:\n    def add(self, xs: List[int], k: int) -> List[int]:",
        "metadata": '{"func_name": "add"}',
        "public_test_cases": json.dumps(tests),
        "private_test_cases": packed(large),
    }
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    loaded = load("livecodebench", tmp_path / "rows.jsonl")
    [item] = loaded.items
    assert item.problem.question.endswith("\nStarter code:\n" + row["starter_code"])
    assert item.record.gold is None and len(item.gold) > 100_000
    body = row["starter_code"] + "\n        return [x + k for x in xs]"
    assert verdicts(loaded, sandbox, body, body.replace("+ k", "+ 1")) == [True, False]


def test_what_holds_no_program_is_wrong_and_what_holds_no_tests_is_dropped(sandbox, tmp_path):
    item = load("mbpp", FIXTURES / "mbpp.jsonl").items[0]
    assert grade_programs([(item.record, item.gold, "I cannot.")], "", sandbox) == [(None, False)]
    rows = [{"task_id": i, "text": "?", "test_list": t, "test_setup_code": ""} for i, t in enumerate((["assert f() == 1"], [1]))]  # fmt: skip
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    assert load("mbpp", tmp_path / "rows.jsonl").dropped == {"tests cannot be read": 1}
