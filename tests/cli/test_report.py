import pytest

from mmcorl.cli.report import main

CONFIG = """
run: {name: pair, steps: 2}
agents: {ann: {model: a}, bob: {model: b}}
data: {train: {scenes: {size: 4}}}
"""


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "pair"
    (folder / "agents" / "ann").mkdir(parents=True)
    (folder / "config.yaml").write_text(CONFIG)
    (folder / "agents" / "ann" / "metrics.jsonl").write_text(
        '{"kind": "train", "step": 2, "agreement": 0.5}\n'
    )
    return folder


@pytest.mark.parametrize(
    ("form", "start"), [("html", b"<!DOCTYPE html>"), ("md", b"# pair"), ("png", b"\x89PNG")]
)
def test_the_report_lies_in_the_folder_of_the_run(run, capsys, form, start):
    assert main([str(run), "--format", form]) == 0
    path = run / f"report.{form}"
    assert path.read_bytes().lstrip().startswith(start)
    assert capsys.readouterr().out == f"written: {path}\n"


def test_it_can_be_written_elsewhere(run, tmp_path):
    assert main([str(run), "--output", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").exists() and not (run / "report.html").exists()


def test_mistakes_are_one_message(run, tmp_path, capsys):
    assert main([str(tmp_path / "none")]) == 2
    assert "is not the folder of a run (it does not exist)" in capsys.readouterr().err
    assert main([str(run), "--output", str(tmp_path / "no" / "page.html")]) == 2
    assert "choose another --output" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main([str(run), "--watch", "--format", "png"])
    assert "--watch writes no file" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main([str(run), "--watch", "--port", "65536"])
    assert "65536 is no port" in capsys.readouterr().err
