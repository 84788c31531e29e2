"""Several variants of one run, measured against each other: the same start, problems and seed, one change each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

from omegaconf import OmegaConf
from pydantic import Field, StringConstraints
from rich.table import Table
from rich.text import Text

from mmcorl.config import Config, Section
from mmcorl.config_loading import load_config, read_yaml, validate
from mmcorl.errors import MmcorlError
from mmcorl.files import read_lines
from mmcorl.training.folders import RunFolder
from mmcorl.training.metrics import Line, read_metrics

Summary = dict[str, dict[str, Any]]


class VariantConfig(Section):
    title: str
    """Its name in tables and figures."""
    overrides: tuple[str, ...] = ()
    """Settings (`key=value`) that make this variant what it is."""


class ComparisonConfig(Section):
    """A comparison file."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]+$")] | None = None
    """The runs of its variants lie in the folder `run.dir/name`; null takes the name of the base's run."""
    base: Path
    """Configuration that all variants share, relative to this file."""
    variants: dict[Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]+$")], VariantConfig] = Field(
        min_length=1
    )
    """What is compared, in order. The names are those of the run folders and of the entries in the summary."""


@dataclass(frozen=True)
class Variant:
    """One run of a comparison."""

    name: str
    title: str
    config: Config

    def evaluations(self, agent: str) -> list[Line]:
        """The agent's evaluations so far, in the order of their steps."""
        return read_metrics(RunFolder.of(self.config).metrics(agent), "eval")

    @property
    def seconds(self) -> float:
        """Wall time of the run over all its launches, evaluations and start-up included."""
        return sum(line["seconds"] for line in read_lines(RunFolder.of(self.config).launches))


def load_comparison(path: Path, overrides: Sequence[str] = ()) -> list[Variant]:
    """Read a comparison file. `overrides` hold for every variant; a variant's own go first.

    Each variant runs in a folder of its own inside the folder of the comparison. Raises MmcorlError as
    `load_config` does, and for variants that are not evaluated.
    """
    comparison = validate(ComparisonConfig, OmegaConf.to_container(read_yaml(path)), str(path))
    base = path.parent / comparison.base
    run = load_config(base, overrides).run
    home = json.dumps(str(run.dir / (comparison.name or run.name)))
    variants = []
    for name, variant in comparison.variants.items():
        place = (f"run.dir={home}", f"run.name={name}")
        config = load_config(base, [*overrides, *variant.overrides, *place])
        if not config.evaluation.every:
            raise MmcorlError(
                f"{name} has evaluation.every=0; a comparison needs data.eval and evaluation.every above 0"
            )
        variants.append(Variant(name, variant.title, config))
    return variants


def summarize(variants: Sequence[Variant]) -> Summary:
    """Variant -> agent -> held-out accuracy at the start and at the end; and `seconds` and `seed` of each variant.

    `start` and `final` are greedy, `low` and `high` the 95 % interval of `final`; `start_avg8` and `final_avg8` (8 is
    `evaluation.samples`) are means over sampled answers. Variants that have not been evaluated yet are left out.
    """
    summary: Summary = {}
    for variant in variants:
        agents = {name: variant.evaluations(name) for name in variant.config.agents}
        if all(agents.values()):
            seconds = {"seconds": round(variant.seconds, 1), "seed": variant.config.run.seed}
            summary[variant.name] = {name: _scores(lines) for name, lines in agents.items()} | seconds
    return summary


def _scores(evaluations: Sequence[Line]) -> dict[str, float]:
    first, last = evaluations[0], evaluations[-1]
    scores = {
        "start": first["accuracy"],
        "final": last["accuracy"],
        "low": last["accuracy_low"],
        "high": last["accuracy_high"],
    }
    if last["samples"]:
        scores |= {f"start_avg{first['samples']}": first["avg"], f"final_avg{last['samples']}": last["avg"]}
    return scores


def as_table(variants: Sequence[Variant]) -> Table:
    """Every variant and agent: greedy and sampled held-out accuracy in percent, start and end, with 95 % intervals."""
    seed = variants[0].config.run.seed
    samples = variants[0].config.evaluation.samples
    table = Table(title=f"Held-out accuracy in % [95 % interval], seed {seed}", title_justify="left")
    for head in ("method", "agent"):
        table.add_column(head)
    for head in ("start", "greedy", "gain", "start", f"avg@{samples}", "gain")[: 6 if samples else 3]:
        table.add_column(head, justify="right")
    for variant in variants:
        rows = {name: variant.evaluations(name) for name in variant.config.agents}
        if not all(rows.values()):
            continue
        keys = ("accuracy", "avg") if samples else ("accuracy",)
        for index, (name, lines) in enumerate(rows.items()):
            cells = [cell for key in keys for cell in _cells(lines[0], lines[-1], key)]
            table.add_row(Text(variant.title if index == 0 else ""), name, *cells)
        ends = [
            (
                fmean(lines[0][key] for lines in rows.values()),
                fmean(lines[-1][key] for lines in rows.values()),
            )
            for key in keys
        ]
        means = [
            (f"{start:.1%}"[:-1], f"{final:.1%}"[:-1], f"{100 * (final - start):+.1f}")
            for start, final in ends
        ]
        table.add_row("", "mean", *chain(*means), end_section=True, style="bold")
    return table


def _cells(first: Line, last: Line, key: str) -> tuple[str, str, str]:
    interval = f"[{last[f'{key}_low'] * 100:5.1f}, {last[f'{key}_high'] * 100:5.1f}]"
    gain = last[key] - first[key]
    return f"{first[key] * 100:.1f}", f"{last[key] * 100:.1f} {interval}", f"{gain * 100:+.1f}"
