"""Stored completions of public models, scored again beside the verdicts that they came with."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from mmcorl.evaluation.records import read_result

STORED = Path(__file__).parent / "fixtures" / "stored_completions.jsonl"


@pytest.fixture(scope="module")
def scored(official, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("official")
    assert official.main([str(STORED), str(out)]) == 0
    return out


def test_every_row_is_a_sample_of_its_benchmark(scored):
    results = {
        name: read_result(scored / "stored_completions" / name) for name in ("gsm8k", "math500", "mmmu")
    }
    assert {name: len(r.samples) for name, r in results.items()} == {"gsm8k": 5, "math500": 12, "mmmu": 4}
    assert results["mmmu"].benchmark.declaration["convention"] == "mmmu"
    eight = [s for s in results["math500"].samples if s.model.startswith("Qwen2")]
    assert len({s.problem for s in eight}) == 1 and [s.sample for s in eight] == list(range(8))


def test_verdicts_are_ours_and_differences_are_explained(scored):
    """The two differences: a mark that is no part of the number, and a sentence after it that its scorer took along."""
    table = (scored / "official.md").read_text().splitlines()[2:]
    rows = {line.split(" | ")[1]: line.strip("| ").split(" | ")[2:] for line in table}
    assert rows["gsm8k"] == ["5", "0", "60.0", "60.0", "100.0", "0", "0", "0"]
    assert rows["mmmu"][:5] == ["3", "1", "66.7", "66.7", "100.0"]
    assert rows["math500"][5:7] == ["2", "0"]
    differing = [json.loads(line) for line in (scored / "disagreements.jsonl").read_text().splitlines()]
    assert {(d["id"], d["gold"], d["official_extraction"], d["our_answer"]) for d in differing} == {
        ("qwen_rm_maj/72/7", "10{,}000", "10000", "10000"),
        ("rho/rho-math-1b-v0.1/minerva_math/37", "72", "72Ihopeitiscorrect", "72"),
    }


def test_answers_that_are_not_marked_count_only_on_demand(official, tmp_path):
    """The solutions of GSM8K's models end in "A: 3", which training would not take for an answer."""
    assert official.main([str(STORED), str(tmp_path), "--marked-only"]) == 0
    gsm8k = next(line for line in (tmp_path / "official.md").read_text().splitlines() if "| gsm8k |" in line)
    assert gsm8k.endswith(" 4 |")


def row(key: str, right: bool) -> dict:
    return {
        "id": f"ursa/wemath/{key}/1/2steps_1", "question": f"How large, {key}?", "choices": ["A. 3", "B. 4"], "gold": "B",
        "response": f"†Answer: {'B' if right else 'A'}", "official_correct": right, "answer_type": "mcq",
        "meta": {"model": "m", "bench": "wemath", "key": key, "image": f"{key}.png"},
    }  # fmt: skip


def test_we_math_gets_its_four_dimensions(official, tmp_path):
    """A composite and one of its two steps right: rote memorization strictly, mastery loosely. `.gz` is unpacked."""
    path = tmp_path / "wemath.jsonl.gz"
    rows = [row("2steps_1", True), row("2steps_2", False), row("2steps_multi", True)]
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps(r) + "\n" for r in rows)
    assert official.main([str(path), str(tmp_path / "out")]) == 0
    [scores] = json.loads((tmp_path / "out" / "wemath" / "summary.json").read_text())["scores"]
    dimensions = scores["four_dimensions"]
    assert (dimensions["score_strict"], dimensions["score_loose"], dimensions["incomplete"]) == (0, 1, 0)


def test_what_is_no_such_file_is_named(official, tmp_path, capsys):
    (tmp_path / "bad.jsonl").write_text('{"response": "4", "gold": "4"}\n')
    assert official.main([str(tmp_path / "bad.jsonl"), str(tmp_path / "out")]) == 2
    assert "line 1, lacks official_correct" in capsys.readouterr().err
    assert official.main([str(tmp_path / "none.jsonl"), str(tmp_path / "out")]) == 2
    assert "none.jsonl cannot be read" in capsys.readouterr().err
