"""How long `--help` of every console command takes: what a user waits for before anything is said.

    python bench/startup.py [--limit 2]

Each command is started in a fresh process as its console script would, and the best of three counts. Exits with 1 where one
takes longer than the limit.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import tomllib
from pathlib import Path

_PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
_TIMES = 3


def main() -> int:
    parser = argparse.ArgumentParser(description="How long `--help` of every console command takes.")
    parser.add_argument("--limit", type=float, default=2.0, metavar="SECONDS", help="most that one may take")
    limit = parser.parse_args().limit
    scripts = tomllib.loads(_PYPROJECT.read_text(encoding="utf-8"))["project"]["scripts"]
    slow = []
    for name, entry in sorted(scripts.items()):
        seconds = min(_seconds(entry) for _ in range(_TIMES))
        print(f"{name:<20}{seconds:6.2f} s", flush=True)
        slow += [name] if seconds > limit else []
    if slow:
        print(f"above {limit:g} s: {', '.join(slow)}")
    return 1 if slow else 0


def _seconds(entry: str) -> float:
    """Seconds from starting the interpreter to its end."""
    module, _, function = entry.partition(":")
    program = f"import sys; from {module} import {function}; sys.exit({function}())"
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", program, "--help"], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(main())
