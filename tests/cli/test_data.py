from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from mmcorl.cli.data import main
from mmcorl.data.storage import read_header, read_problems

FIXTURES = Path(__file__).parents[1] / "data" / "fixtures"


def fails(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("error: ")
    return output.err


def lines_of(path: Path, *rows: dict[str, object]) -> Path:
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


def test_scenes_are_written_shown_and_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    out = tmp_path / "scenes"
    assert (
        main(
            [
                "scenes",
                str(out),
                "--size",
                "12",
                "--seed",
                "5",
                "--tasks",
                "count,add",
                "--choice-share",
                "0.5",
            ]
        )
        == 0
    )
    header = read_header(out)
    assert header.count == 12
    assert '"seed":5' in header.source
    problems = [problem for problem, _ in read_problems(out)]
    assert {problem.id.split("-")[0] for problem in problems} == {"count", "add"}
    assert 0 < sum(problem.kind == "choice" for problem in problems) < 12

    assert main(["show", str(out), "--row", "3", "--out", str(tmp_path / "page.png")]) == 0
    with Image.open(tmp_path / "page.png") as page:
        assert page.format == "PNG"
        assert page.height > 200

    capsys.readouterr()
    assert main(["check", str(out)]) == 0
    table = capsys.readouterr().out
    assert "kept                                      12  100.0%" in table


def test_check_fails_where_rows_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = lines_of(tmp_path / "rows.jsonl", {"prompt": "q"}, {"prompt": "r", "choices": "x"})
    assert main(["check", str(path)]) == 1
    assert "set --columns.question=prompt" in capsys.readouterr().out
    assert main(["check", str(path), "--columns.question=prompt"]) == 1
    assert "choices are not a list of strings" in capsys.readouterr().out
    assert main(["check", str(path), "--columns.question=prompt", "--columns.choices=null"]) == 0


def test_a_public_source_is_prepared_checked_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    copy, out = str(FIXTURES / "mmk12" / "k12_sample.jsonl"), tmp_path / "out"
    assert main(["prepare", "mmk12", str(out), "--path", copy]) == 0
    assert capsys.readouterr().out == f"wrote 6 problems to {out}\n"
    assert read_header(out).count == 6

    assert main(["check", str(out)]) == 0
    table = capsys.readouterr().out
    assert "gold that no grader reads                1   16.7%" in table
    assert "prompt tokens" not in table
    assert main(["check", "mmk12", "--path", copy, "--against", str(out)]) == 1
    assert "question and image                       6  100.0%" in capsys.readouterr().out

    page = tmp_path / "page.png"
    assert main(["show", "mmk12", "--path", copy, "--row", "2", "--out", str(page)]) == 0
    assert Image.open(page).format == "PNG"


def test_dropped_rows_are_told_by_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    copy = str(FIXTURES / "math500.jsonl")
    assert main(["prepare", "math-level345", str(tmp_path / "out"), "--path", copy]) == 0
    assert "wrote 1 problems" in (told := capsys.readouterr().out)
    assert "dropped 7: left out by level" in told
    assert main(["check", "math-level345", "--path", copy]) == 0  # left out on purpose
    assert "left out by level                          7   87.5%" in capsys.readouterr().out


def test_prompt_lengths_of_a_model(
    tmp_path: Path, tiny_folder: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
):
    copy, model = str(FIXTURES / "geometry3k" / "hf_style.jsonl"), str(tiny_folder("qwen2_5_vl"))

    def longest(*arguments: str) -> int:
        assert main(["check", "geometry3k", "--path", copy, "--model", model, *arguments]) == 0
        table = capsys.readouterr().out
        return int(table.partition("longest")[2].split()[0])

    run = tmp_path / "run.yaml"
    run.write_text(
        f"agents: {{a: {{model: {model}}}}}\ncohort: {{topology: self}}\ndata: {{train: {{scenes: {{}}}}}}\n"
    )
    config = run.read_text()
    whole = longest("--config", str(run))
    assert whole == longest()
    run.write_text(config + "images: {max_pixels: 10000}\n")
    assert longest("--config", str(run)) < whole


def test_a_test_set_by_name(capsys: pytest.CaptureFixture[str]):
    copy = str(FIXTURES / "gsm8k_test.jsonl")
    assert main(["check", "gsm8k", "--path", copy, "--against", f"gsm8k={copy}"]) == 1
    assert "question, of text problems               6  100.0%" in capsys.readouterr().out


def test_mistakes_of_sources(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    out, copy = str(tmp_path / "out"), str(FIXTURES / "gsm8k_test.jsonl")
    assert "is no public source; the nearest is gsm8k" in fails(
        capsys, "prepare", "gsm9k", out, "--path", copy
    )
    assert "--source=comas is not on the hub; set --path" in fails(capsys, "prepare", "comas", out)
    assert "knows its columns" in fails(
        capsys, "prepare", "gsm8k", out, "--path", copy, "--columns.answer=gold"
    )
    assert "name their --model too" in fails(capsys, "check", "gsm8k", "--path", copy, "--config", "run.yaml")
    assert "there is no benchmark 'none'" in fails(
        capsys, "check", "gsm8k", "--path", copy, "--against", "none"
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["--workers", "--limit"])
def test_counts_are_at_least_one(option: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit, match="2"):
        main(["prepare", "gsm8k", "out", option, "0"])
    assert f"argument {option}: 0 is below 1" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["scenes", "prepare", "show", "check"])
def test_every_command_has_an_example(command: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    assert f"example: mmcorl-data {command} " in " ".join(capsys.readouterr().out.split())


def test_mistakes_end_in_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = str(lines_of(tmp_path / "rows.jsonl", {"question": "q"}, {"question": 3}))
    page = str(tmp_path / "page.png")
    assert "does not exist" in fails(capsys, "check", str(tmp_path / "none"))
    assert "row 1 of" in fails(capsys, "show", path, "--row", "1", "--out", page)
    assert "--row=2 is past the last row" in fails(capsys, "show", path, "--row", "2", "--out", page)
    assert "--row=-1 is negative" in fails(capsys, "show", path, "--row", "-1", "--out", page)
    assert "cannot be written" in fails(capsys, "show", path, "--out", str(tmp_path / "page.xyz"))
    assert "cannot be written" in fails(capsys, "show", path, "--out", str(tmp_path / "no" / "page.png"))
    assert "tasks.0='sing'" in fails(capsys, "scenes", str(tmp_path / "s"), "--tasks", "sing")
    assert "size=0: must be" in fails(capsys, "scenes", str(tmp_path / "s"), "--size", "0")
    assert "exists already" in fails(capsys, "scenes", str(tmp_path), "--size", "1")
    assert [file.name for file in tmp_path.iterdir()] == ["rows.jsonl"]


def test_help_needs_nothing_heavy():
    code = (
        "import sys\n"
        "from mmcorl.cli.data import main\n"
        "try: main(['--help'])\n"
        "except SystemExit as end: assert end.code == 0\n"
        "print(sorted({'torch', 'datasets', 'PIL', 'pydantic', 'matplotlib', 'pyarrow'} & set(sys.modules)))\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "scenes" in result.stdout
    assert result.stdout.splitlines()[-1] == "[]"
