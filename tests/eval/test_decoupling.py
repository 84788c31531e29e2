"""The paper's Tables 5 to 7."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

PROGRAM = Path(__file__).parents[2] / "eval" / "decoupling.py"


@pytest.fixture
def decoupling() -> ModuleType:
    spec = importlib.util.spec_from_file_location("decoupling", PROGRAM)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["decoupling"] = module  # its named tuples look their module up
    spec.loader.exec_module(module)
    return module


def test_tables_5_to_7_are_reproduced(decoupling, capsys):
    assert decoupling.main() == 0
    text = capsys.readouterr().out
    assert "21 of 21 rows agree" in text
    for kappa in (
        "0.3104",
        "0.3769",
        "0.3791",
        "0.4133",
        "0.5158",
        "0.5178",
        "0.5597",
        "0.4168",
        "0.5143",
        "0.5819",
    ):
        assert kappa in text
    assert "Qwen2.5-3B: Llama-3.2-3B (kappa 0.38" in text
    assert "Qwen2.5-7B: Llama-3.1-8B (kappa 0.42" in text


def test_a_row_that_differs_is_noticed(decoupling, tmp_path, monkeypatch, capsys):
    for name in ("decoupling.csv", "decoupling_counts.csv"):
        text = (decoupling.REPORTED / name).read_text()
        (tmp_path / name).write_text(text.replace("159,94,62,185,12", "159,94,62,185,13"))
    monkeypatch.setattr(decoupling, "REPORTED", tmp_path)
    assert decoupling.main() == 1
    assert "19 of 21 rows agree" in capsys.readouterr().out
