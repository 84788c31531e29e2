import pytest

from mmcorl.errors import MmcorlError
from mmcorl.sandbox import Limits, Outcome, Program, Sandbox, pool, run_programs, walls

DOUBLE = "def double(x):\n    return x * 2"


@pytest.fixture(scope="module")
def sandbox(walled_machine):
    with Sandbox(Limits(case_seconds=1.0, program_seconds=4.0), workers=2) as sandbox:
        yield sandbox


def test_cases_are_run_one_after_the_other(sandbox):
    [outcomes] = sandbox.run(
        [Program(DOUBLE, ("double(2)", "double('a')", "double(None)", "assert double(1) == 2"))]
    )
    assert [(o.status, o.value) for o in outcomes[:2]] == [("ok", "4"), ("ok", "'aa'")]
    assert outcomes[2].status == "error" and outcomes[2].value.startswith("TypeError")
    assert outcomes[3] == Outcome("ok", "None")


def test_a_source_that_fails_fails_every_case(sandbox):
    for source, said in (("1/0", "ZeroDivisionError"), ("def f(:", "SyntaxError")):
        [outcomes] = sandbox.run([Program(source, ("1", "2"))])
        assert len(outcomes) == 2
        assert all(o.status == "error" and o.value.startswith(said) for o in outcomes)


def test_until_failure_ends_at_the_first_failure(sandbox):
    [outcomes] = sandbox.run(
        [Program(DOUBLE, ("double(1)", "double(None)", "double(3)"), until_failure=True)]
    )
    assert [o.status for o in outcomes] == ["ok", "error"]


def test_a_case_that_is_too_slow_does_not_take_the_others_along(sandbox):
    source = "import time\ndef f(x):\n    if x == 1: time.sleep(30)\n    return x"
    [outcomes] = sandbox.run([Program(source, ("f(0)", "f(1)", "f(2)"))])
    assert [o.value for o in outcomes] == ["0", "one case took more than 1 s", "2"]


def test_all_cases_together_have_a_limit(sandbox):
    [outcomes] = sandbox.run([Program("import time", ("time.sleep(30)",) * 50)])
    assert len(outcomes) == 50
    assert all(o.status == "killed" for o in outcomes)
    assert outcomes[-1].value == "the program took more than 4 s"


def test_every_standard_input_is_a_run_of_its_own(sandbox):
    source = (
        "import sys\nn = int(input())\nprint(n * 2)\nprint('noise', file=sys.stderr)\nif n > 9: sys.exit(3)"
    )
    [outcomes] = sandbox.run([Program(source, ("4\n", "10\n", "x\n"), "stdin")])
    assert outcomes == [
        Outcome("ok", "8\n"),
        Outcome("error", "exit code 3"),
        Outcome("error", "exit code 1"),
    ]


def test_a_script_may_end_early_and_work_in_a_thread(sandbox):
    leaves = "import sys\nif __name__ == '__main__':\n    print(input())\n    sys.exit()"
    thread = (
        "import sys, threading\nsys.setrecursionlimit(10**6)\nthreading.stack_size(1 << 27)\n"
        "def down(n): return 0 if n == 0 else 1 + down(n - 1)\n"
        "threading.Thread(target=lambda: print(down(50_000))).start()"
    )
    assert sandbox.run([Program(leaves, ("hi",), "stdin"), Program(thread, ("",), "stdin")]) == [
        [Outcome("ok", "hi\n")],
        [Outcome("ok", "50000\n")],
    ]


def test_large_inputs_and_outputs_go_through(sandbox):
    [[result]] = sandbox.run(
        [Program("print(sum(map(int, input().split())))", (" ".join(["1"] * 200_000),), "stdin")]
    )
    assert result == Outcome("ok", "200000\n")
    [[result]] = sandbox.run([Program("print('x' * 500_000)", ("",), "stdin")])
    assert result == Outcome("ok", "x" * 500_000 + "\n")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("{3, 1, 2}", "{1, 2, 3}"),
        ("{'b': 1, 'a': {2, 1}}", "{'a': {1, 2}, 'b': 1}"),
        ("__import__('collections').Counter('aab')", "{'a': 2, 'b': 1}"),
        ("(1,), [], set()", "((1,), [], set())"),
        ("float('nan'), 1.0, True", "(nan, 1.0, True)"),
        ("'\\ud800'", "'\\ud800'"),
    ],
)
def test_values_are_canonical(sandbox, expression, value):
    assert sandbox.run([Program("", (expression,))]) == [[Outcome("ok", value)]]


def test_a_value_without_a_meaning_is_an_error(sandbox):
    [outcomes] = sandbox.run([Program("", ("(x for x in [])", "object()", "lambda: 1"))])
    assert all(o.status == "error" and o.value.startswith("Unreadable") for o in outcomes)


def test_long_values_become_digests_that_tell_them_apart(sandbox):
    [[a, b, c]] = sandbox.run([Program("", ("'a' * 20_000", "'b' * 20_000", "'a' * 20_000"))])
    assert len(a.value) < 100
    assert a == c != b


def test_values_of_unusual_characters_go_through(sandbox):
    [[faces, controls]] = sandbox.run([Program("", ("'😀' * 9_000", "'\\x00' * 2_000"))])
    assert faces == Outcome("ok", repr("😀" * 9_000)) and controls == Outcome("ok", repr("\x00" * 2_000))


def test_two_runs_give_the_same(sandbox):
    program = Program("import random", ("list({str(i) for i in range(99)})", "random.random()", "hash('a')"))
    assert len({tuple(outcomes) for outcomes in sandbox.run([program] * 8)}) == 1


def test_a_slow_program_does_not_hold_up_the_others(sandbox):
    slow = Program("import time", ("time.sleep(30)",))
    quick = [Program(DOUBLE, (f"double({i})",)) for i in range(40)]
    outcomes = sandbox.run([slow, *quick])
    assert outcomes[0][0].status == "killed"
    assert [o[0].value for o in outcomes[1:]] == [str(2 * i) for i in range(40)]


@pytest.mark.usefixtures("walled_machine")
def test_run_programs_is_a_sandbox_for_one_call():
    assert run_programs([Program(DOUBLE, ("double(4)",)), Program("", ())]) == [[Outcome("ok", "8")], []]


def test_where_a_wall_is_missing_nothing_runs(monkeypatch):
    monkeypatch.setattr(pool, "_START", "print('[\"Landlock is missing\"]')")
    with (
        Sandbox() as sandbox,
        pytest.raises(MmcorlError, match=r"Landlock is missing.*code.unprotected=true"),
    ):
        sandbox.run([Program("", ("1",))])


@pytest.mark.usefixtures("walled_machine")
def test_warm_starts_what_programs_wait_for_and_finds_a_missing_wall(monkeypatch):
    with Sandbox(workers=2) as sandbox:
        sandbox.warm()
        monkeypatch.setattr(pool, "_START", "print('[\"Landlock is missing\"]')")
        assert sandbox.run([Program("", ("1",))] * 2) == [[Outcome("ok", "1")]] * 2  # by those that are there
        with pytest.raises(MmcorlError, match="Landlock is missing"):
            Sandbox(workers=2).warm()


@pytest.mark.usefixtures("walled_machine")
def test_a_wall_that_does_not_rise_is_found(tmp_path, monkeypatch):
    assert walls.Walls(tmp_path, Limits()).missing() == []

    def absent(_):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(walls, "_landlock_ruleset", absent)
    [missing] = walls.Walls(tmp_path, Limits()).missing()
    assert missing.startswith("Landlock") and "Function not implemented" in missing
    monkeypatch.setattr(walls.platform, "machine", lambda: "mips")
    assert len(walls.Walls(tmp_path, Limits()).missing()) == 2


@pytest.mark.usefixtures("walled_machine")
def test_unprotected_leaves_out_only_what_is_missing(tmp_path, monkeypatch):
    limits = Limits(unprotected=True)
    assert run_programs([Program(DOUBLE, ("double(4)",))], limits) == [[Outcome("ok", "8")]]
    monkeypatch.setattr(walls.platform, "machine", lambda: "mips")
    there = walls.Walls(tmp_path, limits)
    monkeypatch.setattr(there, "_missing", [])
    holes = there.missing()  # Landlock still stands
    assert "starting a process is not prevented" in holes
    assert "reading other files is not prevented" not in holes


@pytest.mark.usefixtures("walled_machine")
def test_a_wall_with_a_hole_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(walls.Walls, "_filter_system_calls", lambda self: None)
    assert "starting a process is not prevented" in walls.Walls(tmp_path, Limits()).missing()
