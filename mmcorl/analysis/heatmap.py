"""The figure of a set of models: kappa and w of every pair as heat maps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mmcorl.analysis.diversity import Pair
from mmcorl.files import replacing


def draw_heatmap(pairs: Sequence[Pair], path: Path) -> None:
    """Write a PNG: kappa on the left, shared mistakes (w) on the right; the diagonal is a model with another seed."""
    names = list(dict.fromkeys(name for p in pairs for name in (p.first, p.second)))
    side = 1.4 + 0.85 * len(names)
    figure = Figure(figsize=(2 * side + 2.0, side), layout="constrained")
    kappa, w = figure.subplots(1, 2)
    _draw(
        kappa,
        names,
        {(p.first, p.second): p.kappa.value for p in pairs},
        "kappa (lower: errs elsewhere)",
        "{:.2f}",
    )
    _draw(
        w,
        names,
        {(p.first, p.second): 100 * p.w.value for p in pairs},
        "w: the same wrong answer (%)",
        "{:.1f}",
    )
    note = "; the diagonal is a model with another seed" if any(p.first == p.second for p in pairs) else ""
    figure.suptitle(f"{pairs[0].problems} problems{note}", fontsize=10)
    with replacing(path) as temporary:  # a viewer that reloads the file never sees half a picture
        figure.savefig(temporary, dpi=150, format="png")


def _draw(axes: Axes, names: list[str], values: dict[tuple[str, str], float], title: str, form: str) -> None:
    grid = np.full((len(names), len(names)), np.nan)
    for (first, second), value in values.items():
        i, j = names.index(first), names.index(second)
        grid[i, j] = grid[j, i] = value
    image = axes.imshow(grid, cmap="cividis")
    middle = np.nanmean([np.nanmin(grid), np.nanmax(grid)]) if np.isfinite(grid).any() else 0.0
    for (i, j), value in np.ndenumerate(grid):
        if np.isfinite(value):
            colour = "black" if value > middle else "white"
            axes.text(j, i, form.format(value), ha="center", va="center", color=colour, fontsize=9)
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
    axes.set_yticks(range(len(names)), names)
    axes.set_title(title, fontsize=11)
    axes.spines[:].set_visible(False)
    assert axes.figure is not None
    axes.figure.colorbar(image, ax=axes, fraction=0.046, pad=0.03)
