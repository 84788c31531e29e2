"""A run writes down every sample, and one that was killed ends with the file of one that was not."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mmcorl.cli.eval import main
from mmcorl.errors import MmcorlError
from mmcorl.evaluation.benchmarks import load_declaration
from mmcorl.evaluation.evaluate import evaluate
from mmcorl.evaluation.records import read_benchmark, read_run, read_samples
from mmcorl.evaluation.settings import Asked, EvaluationSettings, read_settings

AGENTS = Path(__file__).parents[2] / "data_tools" / "tiny_agents"
QWEN, INTERNVL = AGENTS / "qwen2_5_vl", AGENTS / "internvl"
SETTINGS = read_settings(None, ["prompt.instruction=Think, then answer."])
SCENES = [load_declaration("scenes")]


def run(out: Path, models: dict[str, Path] | None = None, **asked):
    named = {name: str(model) for name, model in (models or {"qwen": QWEN}).items()}
    return evaluate(named, SCENES, Asked(SETTINGS, **({"max_tokens": 10, "limit": 12} | asked)), out, {})


def samples(out: Path) -> list[dict]:
    """What is stored, without the time that it took."""
    lines = (out / "scenes" / "samples.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(line).items() if k != "seconds"} for line in lines]


def test_samples_say_how_they_came_about(tmp_path):
    summary = run(tmp_path)
    stored = read_samples(tmp_path / "scenes")
    assert [s.problem for s in stored] == [f"count-2-{i}" for i in range(12)]
    assert all(
        s.model == "qwen" and s.finished and s.answer and s.tokens <= 10 and s.seconds > 0 for s in stored
    )
    assert len({s.prompt_hash for s in stored}) == 12
    [scores] = summary.scores
    assert scores.accuracy.value == sum(s.correct for s in stored) / 12
    assert json.loads((tmp_path / "summary.json").read_text())["scores"][0]["benchmark"] == "scenes"
    benchmark = read_benchmark(tmp_path / "scenes")
    assert (benchmark.problems, benchmark.sampling.temperature, benchmark.version) == (12, 0.0, 1)
    assert read_run(tmp_path).settings["prompt"]["instruction"] == "Think, then answer."


def test_batches_change_neither_answers_nor_their_order(tmp_path):
    sampled = {"samples": 3, "temperature": 1.0}
    run(tmp_path / "one", batch=1, **sampled)
    run(tmp_path / "all", batch=64, **sampled)
    assert samples(tmp_path / "one") == samples(tmp_path / "all")


def test_models_draw_different_noise_and_the_seed_matters(tmp_path):
    sampled = {"samples": 4, "temperature": 1.0}
    run(tmp_path / "twice", {"a": QWEN, "b": QWEN}, **sampled)
    run(tmp_path / "seed", {"a": QWEN}, seed=1, **sampled)
    both = samples(tmp_path / "twice")
    first, second = ([s["completion"] for s in both if s["model"] == name] for name in "ab")
    assert first != second
    assert first != [s["completion"] for s in samples(tmp_path / "seed")]


def test_a_narrow_nucleus_draws_the_greedy_answer(tmp_path):
    run(tmp_path / "narrow", samples=2, temperature=1.0, top_p=1e-9)
    run(tmp_path / "greedy")
    greedy = {s["problem"]: s["completion"] for s in samples(tmp_path / "greedy")}
    assert all(s["completion"] == greedy[s["problem"]] for s in samples(tmp_path / "narrow"))


def test_a_finished_run_loads_no_model(tmp_path):
    model = shutil.copytree(QWEN, tmp_path / "model")
    first = run(tmp_path / "out", {"a": model})
    shutil.rmtree(model)
    assert run(tmp_path / "out", {"a": model}) == first


def test_benchmarks_can_be_added_and_settings_cannot_be_changed(tmp_path):
    run(tmp_path)
    with pytest.raises(
        MmcorlError, match=r"begun with sampling.max_tokens=10 and this is sampling.max_tokens=11"
    ):
        run(tmp_path, max_tokens=11)
    with pytest.raises(MmcorlError, match=r"begun with limit=12 and this is limit=13.*another --out"):
        run(tmp_path, limit=13)
    with pytest.raises(MmcorlError, match=r"models.b=None and this is models.b="):
        run(tmp_path, {"qwen": QWEN, "b": INTERNVL})


def test_a_mistake_before_the_first_sample_binds_nobody(tmp_path):
    with pytest.raises(MmcorlError, match="cannot read a model from"):
        run(tmp_path, {"a": tmp_path / "nowhere"})
    run(tmp_path, {"a": QWEN}, limit=2)
    assert len(samples(tmp_path)) == 2


def test_a_torn_batch_is_completed_in_order(tmp_path):
    sampled = {"samples": 2, "temperature": 1.0, "batch": 4}
    run(tmp_path / "whole", **sampled)
    run(tmp_path / "torn", **sampled)
    path = tmp_path / "torn" / "scenes" / "samples.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(
        b"".join(lines[:11]) + lines[11][:30]
    )  # in the middle of the second batch, and of a line
    run(tmp_path / "torn", **sampled)
    assert samples(tmp_path / "torn") == samples(tmp_path / "whole")
    assert path.read_bytes().splitlines(keepends=True)[:11] == lines[:11]  # what was there was not done again


def test_kill_and_go_on(tmp_path):
    """kill -9 in the middle of a run of two models, rerun: the result files of an uninterrupted run."""
    command = [
        f"--model=qwen={QWEN}", f"--model=internvl={INTERNVL}", "--suite=scenes", "--limit=60", "--batch=2",
        "--samples=2", "--temperature=1", "--max-tokens=10", "prompt.instruction=Think, then answer.",
    ]  # fmt: skip
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    process = subprocess.Popen(
        [sys.executable, "-m", "mmcorl.cli.eval", *command, f"--out={killed}"], stderr=subprocess.DEVNULL
    )
    path = killed / "scenes" / "samples.jsonl"
    deadline = time.monotonic() + 120
    while not (path.exists() and path.read_bytes().count(b"\n") >= 20) and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    before = path.read_bytes()
    assert 20 <= before.count(b"\n") < 240
    assert main([*command, f"--out={killed}"]) == 0
    assert main([*command, f"--out={whole}"]) == 0
    kept = before[: before.rfind(b"\n") + 1]
    assert path.read_bytes().startswith(kept)
    assert samples(killed) == samples(whole)
    for name in ("run.json", "scenes/benchmark.json", "scenes/problems.jsonl", "summary.md"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes()


def test_how_often_a_benchmark_is_sampled():
    amc, gsm8k = load_declaration("amc"), load_declaration("gsm8k")
    plain = Asked(EvaluationSettings())
    assert (plain.sampling(gsm8k).samples, plain.sampling(gsm8k).temperature) == (1, 0.0)
    assert (plain.sampling(amc).samples, plain.sampling(amc).temperature, plain.sampling(amc).top_p) == (
        8,
        0.6,
        0.95,
    )
    greedy = Asked(EvaluationSettings(), temperature=0.0).sampling(amc)
    assert (greedy.samples, greedy.temperature, greedy.top_p) == (1, 0.0, 1.0)
    assert Asked(EvaluationSettings(), samples=16).sampling(amc).samples == 16
    with pytest.raises(MmcorlError, match=r"--samples=4 of gsm8k would all be the same"):
        Asked(EvaluationSettings(), samples=4).sampling(gsm8k)


def test_programs_may_use_more_than_in_training_unless_it_is_set():
    assert read_settings(None, []).code == EvaluationSettings().code
    code = read_settings(None, ["code.memory_mib=512"]).code
    assert (code.memory_mib, code.case_seconds, code.unprotected) == (512, 6.0, False)


def test_instructions_of_benchmarks_and_of_the_user():
    code = load_declaration("mbpp")
    settings = read_settings(None, ["prompt.instruction=Mine."])
    assert "python block" in Asked(settings).prompt(code).instruction
    assert Asked(settings, own_instruction=True).prompt(code).instruction == "Mine."
    assert Asked(settings).prompt(load_declaration("gsm8k")).instruction == "Mine."
