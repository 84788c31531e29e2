import base64
import json
import pickle
import zlib

import pytest

from mmcorl.errors import MmcorlError
from mmcorl.sandbox.unit_tests import UnitTests, called_name, program_spec, read_tests, unpack_tests

CHECK = """
def check(candidate):
    import copy
    assert candidate([1.0, 2.0], 0.3) == True
    assert abs(candidate([5], eps=1e-6) - 2) < 1e-6, "close"
    for i in range(3):
        x = [i]
        assert candidate(x) == copy.deepcopy(x)
"""
ASSERTS = ["assert add(1, 2) == 3", "assert set(add((1,), (2,))) == {1, 2}"]
FUNCTIONAL = [{"input": '[1, 2]\n"a"', "output": "[3]", "testtype": "functional"}]
STDIN = [{"input": "1\n", "output": "2\n", "testtype": "stdin"}]


def test_inputs_of_a_check():
    spec = program_spec(CHECK, "near", before="import math")
    assert spec.cases == ("near([1.0, 2.0], 0.3)", "near([5], eps=1e-06)")
    assert spec.reads == "calls" and spec.before == "import math"


def test_inputs_of_asserts():
    for text in (json.dumps(ASSERTS), "\n".join(ASSERTS)):
        assert program_spec(text).cases == ("add(1, 2)", "add((1,), (2,))")
    assert program_spec("assert sum(1, 2) == 3").cases == ("sum(1, 2)",)
    assert program_spec("assert f(g(1)) == f(g(1))").cases == ("f(g(1))",)


def test_inputs_that_are_listed():
    listed = "inputs = [[[1, 2], 3], ['a']]\nresults = [1, 2]\ndef check(candidate):\n    pass"
    assert program_spec(listed, "f").cases == ("f(*[[1, 2], 3])", "f(*['a'])")


def test_inputs_of_livecodebench():
    assert program_spec(json.dumps(STDIN)).cases == ("1\n",)
    assert program_spec(json.dumps(STDIN)).reads == "stdin"
    assert program_spec(json.dumps(FUNCTIONAL), "solve").cases == ("Solution().solve([1, 2], 'a')",)


def test_expected_outputs_are_not_read():
    for tests, other, entry in (
        (CHECK, CHECK.replace("True", "False").replace("- 2", "- 7"), "near"),
        (json.dumps(ASSERTS), json.dumps(ASSERTS).replace("== 3", "== 4").replace("{1, 2}", "{7}"), None),
        (json.dumps(FUNCTIONAL), json.dumps(FUNCTIONAL).replace("[3]", "[4]"), "solve"),
        (json.dumps(STDIN), json.dumps(STDIN).replace("2", "3"), None),
    ):
        assert tests != other
        assert program_spec(tests, entry) == program_spec(other, entry)


def test_checks_that_are_read():
    assert read_tests(json.dumps(ASSERTS), setup="import x") == UnitTests(tuple(ASSERTS), setup="import x")
    assert read_tests(CHECK, "near").checks == ("check(near)",)
    assert read_tests("x = 1\nassert f(x) == 2") == UnitTests(("assert f(x) == 2",), setup="x = 1")
    assert read_tests(json.dumps(STDIN)).pairs == (("1\n", "2\n"),)


@pytest.mark.parametrize(
    "text", ["def f(:", "x = 1", "[1, 2]", '[{"input": "1"}]', CHECK, json.dumps(FUNCTIONAL)]
)
def test_other_forms_are_refused(text):
    with pytest.raises(MmcorlError):
        read_tests(text)


def test_called_name():
    assert called_name("f(1)") == "f"
    assert called_name("Solution().solve([1])") == "solve"


@pytest.mark.parametrize("protocol", range(6))
def test_private_tests_are_one_string(protocol):
    text = json.dumps(STDIN) + "é" * 300
    packed = base64.b64encode(zlib.compress(pickle.dumps(text, protocol))).decode()
    if protocol == 0:  # text opcodes, which the data set does not use
        with pytest.raises(MmcorlError, match="more than a string"):
            unpack_tests(packed)
    else:
        assert unpack_tests(packed) == text


class Attack:
    def __reduce__(self):
        return (print, ("ran",))


@pytest.mark.parametrize("value", [Attack(), ["a"], ("a", "b"), 1, b"a"])
def test_a_pickle_of_anything_else_is_refused(value, capsys):
    with pytest.raises(MmcorlError):
        unpack_tests(base64.b64encode(zlib.compress(pickle.dumps(value))).decode())
    assert capsys.readouterr().out == ""


def test_broken_and_oversized_private_tests_are_refused(monkeypatch):
    whole = zlib.compress(pickle.dumps("x" * 1000))
    for packed in (b"no base64!", base64.b64encode(b"no zlib"), base64.b64encode(whole[:-6])):
        with pytest.raises(MmcorlError):
            unpack_tests(packed.decode())
    monkeypatch.setattr("mmcorl.sandbox.unit_tests.MAX_UNPACKED", 100)
    with pytest.raises(MmcorlError, match="larger than 100"):
        unpack_tests(base64.b64encode(whole).decode())
