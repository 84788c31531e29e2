"""What is written is read back, and a kill at any byte costs at most the line that it tore."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mmcorl.errors import MmcorlError
from mmcorl.evaluation.records import (
    BenchmarkRecord,
    ProblemRecord,
    RunRecord,
    SampleRecord,
    Sampling,
    benchmark_folders,
    read_result,
    read_run,
    read_samples,
    write_benchmark,
    write_run,
)
from mmcorl.files import Lines
from mmcorl.graders.answers import Answer

RUN = RunRecord({"a": "models/a"}, None, {"prompt": {"system": None}}, {"mmcorl": "0.1.0"})
SAMPLING = Sampling(2, 0.6, 0.95, 8, 0)
BENCHMARK = BenchmarkRecord(
    "toy", 1, "d" * 64, {"name": "toy"}, SAMPLING, "toy.jsonl", "f" * 64, 1, {"no answer": 3}
)
PROBLEM = ProblemRecord("p", "Which?", ["x", "y"], "choice", "B", {"precision": 1}, ["0" * 64])
SAMPLE = SampleRecord("p", "a", 0, "h" * 64, "\\boxed{B}", 4, True, Answer("choice", "B"), True, 0.25)


def test_round_trip(tmp_path):
    write_run(tmp_path, RUN)
    write_benchmark(tmp_path / "toy", BENCHMARK, [PROBLEM])
    second = replace(SAMPLE, sample=1, completion="so … \ud800\n\u2028", answer=None, correct=False)
    with Lines(tmp_path / "toy" / "samples.jsonl") as lines:
        lines.append([SAMPLE.to_json()])
        assert read_result(tmp_path / "toy").missing(RUN) == 1
        lines.append([second.to_json()])
    result = read_result(tmp_path / "toy")
    assert read_run(tmp_path) == RUN
    assert (result.benchmark, result.problems, result.samples) == (BENCHMARK, [PROBLEM], [SAMPLE, second])
    assert result.missing(RUN) == 0
    assert benchmark_folders(tmp_path) == [tmp_path / "toy"]
    assert PROBLEM.problem().choices == ("x", "y")


def test_a_torn_line_is_dropped_wherever_it_was_torn(tmp_path):
    path = tmp_path / "samples.jsonl"
    with Lines(path) as lines:
        lines.append([SAMPLE.to_json(), replace(SAMPLE, sample=1).to_json()])
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for cut in range(first, len(whole)):
        path.write_bytes(whole[:cut])
        assert [s.sample for s in read_samples(tmp_path)] == [0]
        with Lines(path) as lines:
            lines.append([replace(SAMPLE, sample=1).to_json()])
        assert path.read_bytes() == whole


def test_what_is_no_result_folder_is_named(tmp_path):
    with pytest.raises(MmcorlError, match="holds no results"):
        benchmark_folders(tmp_path)
    with pytest.raises(MmcorlError, match=r"run\.json does not exist"):
        read_run(tmp_path)
    (tmp_path / "run.json").write_text('{"models": {}}')
    with pytest.raises(MmcorlError, match="no RunRecord"):
        read_run(tmp_path)
    (tmp_path / "samples.jsonl").write_text('{"problem": "p"}\n')
    with pytest.raises(MmcorlError, match="line 1, is no SampleRecord"):
        read_samples(tmp_path)
    (tmp_path / "samples.jsonl").unlink()
    with Lines(tmp_path / "samples.jsonl") as lines:
        lines.append([SAMPLE.to_json() | {"completion": 5}])
    with pytest.raises(MmcorlError, match="completion is text"):
        read_samples(tmp_path)
