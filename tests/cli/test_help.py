"""`--help` of every console command shows how it is used, and waits for nothing heavy."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
SCRIPTS = tomllib.loads(PYPROJECT.read_text())["project"]["scripts"]
PROGRAM = """
import sys
from {module} import {function} as main
try:
    main()
finally:
    print(sorted({{"torch", "transformers"}} & set(sys.modules)))
"""


@pytest.mark.parametrize(("name", "entry"), SCRIPTS.items())
def test_help_has_an_example_and_imports_no_torch(name, entry):
    module, _, function = entry.partition(":")
    program = PROGRAM.format(module=module, function=function)
    result = subprocess.run([sys.executable, "-c", program, "--help"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    shown, imported = result.stdout.rstrip("\n").rsplit("\n", 1)
    assert shown.startswith(f"usage: {name} ")
    assert f"{name} " in shown.partition("example")[2], "an example is a call of the command"
    assert imported == "[]"


@pytest.mark.parametrize("name", ["mmcorl-train", "mmcorl-compare"])
def test_a_missing_file_is_named_and_settings_are_not_asked_for(name):
    module, _, function = SCRIPTS[name].partition(":")
    program = f"from {module} import {function} as main; main([])"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 2
    assert "required" in result.stderr and "key=value" not in result.stderr.partition("required")[2]


@pytest.mark.parametrize("entry", SCRIPTS.values())
def test_a_command_is_its_module_too(entry):
    """`python -m`, as where the scripts are not on the path."""
    result = subprocess.run([sys.executable, "-m", entry.partition(":")[0]], capture_output=True, text=True)
    assert result.returncode == 2 and result.stderr
