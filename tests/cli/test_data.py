from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from mmcorl.cli.data import main
from mmcorl.data.storage import read_header, read_problems


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
