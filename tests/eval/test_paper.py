"""The paper's reported figures re-add, and tables are built from result folders."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from mmcorl.evaluation.benchmarks import benchmark_names


def test_every_reported_row_is_the_mean_of_its_benchmarks(paper):
    """99 rows. A mean of n figures rounded to 0.1 (0.01) is off by up to half of that, and then rounded once more."""
    rows = paper.read_reported()
    assert len(rows) == 99 and {row.table for row in rows} == {1, 2, 3, 4, 8, 9, 10, 11}
    for row, figures in rows.items():
        *parts, average = figures.values()
        unit = 10.0 ** int(average.as_tuple().exponent)
        assert abs(sum(map(float, parts)) / len(parts) - float(average)) < 0.55 * unit, row


def test_every_benchmark_of_the_paper_has_a_declaration(paper):
    named = {name for figures in paper.read_reported().values() for name in figures} - {paper.AVERAGE}
    assert named == set(paper.NAMES)
    assert set(paper.NAMES.values()) <= set(benchmark_names())


def write_rows(path: Path, *rows: tuple[int, str, str, str, str]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("table", "model", "train_data", "method", "results"), *rows])
    return path


VISUAL = ("mathvision", "mathverse", "mathvista", "wemath")


def write_visual(write_results: Callable[..., Path], folder: str, answers: dict) -> None:
    for benchmark in VISUAL:
        write_results(folder, answers, {"1": "6", "2": "5"}, benchmark=benchmark)


def test_a_row_with_all_its_benchmarks_has_an_average(paper, write_results, tmp_path):
    write_visual(write_results, "base", {"m": {"1": ["6"], "2": ["0"]}})
    rows = write_rows(tmp_path / "rows.csv", (4, "Qwen2.5-VL-3B", "open-r1", "Base", "base"))
    assert paper.main([str(rows), str(tmp_path / "out")]) == 0
    with (tmp_path / "out" / "paper.csv").open() as file:
        found = [line for line in csv.DictReader(file) if line["ours"]]
    assert [(line["benchmark"], line["ours"]) for line in found] == [
        ("MathVision", "50.00"), ("MathVerse", "50.00"), ("MathVista", "50.00"), ("We-Math", "50.00"), ("Avg", "50.00"),
    ]  # fmt: skip
    assert (found[-1]["reported"], found[-1]["difference"]) == ("37.24", "12.76")
    text = (tmp_path / "out" / "paper.md").read_text()
    assert "5 of 648 figures are there, 643 are missing." in text
    assert "50.00 (37.24, +12.76) |" in text


def test_a_row_that_lacks_a_benchmark_has_no_average(paper, write_results, tmp_path):
    write_results("base", {"m": {"1": ["6"]}}, {"1": "6"}, benchmark="mathvista")
    rows = write_rows(tmp_path / "rows.csv", (4, "Qwen2.5-VL-3B", "open-r1", "Base", "base"))
    assert paper.main([str(rows), str(tmp_path / "out")]) == 0
    text = (tmp_path / "out" / "paper.md").read_text()
    assert "1 of 648 figures are there" in text and "- (37.24) |" in text


def test_tables_of_votes_pool_the_models_of_a_row(paper, write_results, tmp_path):
    """[4,4,6,7] + [6,6,4,6] is right on problem 1; the single model needs all of its eight: 4 against 6 is a tie."""
    first, second = ["4", "4", "6", "7", "4", "6", "6", "7"], ["6", "6", "4", "6", "0", "0", "0", "0"]
    for folder, answers in (("qwen", first), ("intern", second)):
        write_results(folder, {"m": {"1": answers}}, {"1": "6"}, benchmark="mathvista")
    rows = write_rows(
        tmp_path / "rows.csv",
        (11, "", "open-r1", "TTRL (Qwen2.5-VL)", "qwen"),
        (11, "", "open-r1", "TTRL (ensemble)", "qwen + intern:m"),
    )
    assert paper.main([str(rows), str(tmp_path / "out")]) == 0
    with (tmp_path / "out" / "paper.csv").open() as file:
        found = {
            line["method"]: (line["ours"], line["samples"]) for line in csv.DictReader(file) if line["ours"]
        }
    assert found == {"TTRL (Qwen2.5-VL)": ("50.00", "8"), "TTRL (ensemble)": ("100.00", "8")}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((4, "Qwen2.5-VL-3B", "open-r1", "Bass", "base"), "the paper has no row"),
        (("four", "Qwen2.5-VL-3B", "open-r1", "Base", "base"), "'four' is no number"),
        ((4, "Qwen2.5-VL-3B", "open-r1", "Base", "nowhere"), r"nowhere/run.json does not exist"),
        ((4, "Qwen2.5-VL-3B", "open-r1", "Base", "base:x"), "has no model 'x'; it has m"),
        ((4, "Qwen2.5-VL-3B", "open-r1", "Base", "base + base"), "only Tables 10 and 11 pool"),
        ((11, "", "open-r1", "TTRL (Qwen2.5-VL)", "base"), "has 1 samples a problem, and the vote takes 8"),
    ],
)  # fmt: skip
def test_wrong_rows_are_named(paper, write_results, tmp_path, capsys, row, message):
    write_results("base", {"m": {"1": ["6"]}}, {"1": "6"}, benchmark="mathvista")
    assert paper.main([str(write_rows(tmp_path / "rows.csv", row)), str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err


def test_what_is_no_table_is_named(paper, tmp_path, capsys):
    (tmp_path / "rows.csv").write_bytes(b"\x89PNG")
    assert paper.main([str(tmp_path / "rows.csv"), str(tmp_path / "out")]) == 2
    assert "is no file of rows" in capsys.readouterr().err


def test_the_template_is_a_file_of_rows_without_results(paper, tmp_path, capsys):
    assert paper.main(["--template"]) == 0
    (tmp_path / "rows.csv").write_text(capsys.readouterr().out)
    assert paper.main([str(tmp_path / "rows.csv"), str(tmp_path / "out")]) == 0
    assert "0 of 648 figures are there" in (tmp_path / "out" / "paper.md").read_text()
