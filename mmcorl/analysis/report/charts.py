"""Draws the charts: SVG for the page, whose colours the page's style sheet sets, and one PNG.

A line's colour tells the run (with a single run, the agent); with several runs its dashes tell the agent.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
from markupsafe import escape
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from mmcorl.analysis.report.outcomes import OUTCOMES, Outcomes
from mmcorl.analysis.report.series import Chart
from mmcorl.training.phases import PHASES

SERIES_COLOURS = 7
DASHES = ("", "6 3", "2 2", "8 2 2 2", "1 3", "10 4")
MARKERS = ("o", "s", "^", "D", "v", "P")

_SIZE = (4.6, 2.9)
_MARGINS = {
    "left": 0.14,
    "right": 0.98,
    "bottom": 0.16,
    "top": 0.96,
}  # fit any numbers, at half the time of a layout engine
_FEW_POINTS = 30
_MOST_BANDS = 4
_LEAST_PERCENT, _LEAST_SHARE = 5.0, 0.1  # height of an axis: percent points, and as a share of what it shows
# Of the page: the SVG's colours are replaced by variables of the style sheet, which knows light and dark.
_VARIABLES = {"#010101": "var(--ink)", "#020202": "var(--line)", "#030303": "var(--card)"} | {
    f"#04000{i}": f"var(--series-{i})" for i in range(SERIES_COLOURS)
}
# Metadata, rules for the whole document, and ids that all figures have alike.
_NOT_FOR_PAGES = (
    re.compile(r"<metadata>.*?</metadata>", re.DOTALL),
    re.compile(r"<style.*?</style>", re.DOTALL),
    re.compile(r' id="[a-zA-Z0-9.]+_\d+"'),
)


@dataclass(frozen=True)
class Palette:
    """Text and axes, grid lines, background, and a colour for each series."""

    ink: str
    line: str
    card: str
    series: tuple[str, ...]


SCREEN = Palette("#010101", "#020202", "#030303", tuple(f"#04000{i}" for i in range(SERIES_COLOURS)))
# Okabe and Ito's hues, as dark as white paper needs; the style sheet has the same for light screens.
PAPER = Palette(
    "#1f2328",
    "#d5d9de",
    "#ffffff",
    ("#0072B2", "#C24E00", "#00805C", "#A6478A", "#8A6500", "#2B86BD", "#444444"),
)


@dataclass(frozen=True)
class Style:
    """Which colour and which dashes a line of a run and an agent has."""

    agents: Sequence[str]
    """Names of all agents of all runs."""
    runs: int

    def colour(self, run: int, agent: str) -> int:
        return (run if self.runs > 1 else self.agents.index(agent)) % SERIES_COLOURS

    def dash(self, agent: str) -> int:
        return self.agents.index(agent) % len(DASHES) if self.runs > 1 else 0


def curve_svg(chart: Chart, style: Style, label: str) -> str:
    """The chart as an `<svg>` element; `label` is said in its place to those who do not see it.

    Its lines have the ids `line-RUN-AGENT-KEY`, with the agent's place.
    """
    return _svg(lambda axes: draw_curve(axes, chart, style, SCREEN), chart.key, label)


def outcomes_svg(outcomes: Outcomes, key: str, label: str) -> str:
    return _svg(lambda axes: draw_outcomes(axes, outcomes, SCREEN), key, label)


def phases_svg(bars: Mapping[str, Mapping[str, float]], key: str, label: str) -> str:
    """Bars of seconds by phase; `bars` are the phases by what a bar is called."""
    return _svg(lambda axes: draw_phases(axes, bars, SCREEN), key, label, rows=len(bars))


def draw_curve(axes: Axes, chart: Chart, style: Style, palette: Palette) -> None:
    """Every line of a chart, with bands for the intervals while there are few lines."""
    factor = 100 if chart.percent else 1
    for series in chart.series:
        place = style.agents.index(series.agent)
        colour = palette.series[style.colour(series.run, series.agent)]
        dash = DASHES[style.dash(series.agent)]
        name = f"{series.run}-{place}-{chart.key}"
        steps = [point.step for point in series.points]
        bounds = [(p.low, p.high) for p in series.points if p.low is not None and p.high is not None]
        if len(bounds) == len(steps) and len(chart.series) <= _MOST_BANDS:
            low, high = zip(*bounds, strict=True)
            axes.fill_between(
                steps,
                [factor * value for value in low],
                [factor * value for value in high],
                color=colour,
                alpha=0.14,
                linewidth=0,
                gid=f"band-{name}",
            )
        axes.plot(
            steps,
            [factor * point.value for point in series.points],
            color=colour,
            linewidth=1.8,
            linestyle=(0, tuple(float(part) / 1.8 for part in dash.split())) if dash else "-",
            marker=MARKERS[place % len(MARKERS)] if len(steps) <= _FEW_POINTS else "",
            markersize=4,
            gid=f"line-{name}",
        )
    axes.set_xlabel("step")
    axes.set_ylabel("%" if chart.percent else chart.unit)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.set_ylim(limits(*axes.dataLim.intervaly, least=_LEAST_PERCENT if chart.percent else 0.0))


def draw_outcomes(axes: Axes, outcomes: Outcomes, palette: Palette) -> None:
    """The shares of the four outcomes as bars that add up to 100 %."""
    colours = dict(
        zip(OUTCOMES, (palette.series[2], palette.series[0], palette.series[1], palette.line), strict=True)
    )
    hatches = dict(zip(OUTCOMES, ("", "////", "....", ""), strict=True))
    lefts = [span.first_step - 0.5 for span in outcomes.spans]
    ends = [*lefts[1:], outcomes.spans[-1].last_step + 0.5]
    widths = [end - left for left, end in zip(lefts, ends, strict=True)]
    bottoms = [0.0] * len(lefts)
    for outcome in OUTCOMES:
        heights = [100 * span.share(outcome) for span in outcomes.spans]
        axes.bar(
            lefts, heights, widths, bottoms, align="edge", color=colours[outcome], hatch=hatches[outcome],
            edgecolor=palette.card, linewidth=0.5,
        )  # fmt: skip
        bottoms = [bottom + height for bottom, height in zip(bottoms, heights, strict=True)]
    axes.set_ylim(0, 100)
    axes.set_xlim(lefts[0], ends[-1])
    axes.set_xlabel("step")
    axes.set_ylabel("% of problems")
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.grid(False)


def draw_phases(axes: Axes, bars: Mapping[str, Mapping[str, float]], palette: Palette) -> None:
    """A bar for each agent: mean seconds of a step, phase after phase."""
    places, lefts = range(len(bars)), [0.0] * len(bars)
    for number, phase in enumerate(PHASES):
        widths = [seconds.get(phase, 0.0) for seconds in bars.values()]
        axes.barh(
            places, widths, 0.7, lefts, color=palette.series[number], edgecolor=palette.card, linewidth=0.5
        )
        lefts = [left + width for left, width in zip(lefts, widths, strict=True)]
    axes.set_yticks(list(places), list(bars))
    axes.invert_yaxis()
    axes.set_xlabel("seconds a step")
    axes.grid(False)


def draw_picture(charts: Sequence[Chart], style: Style, names: Sequence[str], title: str) -> bytes:
    """All curves on one PNG; `names` are the runs' titles."""
    columns = 3
    rows = max(1, -(-len(charts) // columns))
    with _settings(PAPER):
        figure = Figure(figsize=(_SIZE[0] * columns, _SIZE[1] * rows + 0.8), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False).flatten()
        for axes, chart in zip(grid, charts, strict=False):
            draw_curve(axes, chart, style, PAPER)
            axes.set_title(chart.title, fontsize=10)
        for axes in grid[len(charts) :]:
            axes.set_axis_off()
        figure.suptitle(title)
        figure.legend(
            handles=_legend(charts, style, names), loc="outside lower center", ncols=4, frameon=False
        )
        picture = io.BytesIO()
        figure.savefig(picture, format="png", dpi=130)
    return picture.getvalue()


def limits(low: float, high: float, least: float) -> tuple[float, float]:
    """Ends of an axis for values from `low` to `high`, far enough apart that noise does not look like a movement.

    The axis spans at least `least` and a tenth of the largest value; it goes below 0 only for values that do.
    """
    span = max(high - low, least, _LEAST_SHARE * max(abs(low), abs(high))) or 1.0
    bottom = (low + high) / 2 - 0.55 * span
    if low >= 0:
        bottom = max(bottom, -0.03 * span)
    return bottom, bottom + 1.1 * span


def _legend(charts: Sequence[Chart], style: Style, names: Sequence[str]) -> list[Any]:
    from matplotlib.lines import Line2D

    seen = dict.fromkeys((series.run, series.agent) for chart in charts for series in chart.series)
    handles = []
    for run, agent in seen:
        dash = DASHES[style.dash(agent)]
        handles.append(
            Line2D(
                [], [],
                color=PAPER.series[style.colour(run, agent)],
                linestyle=(0, tuple(float(part) / 1.8 for part in dash.split())) if dash else "-",
                marker=MARKERS[style.agents.index(agent) % len(MARKERS)],
                label=f"{names[run]}, {agent}" if style.runs > 1 else agent,
            )
        )  # fmt: skip
    return handles


def _settings(palette: Palette) -> Any:
    names = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    settings: dict[Any, Any] = {
        "grid.color": palette.line,
        "axes.grid": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "font.size": 10,
        "hatch.linewidth": 0.7,
        "svg.fonttype": "none",
    }
    settings.update(dict.fromkeys(names, palette.ink))
    return matplotlib.rc_context(settings)


def _svg(draw: Callable[[Axes], None], key: str, label: str, rows: int | None = None) -> str:
    """What `draw` draws; a chart with named rows is as high as they need, and its margin as wide."""
    size = _SIZE if rows is None else (_SIZE[0], 1.1 + 0.3 * rows)
    with _settings(SCREEN), matplotlib.rc_context({"svg.hashsalt": key}):
        figure = Figure(figsize=size, layout=None if rows is None else "constrained")
        draw(figure.subplots(gridspec_kw=_MARGINS if rows is None else None))
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    for part in _NOT_FOR_PAGES:
        svg = part.sub("", svg)
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" ', 1)
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, variable)
    return svg
