"""mmcorl-check as a user calls it."""

from __future__ import annotations

from mmcorl.agents.contract import POINTS
from mmcorl.agents.processors import PromptBuilder
from mmcorl.cli.check import main


def test_a_model_that_holds(tiny_folder, capsys):
    assert main([str(tiny_folder("qwen2"))]) == 0
    out = capsys.readouterr().out
    assert "broken" not in out and out.count("holds") == len(POINTS)


def test_a_broken_point_is_printed_as_it_is(tiny_folder, capsys, monkeypatch):
    def refuse(*_):
        raise ValueError("no place for [/INST] in [0]")

    monkeypatch.setattr(PromptBuilder, "build", refuse)
    assert main([str(tiny_folder("qwen2"))]) == 1
    assert "no place for [/INST] in [0]" in capsys.readouterr().out


def test_what_cannot_be_read_is_an_error_in_one_line(tmp_path, capsys, tiny_folder):
    for file in tiny_folder("qwen2").iterdir():
        (tmp_path / file.name).write_bytes(
            file.read_bytes()[:1000] if file.suffix == ".safetensors" else file.read_bytes()
        )
    for model in ("no/such/folder/here", str(tmp_path)):
        assert main([model]) == 2
        assert capsys.readouterr().err.startswith("error: cannot read a model from agents.*.model=")
