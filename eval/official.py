"""Score stored completions of public models again, beside the verdicts of each benchmark's own scorer.

    python eval/official.py FILE... OUT [--sample 40] [--marked-only]

A FILE holds JSON lines (`.gz` is unpacked) with `response`, `gold`, `official_correct` (null where there is no verdict),
`question`, `choices`, `answer_type`, and in `meta` what the row's benchmark knows of it: `model`, `precision`, `unit`, ...
Each file becomes a result folder OUT/FILE as `mmcorl-eval` writes it, its official verdicts are replaced by
`mmcorl-eval rescore`'s path, and OUT has the table (`official.md`) and a sample of the rows on which the two differ
(`disagreements.jsonl`).
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mmcorl.cli.command import run_command
from mmcorl.errors import MmcorlError
from mmcorl.evaluation.benchmarks import load_declaration
from mmcorl.evaluation.records import (
    SAMPLES_FILE,
    BenchmarkRecord,
    ProblemRecord,
    RunRecord,
    SampleRecord,
    Sampling,
    read_samples,
    write_benchmark,
    write_run,
)
from mmcorl.evaluation.rescore import rescore
from mmcorl.evaluation.tables import summarize, write_summary
from mmcorl.files import Lines, write_whole, writing
from mmcorl.graders import Extraction, Grader

Row = dict[str, Any]
Key = tuple[str, str, int]

BENCHMARKS = ("mathvista", "mathverse", "mathvision", "wemath", "mmmu", "gsm8k", "math500")
"""Benchmarks that a row may be of, by the name in `meta.bench`, in the row's id or in the file's name."""
OTHERWISE = "math500"
"""What rows of no known benchmark are graded as: mathematics without a convention."""


@dataclass
class Imported:
    """The rows of one benchmark in one file, as records, and what came with them."""

    problems: dict[str, ProblemRecord] = field(default_factory=dict)
    samples: list[SampleRecord] = field(default_factory=list)
    rows: dict[Key, Row] = field(default_factory=dict)


@dataclass(frozen=True)
class Agreement:
    """Our verdicts beside the official ones, over the rows that have one."""

    file: str
    benchmark: str
    rows: int
    unlabelled: int
    official: float
    ours: float
    only_ours: int
    """Rows that we count as right and the official scorer does not."""
    only_official: int
    unread: int

    @property
    def agreement(self) -> float:
        return 1 - (self.only_ours + self.only_official) / self.rows


def read_rows(path: Path) -> list[Row]:
    """Raises MmcorlError for what is no such file."""
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
    except (OSError, ValueError) as error:
        raise MmcorlError(f"{path} cannot be read as JSON lines ({error})") from None
    needed = {"response", "gold", "official_correct"}
    for number, row in enumerate(rows, start=1):
        if missing := needed - row.keys():
            raise MmcorlError(f"{path}, line {number}, lacks {', '.join(sorted(missing))}")
    return rows


def import_rows(rows: Iterable[Row], file: str) -> dict[str, Imported]:
    """Benchmark -> its rows, with the official verdicts in `correct` (False where there is none).

    Rows of one question, options and gold are one problem; several by one model are its samples.
    """
    found: dict[str, Imported] = defaultdict(Imported)
    drawn: Counter[tuple[str, str]] = Counter()
    for row in rows:
        meta = row.get("meta") or {}
        imported = found[_benchmark(row, meta, file)]
        problem = _problem(row, meta)
        imported.problems.setdefault(problem.id, problem)
        model = str(meta.get("model") or "model")
        sample = SampleRecord(
            problem=problem.id,
            model=model,
            sample=drawn[model, problem.id],
            prompt_hash="",
            completion=row["response"] or "",
            tokens=0,
            finished=True,
            answer=None,
            correct=row["official_correct"] is True,
            seconds=0.0,
        )
        drawn[model, problem.id] += 1
        imported.samples.append(sample)
        imported.rows[sample.key] = row
    return found


def write_results(out: Path, imported: dict[str, Imported]) -> None:
    """A result folder of these rows."""
    models = {sample.model: "" for one in imported.values() for sample in one.samples}
    write_run(out, RunRecord(models, None, {}, {}))
    for name, one in imported.items():
        declaration = load_declaration(name)
        record = BenchmarkRecord(
            name=name,
            version=declaration.version,
            digest=declaration.digest,
            declaration=declaration.model_dump(mode="json"),
            sampling=Sampling(1 + max(s.sample for s in one.samples), 0.0, 1.0, 0, 0),
            data="stored completions",
            fingerprint=hashlib.sha256("\n".join(one.problems).encode()).hexdigest(),
            problems=len(one.problems),
            dropped={},
        )
        write_benchmark(out / name, record, one.problems.values())
        (out / name / SAMPLES_FILE).unlink(missing_ok=True)
        with Lines(out / name / SAMPLES_FILE, "OUT") as lines:
            lines.append(sample.to_json() for sample in one.samples)


def agreement(file: str, name: str, one: Imported, rescored: Sequence[SampleRecord]) -> Agreement:
    labelled = [s for s in rescored if one.rows[s.key]["official_correct"] is not None]
    counts = Counter((s.correct, one.rows[s.key]["official_correct"]) for s in labelled)
    return Agreement(
        file=file,
        benchmark=name,
        rows=len(labelled),
        unlabelled=len(rescored) - len(labelled),
        official=sum(n for (_, theirs), n in counts.items() if theirs) / max(len(labelled), 1),
        ours=sum(n for (ours, _), n in counts.items() if ours) / max(len(labelled), 1),
        only_ours=counts[True, False],
        only_official=counts[False, True],
        unread=sum(s.answer is None for s in labelled),
    )


def disagreements(one: Imported, rescored: Sequence[SampleRecord], most: int) -> list[Row]:
    """Up to `most` rows on which the verdicts differ, the same ones every time."""
    differing = [s for s in rescored if one.rows[s.key]["official_correct"] not in (None, s.correct)]
    if len(differing) > most:
        differing = random.Random(0).sample(differing, most)
    return [
        {
            **{key: one.rows[s.key].get(key) for key in ("id", "question", "choices", "gold", "answer_type")},
            "response": one.rows[s.key]["response"],
            "official_extraction": one.rows[s.key].get("official_extraction"),
            "official_correct": one.rows[s.key]["official_correct"],
            "our_answer": s.answer and s.answer.value,
            "our_correct": s.correct,
        }
        for s in differing
    ]


def to_markdown(agreements: Sequence[Agreement]) -> str:
    heads = ("file", "benchmark", "rows", "no verdict", "official %", "ours %", "agreement %", "only ours", "only official", "unread")  # fmt: skip
    lines = [heads, ("---", "---", *["---:"] * 8)]
    for a in agreements:
        shares = (f"{100 * share:.1f}" for share in (a.official, a.ours, a.agreement))
        lines.append(
            (a.file, a.benchmark, a.rows, a.unlabelled, *shares, a.only_ours, a.only_official, a.unread)
        )
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def _benchmark(row: Row, meta: Row, file: str) -> str:
    said = [str(meta.get("bench") or ""), str(row.get("id") or ""), file]
    texts = [text.lower().replace("-", "").replace("_", "") for text in said]
    return next((b for text in texts for b in BENCHMARKS if b in text), OTHERWISE)


def _problem(row: Row, meta: Row) -> ProblemRecord:
    choices = row.get("choices") or None
    facts: Row = {
        name: meta[name]
        for name in ("precision", "unit", "task", "question_type")
        if meta.get(name) is not None
    }
    facts["answer_type"] = row.get("answer_type")
    if meta.get("key"):  # We-Math's step, and the composite problem that it is a step of
        facts |= {"key": meta["key"], "problem": str(row["id"]).rpartition("/")[2]}
    own = [meta.get(name) for name in ("pid", "image", "key")] if row.get("question") else [row["id"]]
    text = json.dumps([row.get("question"), choices, row["gold"], *own], ensure_ascii=False)
    kind = "choice" if choices or row.get("answer_type") == "mcq" else "math"
    return ProblemRecord(
        hashlib.sha256(text.encode()).hexdigest()[:16],
        row.get("question") or "",
        choices,
        kind,
        row["gold"],
        facts,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for the results and the table")
    parser.add_argument(
        "--sample",
        type=int,
        default=40,
        metavar="N",
        help="disagreements to keep of each benchmark (default 40)",
    )
    parser.add_argument(
        "--marked-only",
        action="store_true",
        help="take answers that are marked as such only, as in training; otherwise also the last number",
    )
    options = parser.parse_args(arguments)
    return run_command(lambda: _score(options))


def _score(options: argparse.Namespace) -> int:
    agreements: list[Agreement] = []
    sampled: list[Row] = []
    with Grader(Extraction(last_number=not options.marked_only)) as grader:
        for path in options.files:
            name = path.name.partition(".")[0]
            imported, out = import_rows(read_rows(path), name), options.out / name
            write_results(out, imported)
            rescore(out, grader)
            write_summary(out, summarize(out, grader.classes))
            for benchmark, one in imported.items():
                rescored = read_samples(out / benchmark)
                agreements.append(agreement(name, benchmark, one, rescored))
                sampled += disagreements(one, rescored, options.sample)
                print(to_markdown(agreements[-1:]).splitlines()[-1], flush=True)
    with writing(options.out, "OUT"):
        write_whole(options.out / "official.md", to_markdown(agreements))
        lines = (json.dumps(row, ensure_ascii=True) + "\n" for row in sampled)
        write_whole(options.out / "disagreements.jsonl", "".join(lines))
    print(f"written: {options.out / 'official.md'}, {options.out / 'disagreements.jsonl'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
