"""`mmcorl-eval` says what is wrong in one message, and what it did in a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from mmcorl.cli.eval import main

QWEN = Path(__file__).parents[2] / "data_tools" / "tiny_agents" / "qwen2_5_vl"


def test_run_then_rescore_then_compare(tmp_path, capsys):
    command = ["--model", f"tiny={QWEN}", "--suite", "scenes", "--limit", "8", "--max-tokens", "10"]
    for out, words in (("a", "Think, then answer."), ("b", "Answer.")):
        assert main([*command, "--out", str(tmp_path / out), f"prompt.instruction={words}"]) == 0
    assert "scenes" in (tmp_path / "a" / "summary.md").read_text()
    assert main(["rescore", str(tmp_path / "a")]) == 0
    assert "8 samples" in capsys.readouterr().out
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 0


def test_list_names_suites_and_benchmarks(capsys):
    assert main(["--list"]) == 0
    shown = capsys.readouterr().out
    assert "vlm4:" in shown and "We-Math testmini" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--model and --out are needed"),
        (["--model", "m"], "--model and --out are needed"),
        (["--model", "m", "--out", "o"], "name a --suite or --benchmarks"),
        (["--model", "m", "--out", "o", "--benchmarks", "gsm8"], "the nearest is gsm8k"),
        (["--model", "m", "--out", "o", "--suite", "scenes", "--vote"], "--vote needs several answers"),
        (["--model", "m", "--out", "o", "--suite", "scenes", "--samples", "2"], "would all be the same"),
        (["--model", "x/m", "--model", "y/m", "--out", "o", "--suite", "scenes"], "two models are called m"),
        (["--model", "m", "--out", "o", "--suite", "vlm4", "--data", "p"], "of which benchmark"),
        (["--model", "m", "--out", "o", "--suite", "vlm4", "--data", "gsm8k=p"], "gsm8k is not run"),
        (["--model", "m", "--out", "o", "--benchmarks", "gsm8k", "--data", "p"], "gsm8k: p does not exist"),
        (["--model", "m", "--out", "o", "--suite", "scenes", "images.max_pixel=9"], "nearest is images.max_pixels"),
        (["--model", "m", "--out", "o", "--suite", "scenes", "--temperature", "-1"], "is no number from 0 up"),
        (["--model", "m", "--out", "o", "--suite", "scenes", "--temperature", "inf"], "is no number from 0 up"),
        (["--model", "m", "--out", "o", "--suite", "scenes", "--top-p", "0"], "is not above 0"),
        (["rescore", "nowhere"], "holds no results"),
    ],
)  # fmt: skip
def test_mistakes(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and message in error
    assert list(tmp_path.iterdir()) == []
