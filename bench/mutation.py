"""Do the graders' tests bite? Mutation testing of the files that decide most comparisons, with mutmut.

    python bench/mutation.py [FILE ...] [--tests FILE ...] [--sample 150]

mutmut changes one operator, constant or call at a time in a copy of the checkout and runs the tests that reach it. The
score is the share of the mutants that some test notices; survivors are printed as diffs. It needs `pip install mutmut`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = [f"mmcorl/graders/{name}.py" for name in ("exact", "comparison", "regions", "extract")]
TESTS = [  # all that grade, but for those of random and hostile text, which take long
    f"tests/graders/test_{name}.py"
    for name in (
        "exact",
        "comparison",
        "regions",
        "extract",
        "kinds",
        "choices",
        "expectation",
        "conventions",
        "grader",
    )
]
SETTINGS = r"""[mutmut]
source_paths=mmcorl
only_mutate=
    {files}
pytest_add_cli_args_test_selection=
    {tests}
pytest_add_cli_args=
    -p
    no:cacheprovider
do_not_mutate_patterns=
    raise \w+
use_git_change_detection=false
"""
CONFTEST = """
import sys

import pytest

@pytest.fixture(autouse=True)
def forget():  # what was remembered before a mutant is tried would hide it
    for name, module in list(sys.modules.items()):
        if name.startswith("mmcorl.graders"):
            for thing in list(vars(module).values()):
                if hasattr(thing, "cache_clear"):
                    thing.cache_clear()
"""
FATES = {0: "survived", 1: "noticed", 33: "reached by no test", None: "not run"}
FATES |= dict.fromkeys((36, -24, 24, 152), "noticed")  # out of time


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="*", default=FILES, metavar="FILE", help=f"default {' '.join(FILES)}")
    parser.add_argument(
        "--tests", nargs="+", default=TESTS, metavar="FILE", help=f"default {' '.join(TESTS)}"
    )
    parser.add_argument("--sample", type=int, default=150, metavar="N", help="mutants tried; 0 for all")
    parser.add_argument("--processes", type=int, default=1, metavar="N")
    options = parser.parse_args()
    if importlib.util.find_spec("mutmut") is None:
        print("skipped: mutmut is not installed here; pip install mutmut")
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name in ("mmcorl", "tests/graders"):  # without the tests' conftest, which needs torch
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        lines = {"files": "\n    ".join(options.files), "tests": "\n    ".join(options.tests)}
        (folder / "setup.cfg").write_text(SETTINGS.format(**lines))
        (folder / "tests" / "graders" / "conftest.py").write_text(CONFTEST)
        mutmut(folder, "run", "none of them")  # makes the mutants, and learns which tests reach them
        names = sorted(fates(folder, options.files))
        if options.sample and options.sample < len(names):
            names = sorted(random.Random(0).sample(names, options.sample))
        output = mutmut(folder, "run", "--max-children", str(options.processes), *names)
        return report(folder, options.files, names, output)


def mutmut(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "mutmut", *arguments]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout


def fates(folder: Path, files: Sequence[str]) -> dict[str, str]:
    """What became of every mutant, from the notes that mutmut keeps."""
    found: dict[str, str] = {}
    for file in files:
        notes = folder / "mutants" / f"{file}.meta"
        if notes.exists():
            codes = json.loads(notes.read_text())["exit_code_by_key"]
            found |= {name: FATES.get(code, f"exit code {code}") for name, code in codes.items()}
    return found


def report(folder: Path, files: Sequence[str], names: Sequence[str], output: str) -> int:
    found = {name: fate for name, fate in fates(folder, files).items() if name in set(names)}
    counts = Counter(found.values())
    if not counts["noticed"]:
        print(f"mutmut did not run:\n{output[-3000:]}", file=sys.stderr)
        return 1
    for name in sorted(name for name, fate in found.items() if fate != "noticed"):
        diff = [line for line in mutmut(folder, "show", name).splitlines() if re.match(r"[-+](?![-+])", line)]
        print(f"{name} ({found[name]})", *diff, sep="\n  ")
    per_file = Counter((name.split(".x")[0], fate) for name, fate in found.items())
    for file in sorted({file for file, _ in per_file}):
        whole = sum(n for (f, _), n in per_file.items() if f == file)
        print(f"{file}: {per_file[file, 'noticed']} of {whole} noticed")
    print(f"score {100 * counts['noticed'] / len(found):.1f} %: {dict(counts)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
