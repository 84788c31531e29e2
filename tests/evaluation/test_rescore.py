"""Stored completions are graded again; what the verdicts were does not matter, what the completions say does."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

import pytest

from mmcorl.cli import eval_rescore
from mmcorl.errors import MmcorlError
from mmcorl.evaluation.records import SAMPLES_FILE, read_result
from mmcorl.evaluation.rescore import NewVerdict, rescore
from mmcorl.files import Lines
from mmcorl.graders import Answer, Extraction, Grader

ANSWERS = {"a": {"1": ["4", "5"], "2": ["6", None]}}
GOLDS = {"1": "4", "2": "6"}


def spoil(out) -> None:
    """Turn the first verdict round, and have the second answer read wrongly."""
    result = read_result(out / "toy")
    first, second, *rest = result.samples
    (out / "toy" / SAMPLES_FILE).unlink()
    with Lines(out / "toy" / SAMPLES_FILE) as lines:
        changed = [replace(first, correct=False), replace(second, answer=Answer("math", "50")), *rest]
        lines.append(sample.to_json() for sample in changed)


def test_right_verdicts_stay_as_they_are(write_results):
    out = write_results("r", ANSWERS, GOLDS)
    file = out / "toy" / SAMPLES_FILE
    before, inode = file.read_bytes(), file.stat().st_ino
    with Grader() as grader:
        [change] = rescore(out, grader)
    assert (change.samples, change.right_before, change.right, change.reread) == (4, 2, 2, 0)
    assert change.new_verdicts == ()
    assert (file.read_bytes(), file.stat().st_ino) == (before, inode)


def test_wrong_verdicts_are_mended_and_named(write_results):
    out = write_results("r", ANSWERS, GOLDS)
    clean = read_result(out / "toy").samples
    spoil(out)
    with Grader() as grader:
        [change] = rescore(out, grader)
    assert (change.right_before, change.right, change.reread) == (1, 2, 1)
    assert change.new_verdicts == (NewVerdict("a", "1", 0, "4", "4", "4", True),)
    assert read_result(out / "toy").samples == clean
    assert sorted(p.name for p in (out / "toy").iterdir()) == [
        "benchmark.json",
        "problems.jsonl",
        SAMPLES_FILE,
    ]


def test_a_dry_run_writes_nothing(write_results):
    out = write_results("r", ANSWERS, GOLDS)
    spoil(out)
    before = (out / "toy" / SAMPLES_FILE).read_bytes()
    with Grader() as grader:
        [change] = rescore(out, grader, write=False)
    assert len(change.new_verdicts) == 1
    assert (out / "toy" / SAMPLES_FILE).read_bytes() == before


def test_what_was_left_by_a_kill_is_replaced(write_results):
    out = write_results("r", ANSWERS, GOLDS)
    clean = read_result(out / "toy").samples
    spoil(out)
    (out / "toy" / f".{SAMPLES_FILE}.partial").write_text('{"torn')
    with Grader() as grader:
        rescore(out, grader)
    assert read_result(out / "toy").samples == clean


def test_the_grader_decides_what_is_an_answer(write_results):
    """A completion that marks no answer: its last number counts where the grader takes one."""
    out = write_results("r", {"a": {"1": ["4"]}}, {"1": "4"})
    result = read_result(out / "toy")
    (out / "toy" / SAMPLES_FILE).unlink()
    with Lines(out / "toy" / SAMPLES_FILE) as lines:
        lines.append([replace(result.samples[0], completion="2 and 2 make 4 in all").to_json()])
    with Grader() as strict, Grader(Extraction(last_number=True)) as loose:
        assert rescore(out, strict, write=False)[0].right == 0
        assert rescore(out, loose, write=False)[0].right == 1


def test_the_recorded_convention_is_used(write_results):
    fields = {"1": {"precision": 1, "answer_type": "float"}}
    for convention, right in (("strict", 0), ("mathvista", 1)):
        out = write_results(
            convention, {"a": {"1": ["7.9"]}}, {"1": "7"}, declaration={"convention": convention}
        )
        with Grader() as grader:
            assert rescore(out, grader)[0].right == right, convention
    out = write_results("rounded", {"a": {"1": ["1.23"]}}, {"1": "1.2"}, fields)
    with Grader() as grader:
        assert rescore(out, grader)[0].right == 1


def run(module, arguments: list[str]) -> int:
    """The subcommand as `mmcorl-eval` calls it."""
    parser = argparse.ArgumentParser()
    module.add_parser(parser.add_subparsers())
    options = parser.parse_args(arguments)
    return options.command(options)


def test_the_command_writes_verdicts_and_summary_and_says_what_changed(write_results, capsys):
    out = write_results("r", ANSWERS, GOLDS)
    spoil(out)
    assert run(eval_rescore, ["rescore", str(out), "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["right"] == 2
    assert not (out / "summary.json").exists()
    assert run(eval_rescore, ["rescore", str(out)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "toy: 4 samples, 1 right before and 2 now; 1 new verdicts, 1 answers read differently" in printed
    assert "now right: 1 (a, sample 0): gold '4', read '4' before and '4' now" in printed
    assert json.loads((out / "summary.json").read_text())["scores"][0]["accuracy"]["value"] == 0.5


def test_a_sample_of_no_problem_is_refused(write_results):
    out = write_results("r", ANSWERS, GOLDS)
    with Lines(out / "toy" / SAMPLES_FILE) as lines:
        lines.append([replace(read_result(out / "toy").samples[0], problem="3").to_json()])
    with Grader() as grader, pytest.raises(MmcorlError, match="sample 0 of problem 3 by a is one too many"):
        rescore(out, grader)
