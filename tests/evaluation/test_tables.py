"""The summary of a result folder in its three files and on the screen."""

from __future__ import annotations

import csv
import io
import json

from rich.console import Console

from mmcorl.evaluation.tables import Summary, as_table, summarize, to_csv, to_markdown, write_summary
from mmcorl.graders import Grader


def summary_of(out) -> Summary:
    with Grader() as grader:
        return summarize(out, grader.classes)


def two_models(write_results):
    answers = {"a": {"1": ["4", "4", "6", "7"]}, "b": {"1": ["6", "6", "4", "6"]}}
    return write_results("r", answers, {"1": "6"})


def test_an_ensemble_is_one_vote_over_all_models(write_results):
    summary = summary_of(two_models(write_results))
    assert [(s.model, s.accuracy.value, s.majority and s.majority.value) for s in summary.scores] == [
        ("a", 0.25, 0.0),
        ("b", 0.75, 1.0),
    ]
    [ensemble] = summary.ensembles
    assert (ensemble.models, ensemble.samples, ensemble.majority.value) == (("a", "b"), 4, 1.0)


def test_one_model_is_no_ensemble(write_results):
    assert summary_of(write_results("r", {"a": {"1": ["6"]}}, {"1": "6"})).ensembles == []


def test_csv_has_a_line_a_model_and_one_for_the_vote(write_results):
    lines = list(csv.DictReader(io.StringIO(to_csv(summary_of(two_models(write_results))))))
    assert [(line["model"], line["samples"], line["accuracy"], line["majority"]) for line in lines] == [
        ("a", "4", "0.25", "0.0"),
        ("b", "4", "0.75", "1.0"),
        ("a + b", "8", "", "1.0"),
    ]
    assert lines[0]["problems"] == "1" and lines[0]["extraction_rate"] == "1.0"


def test_markdown_has_a_row_a_model_and_a_mean_only_of_whole_rows(write_results):
    write_results("r", {"a": {"1": ["6"]}, "b": {"1": ["5"]}}, {"1": "6"}, benchmark="one")
    out = write_results("r", {"a": {"1": ["6"], "2": ["0"]}, "b": {}}, {"1": "6", "2": "1"}, benchmark="two")
    text = to_markdown(summary_of(out)).splitlines()
    assert text[0] == "| model | one | two | mean |"
    assert text[2] == "| a | 100.0 [100.0, 100.0] | 50.0 [0.0, 100.0] | 75.0 |"
    assert text[3] == "| b | 0.0 [0.0, 0.0] | - | - |"


def test_files_and_screen_show_the_same(write_results):
    fields = {"1": {"version": "Text Only"}}
    out = write_results("r", {"a": {"1": ["6"]}}, {"1": "6"}, fields, declaration={"by": ["version"]})
    summary = summary_of(out)
    write_summary(out, summary)
    stored = json.loads((out / "summary.json").read_text())
    assert stored["scores"][0]["breakdown"]["version"]["Text Only"]["value"] == 1.0
    assert (out / "summary.csv").read_text() == to_csv(summary)
    assert (out / "summary.md").read_text() == to_markdown(summary)
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(as_table(summary))
    assert "version: Text Only" in (text := console.export_text()) and "100.0 [100.0, 100.0]" in text


def test_a_terminal_of_80_columns_shows_every_column(write_results):
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(as_table(summary_of(two_models(write_results))))
    heads = console.export_text().splitlines()[2].split()
    assert heads == ["benchmark", "model", "k", "n", "avg@k", "pass@k", "maj@k", "ties", "read", "cut"]


def test_votes_alone_leave_the_averages_out(write_results):
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(as_table(summary_of(two_models(write_results)), votes_only=True))
    text = console.export_text()
    assert "avg@k" not in text and "a + b" in text and "100.0 [100.0, 100.0]" in text
