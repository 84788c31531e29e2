"""Shows a report as HTML, Markdown or a picture."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib.resources import files
from typing import Any, Literal

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import mmcorl
from mmcorl.analysis.report import charts, words
from mmcorl.analysis.report.digests import evenly
from mmcorl.analysis.report.outcomes import Outcome, Outcomes
from mmcorl.analysis.report.reading import Report
from mmcorl.analysis.report.series import Chart, phase_seconds
from mmcorl.config_loading import to_yaml
from mmcorl.training.phases import PHASES
from mmcorl.training.starting import leaves

Form = Literal["html", "md"]
_Table = tuple[list[str], list[tuple[str, list[str]]]]
"""Heads, and the rows: what each is called, and its cells."""

_PACKAGE = "mmcorl.analysis.report"
_VALUES = 12
"""Rows of the table that stands beside each chart."""


def as_html(report: Report, poll_seconds: float = 0.0, version: str = "") -> str:
    """The whole page. Above 0, `poll_seconds` makes it ask its server for a newer `version` that often."""
    script, sheet = (
        Markup((files(_PACKAGE) / "templates" / name).read_text("utf-8")) for name in ("page.js", "page.css")
    )
    template = _environment("html").get_template("page.html.jinja")
    return template.render(
        _shared(report),
        script=script,
        sheet=sheet,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        curves=[_curve(report, chart) for chart in report.charts],
        phases=_phases_svg(_phases(report)),
        pairs=[
            (report.runs[number], pair, _outcomes_svg(pair, f"outcomes-{number}-{place}"))
            for number, found in enumerate(report.outcomes)
            for place, pair in enumerate(found)
        ],
        style=report.style,
        dashes=charts.DASHES,
        poll_seconds=poll_seconds,
        version=version,
    )


def as_markdown(report: Report) -> str:
    """The report without pictures and samples."""
    ends = [(chart, _ends(report, chart)) for chart in report.charts]
    return _environment("md").get_template("page.md.jinja").render(_shared(report), ends=ends)


def as_png(report: Report) -> bytes:
    """The curves on one picture."""
    return charts.draw_picture(report.charts, report.style, [run.title for run in report.runs], report.title)


def _environment(form: Form) -> Environment:
    environment = Environment(
        loader=PackageLoader(_PACKAGE),
        autoescape=form == "html",  # completions may hold anything
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    environment.filters["cell"] = _markdown_cell
    return environment


def _shared(report: Report) -> dict[str, Any]:
    """What the page and the Markdown both show."""
    first, *others = report.runs
    base = leaves(first.config)
    phases = _phases(report)
    timed = set().union(*phases.values())
    return {
        "report": report,
        "words": words,
        "made": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        "package_version": mmcorl.__version__,
        "config": to_yaml(first.config),
        "changes": [(run, _changes(base, leaves(run.config))) for run in others],
        "any_alarm": any(metrics.alarms for run in report.runs for metrics in run.agents.values()),
        "logged": sum(found.count for agents in report.digests for found in agents.values()),
        "phases_shown": [(number, phase) for number, phase in enumerate(PHASES) if phase in timed],
        "phases_table": phases,
    }


def _changes(base: Mapping[str, Any], other: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    keys = dict.fromkeys([*base, *other])
    absent = "-"
    pairs = [(key, base.get(key, absent), other.get(key, absent)) for key in keys]
    return [
        (key, before, after)
        for key, before, after in pairs
        if before != after and key not in ("run.name", "run.dir")
    ]


def _label(report: Report, run: int, agent: str) -> str:
    return f"{report.runs[run].title}, {agent}" if len(report.runs) > 1 else agent


def _ends(report: Report, chart: Chart) -> list[tuple[str, str]]:
    """Where each line of a chart starts and ends, in words: the chart for those who do not see it."""
    found = []
    for series in chart.series:
        first, last = series.points[0], series.points[-1]
        text = f"{chart.show(first.value)} at step {first.step:g}"
        if last is not first:
            text += f", {chart.show(last.value)} at step {last.step:g}"
        found.append((_label(report, series.run, series.agent), text))
    return found


def _curve(report: Report, chart: Chart) -> tuple[Chart, Markup, list[tuple[str, str]], _Table]:
    """A chart, its picture, its ends in words and its values."""
    ends = _ends(report, chart)
    svg = charts.curve_svg(chart, report.style, _aloud(chart.title, ends))
    return chart, Markup(svg), ends, _values(report, chart)


def _phases_svg(bars: Mapping[str, Mapping[str, float]]) -> Markup | None:
    label = "Seconds of a step by phase, as listed below"
    return Markup(charts.phases_svg(bars, "phases", label)) if bars else None


def _aloud(title: str, ends: Sequence[tuple[str, str]]) -> str:
    return f"{title}. {'; '.join(f'{label}: {text}' for label, text in ends)}."


def _outcomes_svg(pair: Outcomes, key: str) -> Markup:
    names: dict[Outcome, str] = {
        "both": "both right",
        "first": f"only {pair.first} right",
        "second": f"only {pair.second} right",
        "neither": "both wrong",
    }
    ends = [
        (
            f"from step {span.first_step}",
            ", ".join(f"{name} {span.share(outcome):.0%}" for outcome, name in names.items()),
        )
        for span in (pair.spans[0], *pair.spans[1:][-1:])
    ]
    label = _aloud(f"Votes of {pair.first} and {pair.second}", ends)
    return Markup(charts.outcomes_svg(pair, key, label))


def _values(report: Report, chart: Chart) -> _Table:
    """A chart as a table: a column each line, rows at steps evenly spaced."""
    columns = [{point.step: point.value for point in series.points} for series in chart.series]
    steps = sorted({step for column in columns for step in column})
    rows = [
        (f"{step:g}", [chart.show(column[step]) if step in column else "" for column in columns])
        for step in evenly(steps, _VALUES)
    ]
    return [_label(report, series.run, series.agent) for series in chart.series], rows


def _phases(report: Report) -> dict[str, dict[str, float]]:
    bars = {
        _label(report, number, name): phase_seconds(run, name)
        for number, run in enumerate(report.runs)
        for name in run.agents
    }
    return {label: seconds for label, seconds in bars.items() if seconds}


def _markdown_cell(value: object) -> str:
    """Text that stays inside its table cell or line and is shown as it is."""
    text = " ".join(str(value).split())
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>|#~" else sign for sign in text)
