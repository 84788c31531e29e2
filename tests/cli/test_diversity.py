from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from PIL import Image

from mmcorl.cli.diversity import main

GOLDS = {f"p{i}": str(i) for i in range(40)}


def written(path: Path, right: range, samples: int = 3, wrong: str = "99") -> str:
    """A file of completions of a model that is right on a range of the problems."""
    lines = [
        {
            "problem": name,
            "gold": gold,
            "completions": [f"So \\boxed{{{gold if i in right else wrong}}}."] * samples,
        }
        for i, (name, gold) in enumerate(GOLDS.items())
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


@pytest.fixture
def stored(tmp_path):
    """An anchor, a model that errs where it does, and one that errs elsewhere."""
    anchor = written(tmp_path / "anchor.jsonl", range(20))
    same = written(tmp_path / "same.jsonl", range(1, 21))
    other = written(tmp_path / "other.jsonl", range(20, 40), wrong="98")
    return ["--completions", anchor, "--completions", same, "--completions", other]


def rows(out: Path) -> dict[tuple[str, str, str], dict[str, str]]:
    with (out / "pairs.csv").open() as file:
        return {(row["level"], row["model_a"], row["model_b"]): row for row in csv.DictReader(file)}


def test_stored_completions_are_measured_without_a_model(tmp_path, stored, capsys):
    out = tmp_path / "out"
    assert main([*stored, "--anchor", "anchor", "--out", str(out)]) == 0
    text = capsys.readouterr().out
    assert "anchor: take other" in text and "anchor with each, by votes" in text
    found = rows(out)
    assert float(found["samples", "anchor", "other"]["kappa"]) == pytest.approx(-1)
    assert float(found["samples", "anchor", "same"]["w"]) == pytest.approx(19 / 40)
    assert float(found["votes", "anchor", "other"]["u"]) == 1
    assert float(found["samples", "anchor", "anchor"]["kappa"]) == pytest.approx(1)
    assert next(key[1:] for key in found) in (("anchor", "other"), ("same", "other"))
    [advice] = json.loads((out / "advice.json").read_text())["votes"]
    assert (advice["anchor"], advice["partner"], advice["certain"]) == ("anchor", "other", True)
    with Image.open(out / "heatmap.png") as picture:
        assert picture.width > picture.height > 300


def test_without_an_anchor_every_model_gets_advice(tmp_path, stored, capsys):
    assert main([*stored, "--out", str(tmp_path / "out")]) == 0
    text = capsys.readouterr().out
    assert "anchor: take other" in text and "same: take other" in text and "other: " in text


def test_single_samples_have_no_votes_and_no_pair_with_itself(tmp_path, capsys):
    files = [
        written(tmp_path / f"{name}.jsonl", right, samples=1)
        for name, right in (("a", range(20)), ("b", range(30)))
    ]
    assert (
        main(
            ["--completions", files[0], "--completions", f"second={files[1]}", "--out", str(tmp_path / "out")]
        )
        == 0
    )
    assert list(rows(tmp_path / "out")) == [("samples", "a", "second")]


def test_problems_that_not_all_answered_are_left_out(tmp_path, stored, capsys):
    path = Path(stored[-1])
    path.write_text("\n".join(path.read_text().splitlines()[:30]) + "\n")
    assert main([*stored, "--out", str(tmp_path / "out")]) == 0
    assert "10 problems are left out" in capsys.readouterr().out


def test_models_are_sampled_once(tmp_path, tiny_folder, capsys, monkeypatch):
    out = tmp_path / "out"
    models = [f"--model={name}={tiny_folder(name)}" for name in ("qwen2_5_vl", "internvl")]
    asked = [
        *models,
        "--data",
        "scenes",
        "--limit",
        "3",
        "--samples",
        "2",
        "--max-tokens",
        "4",
        "--out",
        str(out),
    ]
    asked += ["prompt.instruction=Answer.", "data.scenes.seed=3"]
    assert main(asked) == 0
    assert "qwen2_5_vl: 3 problems to answer 2 times" in capsys.readouterr().err
    first = {path.name: path.read_bytes() for path in (out / "completions").iterdir()}
    assert sorted(first) == ["internvl.jsonl", "qwen2_5_vl.jsonl"]
    cut = out / "completions" / "internvl.jsonl"
    cut.write_bytes(first["internvl.jsonl"][:-20])  # as a kill would leave it

    assert main(asked) == 0
    assert capsys.readouterr().err.splitlines()[0] == "internvl: 1 problems to answer 2 times"
    assert {path.name: path.read_bytes() for path in (out / "completions").iterdir()} == first
    assert main([*asked, f"--completions=again={cut}"]) == 0
    assert ("samples", "internvl", "again") in rows(out)

    asked[asked.index("--samples") + 1] = "3"
    assert main(asked) == 2
    assert "was begun with samples=2 and this is samples=3" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--completions", "a.jsonl"], "several models"),
        (["--completions", "a.jsonl", "--completions", "no.jsonl"], "no.jsonl: no such file"),
        (["--completions", "a.jsonl", "--completions", "a.jsonl"], "two models are called a"),
        (["--completions", "a.jsonl", "--completions", "bad.jsonl"], "bad.jsonl, line 1"),
        (["--completions", "a.jsonl", "--completions", "other.jsonl"], "no problem was answered by all"),
        (["--completions", "a.jsonl", "--completions", "gold.jsonl"], "another gold"),
        (
            ["--completions", "a.jsonl", "--completions", "b=a.jsonl", "--anchor", "c"],
            "--anchor c is none of a, b",
        ),
        (["--model", "m"], "--model needs --data"),
        (
            ["--model", "m", "--data", "scenes", "--temperature", "0"],
            "--temperature=0.0 is no number above 0",
        ),
        (
            ["--model", "m", "--data", "scenes", "--temperature", "nan"],
            "--temperature=nan is no number above 0",
        ),
        (["--model", "m", "--data", "scenes", "prompt.wrong=1"], "prompt.wrong is not a setting"),
    ],
)
def test_wrong_use_is_one_message(tmp_path, monkeypatch, capsys, arguments, said):
    monkeypatch.chdir(tmp_path)
    written(Path("a.jsonl"), range(3))
    Path("bad.jsonl").write_text('{"problem": "p0", "gold": "1"}\n')
    Path("other.jsonl").write_text('{"problem": "q", "gold": "1", "completions": ["1"]}\n')
    Path("gold.jsonl").write_text('{"problem": "p0", "gold": "7", "completions": ["1"]}\n')
    assert main([*arguments, "--out", "out"]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("error: ") and said in captured.err
