"""Puts a report together: everything is read once, then shown as HTML, Markdown or a picture."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import mmcorl
from mmcorl.analysis.report import charts, words
from mmcorl.analysis.report.digests import Digest, digest, evenly
from mmcorl.analysis.report.outcomes import Outcome, Outcomes, count_outcomes, pairs
from mmcorl.analysis.report.problems import Judge, Problems, load
from mmcorl.analysis.report.runs import Run, find_runs, read_runs
from mmcorl.analysis.report.samples import Sample, choose
from mmcorl.analysis.report.series import PHASES, Chart, charts_of, phase_seconds
from mmcorl.analysis.report.tables import ResultTable, result_table
from mmcorl.config_loading import to_yaml
from mmcorl.training.starting import leaves

Format = Literal["html", "md", "png"]

_PACKAGE = "mmcorl.analysis.report"
_SAMPLES = 32
_SAMPLE_STEPS = 6
_FEWEST_SAMPLES = 4
_VALUES = 12
"""Rows of the table that stands beside each chart."""


@dataclass(frozen=True)
class Report:
    """All that a report shows, whatever its format."""

    runs: list[Run]
    digests: list[dict[str, Digest]]
    charts: list[Chart]
    results: ResultTable
    outcomes: list[list[Outcomes]]
    """For each run, its pairs of agents; none where no answer is labelled."""
    samples: list[list[Sample]]
    missing: list[str | None]
    """For each run, why its problems cannot be read any more."""

    @property
    def style(self) -> charts.Style:
        return charts.Style(
            list(dict.fromkeys(name for run in self.runs for name in run.agents)), len(self.runs)
        )

    @property
    def title(self) -> str:
        return words.listed([run.title for run in self.runs])


def read_report(paths: Sequence[Path], with_samples: bool = True) -> Report:
    """Read everything that a report of these runs (or folders of runs) shows. Raises MmcorlError as `read_runs` does."""
    runs = read_runs(find_runs(paths))
    per_run = max(_FEWEST_SAMPLES, _SAMPLES // len(runs))
    steps = min(_SAMPLE_STEPS, per_run)
    digests, outcomes, samples, missing = [], [], [], []
    loaded: dict[str, Problems] = {}
    for run in runs:
        longest = max((metrics.steps for metrics in run.agents.values()), key=len)
        chosen = set(evenly(longest, steps)) if with_samples else set()
        per_step = per_run // max(1, len(chosen))
        agents = {
            name: digest(run.folder.completions(name), run.config, chosen, per_step) for name in run.agents
        }
        source = run.config.data.train
        if str(source) not in loaded:
            loaded = {str(source): load(source)}  # one at a time: a data set may be large
        problems = loaded[str(source)]
        votes = {name: found.votes for name, found in agents.items()}
        with Judge(problems) as judge:
            counted = [count_outcomes(votes, *pair, judge) for pair in pairs(list(run.agents))]
        digests.append(agents)
        outcomes.append([pair for pair in counted if pair is not None])
        samples.append(choose(agents, problems, budget=1 / len(runs)))
        missing.append(problems.missing)
    return Report(runs, digests, charts_of(runs, digests), result_table(runs), outcomes, samples, missing)


def as_html(report: Report, poll_seconds: float = 0.0, version: str = "") -> str:
    """The whole page. Above 0, `poll_seconds` makes it ask its server for a newer `version` that often."""
    style = report.style
    script, sheet = (
        Markup((files(_PACKAGE) / "templates" / name).read_text("utf-8")) for name in ("page.js", "page.css")
    )
    return _environment("html").get_template("page.html.jinja").render(
        _shared(report),
        script=script,
        sheet=sheet,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        curves=[(chart, Markup(charts.curve_svg(chart, style, _aloud(chart.title, _ends(report, chart)))), _ends(report, chart), _values(report, chart)) for chart in report.charts],
        phases=Markup(charts.phases_svg(phases, "phases", "Seconds of a step by phase, as listed below")) if (phases := _phases(report)) else None,
        pairs=[
            (report.runs[number], pair, Markup(charts.outcomes_svg(pair, f"outcomes-{number}-{place}", _outcomes_aloud(pair))))
            for number, found in enumerate(report.outcomes)
            for place, pair in enumerate(found)
        ],
        style=style,
        dashes=charts.DASHES,
        poll_seconds=poll_seconds,
        version=version,
    )  # fmt: skip


def as_markdown(report: Report) -> str:
    """The report without pictures and samples."""
    ends = [(chart, _ends(report, chart)) for chart in report.charts]
    return _environment("md").get_template("page.md.jinja").render(_shared(report), ends=ends)


def as_png(report: Report) -> bytes:
    """The curves on one picture."""
    return charts.draw_picture(report.charts, report.style, [run.title for run in report.runs], report.title)


def _environment(form: Format) -> Environment:
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
    return {
        "report": report,
        "words": words,
        "made": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        "package_version": mmcorl.__version__,
        "config": to_yaml(first.config),
        "changes": [(run, _changes(base, leaves(run.config))) for run in others],
        "any_alarm": any(metrics.alarms for run in report.runs for metrics in run.agents.values()),
        "logged": sum(found.count for agents in report.digests for found in agents.values()),
        "phases_order": PHASES,
        "phases_table": _phases(report),
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


def _aloud(title: str, ends: Sequence[tuple[str, str]]) -> str:
    return f"{title}. {'; '.join(f'{label}: {text}' for label, text in ends)}."


def _outcomes_aloud(pair: Outcomes) -> str:
    names: dict[Outcome, str] = {
        "both": "both right",
        "first": f"only {pair.first} right",
        "second": f"only {pair.second} right",
        "neither": "both wrong",
    }
    ends = [pair.spans[0], *pair.spans[1:][-1:]]
    return _aloud(
        f"Votes of {pair.first} and {pair.second}",
        [
            (
                f"from step {span.first_step}",
                ", ".join(f"{name} {span.share(key):.0%}" for key, name in names.items()),
            )
            for span in ends
        ],
    )


def _values(report: Report, chart: Chart) -> tuple[list[str], list[tuple[str, list[str]]]]:
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
