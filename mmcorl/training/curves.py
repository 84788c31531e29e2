"""The figure of a comparison: held-out accuracy over the steps, a panel for each agent and each way to answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mmcorl.files import replacing
from mmcorl.training.comparison import Variant

# Okabe and Ito's palette, told apart with any colour vision; the marker says it once more.
_STYLES = (
    ("#D55E00", "s"),
    ("#0072B2", "o"),
    ("#009E73", "^"),
    ("#CC79A7", "D"),
    ("#E69F00", "v"),
    ("#56B4E9", "P"),
    ("#000000", "X"),
)


def draw_curves(variants: Sequence[Variant], path: Path) -> None:
    """Write a PNG: agents side by side, greedy accuracy above avg@k, 95 % intervals as bands."""
    agents = list(dict.fromkeys(name for variant in variants for name in variant.config.agents))
    samples = variants[0].config.evaluation.samples
    rows = [("accuracy", "greedy")] + ([("avg", f"avg@{samples}")] if samples else [])
    figure = Figure(figsize=(1.2 + 4.2 * len(agents), 0.9 + 2.9 * len(rows)), layout="constrained")
    grid = figure.subplots(len(rows), len(agents), sharex=True, sharey=True, squeeze=False)
    for axes_row, (key, label) in zip(grid, rows, strict=True):
        for axes, agent in zip(axes_row, agents, strict=True):
            _draw(axes, variants, agent, key)
        axes_row[0].set_ylabel(f"held-out accuracy, {label} (%)")
    for axes, agent in zip(grid[0], agents, strict=True):
        axes.set_title(agent)
    for axes in grid[-1]:
        axes.set_xlabel("step")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=min(4, len(labels)), frameon=False)
    with replacing(path) as temporary:  # a viewer that reloads the file never sees half a picture
        figure.savefig(temporary, dpi=150, format="png")


def _draw(axes: Axes, variants: Sequence[Variant], agent: str, key: str) -> None:
    for index, variant in enumerate(variants):
        if agent not in variant.config.agents:
            continue
        colour, marker = _STYLES[index % len(_STYLES)]
        lines = variant.evaluations(agent)
        steps = [line["step"] for line in lines]
        low, mean, high = ([100 * line[f"{key}{end}"] for line in lines] for end in ("_low", "", "_high"))
        axes.fill_between(steps, low, high, color=colour, alpha=0.12, linewidth=0)
        axes.plot(steps, mean, color=colour, marker=marker, markersize=5, linewidth=2, label=variant.title)
    axes.set_ylim(0, 102)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
