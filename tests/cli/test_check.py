"""mmcorl-check as a user calls it."""

from __future__ import annotations

import json

import pytest

from mmcorl.agents.backbones import BACKBONES
from mmcorl.agents.contract import POINTS
from mmcorl.agents.processors import PromptBuilder
from mmcorl.cli.check import main


def test_a_model_that_holds(tiny_folder, capsys):
    assert main([str(tiny_folder("qwen2"))]) == 0
    out = capsys.readouterr().out
    assert "broken" not in out and out.count("holds  ") == len(POINTS) - 4
    assert out.count("skipped  ") == 4 and "text only" in out
    assert (
        "qwen2, backbone Text in " in out and "parameters     text 0." in out and "cpu, float32, sdpa" in out
    )
    assert f"{len(POINTS) - 4} of {len(POINTS) - 4} points hold, 4 not asked of this model" in out


def test_a_broken_point_is_printed_as_it_is(tiny_folder, capsys, monkeypatch):
    def refuse(*_):
        raise ValueError("no place for [/INST] in [0]")

    monkeypatch.setattr(PromptBuilder, "build", refuse)
    assert main([str(tiny_folder("qwen2"))]) == 1
    out = capsys.readouterr().out
    assert "no place for [/INST] in [0]" in out
    assert "mend feature_rows, " in out and "text.py; typically" in out
    assert out.strip().endswith(
        "begin with feature_rows, placeholder_ids, processor_options, token_inputs or positions"
    )


def test_json(tiny_folder, capsys):
    model = str(tiny_folder("llama"))
    capsys.readouterr()  # what libraries say as the model is made
    assert main([model, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["family"] == "llama" and said["dtype"] == "float32" and said["parameters"].keys() == {"text"}
    assert len(said["points"]) == len(POINTS)
    assert {point["state"] for point in said["points"]} == {"holds", "skipped"}


def test_a_family_without_a_backbone_is_told_what_was_found(tiny_folder, tmp_path, capsys, monkeypatch):
    monkeypatch.delitem(BACKBONES, "llava")
    model, file = str(tiny_folder("llava")), tmp_path / "mine.py"
    assert main([model]) == 1
    out = capsys.readouterr().out
    for word in ("LlavaForConditionalGeneration", "LlavaProcessor", "image_token_index=", "vision_tower."):
        assert word in out
    assert "class Llava(Backbone):" in out
    assert main([model, "--skeleton", str(file)]) == 0
    assert f"mmcorl-check {model} --backbone {file}" in capsys.readouterr().out
    assert "class Llava(Backbone):" in file.read_text()
    monkeypatch.setitem(BACKBONES, "llava", BACKBONES["gemma3"])  # set back after the test
    assert main([model, "--backbone", str(file)]) == 0
    assert f"backbone Llava in {file}" in capsys.readouterr().out.replace("\n", "")


@pytest.mark.parametrize("option", ["--skeleton", "--backbone"])
def test_wrong_files_are_named(tiny_folder, tmp_path, capsys, option):
    file = tmp_path / "mine.py"
    if option == "--skeleton":
        file.write_text("kept")
    assert main([str(tiny_folder("llava")), option, str(file)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: {option}") and str(file) in said and said.count("\n") == 1


def test_what_cannot_be_read_is_an_error_in_one_line(tmp_path, capsys, tiny_folder):
    for file in tiny_folder("qwen2").iterdir():
        (tmp_path / file.name).write_bytes(
            file.read_bytes()[:1000] if file.suffix == ".safetensors" else file.read_bytes()
        )
    for model in ("no/such/folder/here", str(tmp_path)):
        assert main([model]) == 2
        assert capsys.readouterr().err.startswith("error: cannot read a model from agents.*.model=")
    assert main(["no/such/folder/here", "--skeleton", str(tmp_path / "new.py")]) == 2


def test_a_device_that_is_not_there_is_named(tiny_folder, capsys):
    assert main([str(tiny_folder("qwen2")), "--device", "nowhere"]) == 2
    assert capsys.readouterr().err.startswith("error: --device nowhere is not to be had: ")
