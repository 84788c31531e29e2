"""Every method on the tiny visual cohort: held-out greedy accuracy over seeds, and what makes Co-RL work.

    python bench/methods.py [--seeds 0,1,2] [--out runs/bench_methods] [key=value ...]

Runs every variant of configs/compare_methods.yaml with each seed and prints one table: mean over agents and seeds, with
the 95 % interval of the mean over seeds (Student's t). All variants train the same number of completions an agent.
Finished runs are kept, so an interrupted benchmark goes on where it was. About forty minutes on two quiet cores.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from statistics import fmean, stdev

from rich.table import Table

from mmcorl.cli.console import wide_console
from mmcorl.errors import MmcorlError
from mmcorl.training.checkpoints import common_step
from mmcorl.training.comparison import Summary, Variant, load_comparison, summarize
from mmcorl.training.folders import RunFolder
from mmcorl.training.launcher import launch

COMPARISON = Path("configs/compare_methods.yaml")
SETTINGS = (
    "evaluation.every=1000",
    "evaluation.samples=0",
    "checkpoints.every=1000",
    "logging.completions=false",
)
"""Evaluations before the first step and after the last are enough here."""

T_95 = {1: math.inf, 2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}
"""Student's t for a 95 % interval of a mean, by the number of seeds."""

TWO_BY_TWO = {
    ("same architecture", "same blind spots"): "same_qwen",
    ("same architecture", "other blind spots"): "same_architecture",
    ("other architecture", "same blind spots"): "same_spots",
    ("other architecture", "other blind spots"): "different",
}
THRESHOLDS = {
    "peer vote": ("different", "peer_50", "peer_75"),
    "own vote": ("self_vote", "self_50", "self_75"),
}


def train(variant: Variant) -> None:
    """Train a variant, or go on with it; nothing where it is complete. Raises MmcorlError where it fails."""
    folder = RunFolder.of(variant.config)
    saved = common_step(folder.checkpoints(name) for name in variant.config.agents)
    code = launch(variant.config, resume=saved is not None, overwrite=True)
    if code != 0:
        raise MmcorlError(f"{variant.title} ended with exit code {code}")


def mean_of_agents(summary: Summary, name: str, key: str) -> float:
    """Percent, mean over the agents of a variant."""
    return 100 * fmean(scores[key] for scores in summary[name].values() if isinstance(scores, dict))


def interval(values: list[float]) -> str:
    """Mean and half the width of its 95 % interval over seeds."""
    if len(values) < 2:
        return f"{values[0]:5.1f}"
    half = T_95[len(values)] * stdev(values) / math.sqrt(len(values))
    return f"{fmean(values):5.1f} ± {half:4.1f}"


def table_of(summaries: list[Summary], titles: dict[str, str]) -> Table:
    """Every variant: the start, the end of each seed, the mean, and the gain."""
    table = Table(title="Held-out greedy accuracy in %, mean over agents", title_justify="left")
    for head in ("method", "start", *(f"seed {s['gold']['seed']}" for s in summaries), "end", "gain"):
        table.add_column(head, justify="left" if head == "method" else "right")
    for name, title in titles.items():
        start = fmean(mean_of_agents(s, name, "start") for s in summaries)
        ends = [mean_of_agents(s, name, "final") for s in summaries]
        table.add_row(
            title, f"{start:.1f}", *(f"{e:.1f}" for e in ends), interval(ends), f"{fmean(ends) - start:+.1f}"
        )
    return table


def cells_of(summaries: list[Summary], names: tuple[str, ...]) -> list[str]:
    return [interval([mean_of_agents(s, name, "final") for s in summaries]) for name in names]


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare every method on the tiny visual cohort.")
    parser.add_argument("--seeds", default="0,1,2", help="seeds of problems and sampling (default 0,1,2)")
    parser.add_argument("--out", type=Path, default=Path("runs/bench_methods"))
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="settings of every run")
    options = parser.parse_args()

    summaries, titles = [], {}
    for seed in options.seeds.split(","):
        place = (f"run.seed={seed}", f"run.dir={options.out / f'seed_{seed}'}")
        variants = load_comparison(COMPARISON, [*SETTINGS, *place, *options.overrides])
        titles = {variant.name: variant.title for variant in variants}
        for number, variant in enumerate(variants, start=1):
            print(f"seed {seed}: {variant.title} ({number} of {len(variants)})", flush=True)
            train(variant)
        summaries.append(summarize(variants))
    (options.out / "summary.json").write_text(json.dumps(summaries, indent=2) + "\n")

    console = wide_console()
    console.print(table_of(summaries, titles))
    grid = Table(title="What helps: the architecture or the blind spots?", title_justify="left")
    for head in ("peer", "same blind spots", "other blind spots"):
        grid.add_column(head)
    for row in ("same architecture", "other architecture"):
        names = tuple(TWO_BY_TWO[row, spots] for spots in ("same blind spots", "other blind spots"))
        grid.add_row(row, *cells_of(summaries, names))
    console.print(grid)
    thresholds = Table(title="Least share of a vote", title_justify="left")
    for head in ("supervisor", "0", "0.5", "0.75"):
        thresholds.add_column(head)
    for row, names in THRESHOLDS.items():
        thresholds.add_row(row, *cells_of(summaries, names))
    console.print(thresholds)


if __name__ == "__main__":
    main()
