"""Programs as answers. The problems have the forms of HumanEval, MBPP and LiveCodeBench."""

import json

import pytest

from mmcorl.config import CodeConfig
from mmcorl.errors import MmcorlError
from mmcorl.graders import Answer, Grader
from mmcorl.graders.code import answer_of_program, answers_of_programs, limits_of, outputs_pass, passes
from mmcorl.problems import Completion, Problem
from mmcorl.sandbox import Limits, ProgramSpec, Sandbox
from mmcorl.sandbox.unit_tests import program_spec, read_tests

PROMPT = "from typing import List\n\n\ndef largest(xs: List[int]) -> int:\n    '''The largest.'''\n"
CHECK = """
def check(candidate):
    assert candidate([1, 3, 2]) == 3
    assert candidate([-1]) == -1
    for i in range(4):
        assert candidate([i]) == i
"""
RIGHT = "def largest(xs: List[int]) -> int:\n    return max(xs)"
SAME = "def largest(xs):\n    return sorted(xs)[-1]"
WRONG = "def largest(xs):\n    return xs[-1]"
FAILING = "def largest(xs):\n    return xs.nothing"
SPEC = program_spec(CHECK, "largest", before=PROMPT)
TESTS = read_tests(CHECK, "largest")


@pytest.fixture(scope="module")
def sandbox(walled_machine):
    with Sandbox(Limits(case_seconds=1.0), workers=1) as sandbox:
        yield sandbox


def test_the_answer_is_what_a_program_puts_out(sandbox):
    answers = answers_of_programs([RIGHT, SAME, WRONG, FAILING, None], [SPEC] * 5, sandbox)
    assert answers[0] == answers[1] == Answer("code", '["3", "-1"]')
    assert answers[2] == Answer("code", '["2", "-1"]')
    assert answers[3:] == [None, None]
    assert answer_of_program(RIGHT, ProgramSpec(()), sandbox) is None


def test_a_failure_on_some_inputs_is_part_of_the_answer(sandbox):
    partial = "def largest(xs):\n    return max(xs) if len(xs) > 1 else 1 / 0"
    assert answer_of_program(partial, SPEC, sandbox) == Answer("code", '["3", null]')


def test_tests_decide_what_passes(sandbox):
    verdicts = [passes(source, TESTS, sandbox, before=PROMPT) for source in (RIGHT, SAME, WRONG, FAILING)]
    assert verdicts == [True, True, False, False]
    assert not passes("import os; os._exit(0)", TESTS, sandbox)
    assert not passes("raise SystemExit", TESTS, sandbox)


def test_outputs_are_judged_apart_from_the_program(sandbox):
    def verdict(value: str) -> bool:
        return outputs_pass(Answer("code", value), SPEC, TESTS, sandbox)

    assert verdict('["3", "-1"]')
    for wrong in (
        '["2", "-1"]',
        '["3", null]',
        '["3"]',
        "[]",
        "no list",
        "[1, 2]",
        '["__import__(\'os\')._exit(0)", "-1"]',
        "[\"type('A', (), {'__eq__': lambda *_: True})()\", \"-1\"]",
    ):
        assert not verdict(wrong)
    always_equal = "class A:\n    def __eq__(self, other): return True\ndef largest(xs): return A()"
    assert passes(always_equal, TESTS, sandbox)  # what sharing a process allows
    assert answer_of_program(always_equal, SPEC, sandbox) is None


def test_asserts_with_tolerance_and_special_values(sandbox):
    asserts = json.dumps(
        ["assert abs(half(3) - 1.5) < 1e-9", "assert half({2}) == {1.0}", "assert half(0) == float('inf')"]
    )
    spec, tests = program_spec(asserts), read_tests(asserts)
    program = (
        "def half(x): return float('inf') if x == 0 else {y / 2 for y in x} if isinstance(x, set) else x / 2"
    )
    answer = answer_of_program(program, spec, sandbox)
    assert answer == Answer("code", '["1.5", "{1.0}", "inf"]')
    assert passes(program, tests, sandbox) and outputs_pass(answer, spec, tests, sandbox)


def test_scripts_are_judged_by_what_they_print(sandbox):
    text = json.dumps(
        [{"input": "1 2\n", "output": "3\n", "testtype": "stdin"}, {"input": "2 2\n", "output": "4"}]
    )
    spec, tests = program_spec(text), read_tests(text)
    right, decimals = "print(sum(map(int, input().split())), '')", "print(sum(map(float, input().split())))"
    constant = "print(3)"
    answers = answers_of_programs([right, decimals, constant], [spec] * 3, sandbox)
    assert answers[0] == Answer("code", '["3", "4"]')
    for source, answer, verdict in zip(
        (right, decimals, constant), answers, (True, True, False), strict=True
    ):
        assert passes(source, tests, sandbox) is verdict
        assert answer and outputs_pass(answer, spec, tests, sandbox) is verdict


def test_methods_are_judged_by_what_they_return(sandbox):
    text = json.dumps([{"input": "[1, 2]\n2", "output": "[2, 4]", "testtype": "functional"}])
    spec, tests = program_spec(text, "scale"), read_tests(text, "scale")
    source = "class Solution:\n    def scale(self, xs, k):\n        return tuple(k * x for x in xs)"
    answer = answer_of_program(source, spec, sandbox)
    assert answer == Answer("code", '["(2, 4)"]')
    assert passes(source, tests, sandbox) and outputs_pass(answer, spec, tests, sandbox)
    assert not passes(source.replace("k *", "k +"), tests, sandbox)


@pytest.mark.usefixtures("walled_machine")
def test_the_grader_reads_and_judges_programs():
    problem = Problem("p", PROMPT, kind="code", program=SPEC)
    written = [f"Here:\n```python\n{source}\n```" for source in (RIGHT, SAME, WRONG, FAILING)]
    with Grader(program_limits=Limits(case_seconds=1.0)) as grader:
        math = ("\\boxed{4}", Problem("q", "2 + 2?"))
        asked = [(text, problem) for text in written] + [math, ("no program", problem)]
        answers = grader.answers([(Completion(text, (), (), True), problem) for text, problem in asked])
        assert answers[4:] == [Answer("math", "4"), None]
        assert answers[:4] == [grader.answer(text, problem) for text in written]
        assert grader.classes(answers[:4]) == [[0, 1], [2]]
        gold = grader.read(CHECK, problem)
        assert [grader.correct(answer, gold, problem) for answer in answers[:4]] == [True, True, False, False]


def test_only_what_the_problems_need_is_started(monkeypatch):
    monkeypatch.setattr("mmcorl.sandbox.pool._START", "print('[\"Landlock is missing\"]')")
    code = Problem("p", PROMPT, kind="code", program=SPEC)
    with Grader() as grader:
        grader.warm([Problem("q", "2 + 2?")])
        with pytest.raises(MmcorlError, match="Landlock is missing"):
            grader.warm([Problem("q", "2 + 2?"), code])


def test_the_configuration_says_what_a_program_may_use():
    assert limits_of(CodeConfig()) == Limits()
    config = CodeConfig(case_seconds=1, program_seconds=3, memory_mib=256, unprotected=True)
    assert limits_of(config) == Limits(1.0, 3.0, 256 << 20, unprotected=True)


def test_without_inputs_the_text_is_the_answer():
    problem = Problem("p", "Write f.", kind="code")
    with Grader() as grader:
        answer = grader.answer("```python\nf = 1\n```", problem)
        assert answer == Answer("code", "f = 1")
        assert grader.correct(answer, grader.read("f = 1", problem), problem)
        assert not grader.correct(answer, grader.read("f = 2", problem), problem)
