"""Reads all that a report shows, whatever its format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mmcorl.analysis.report.charts import Style
from mmcorl.analysis.report.digests import Digest, digest, evenly
from mmcorl.analysis.report.outcomes import Outcomes, count_outcomes, pairs
from mmcorl.analysis.report.problems import Judge, Problems, load
from mmcorl.analysis.report.runs import Run, find_runs, read_runs
from mmcorl.analysis.report.samples import Sample, choose
from mmcorl.analysis.report.series import Chart, charts_of
from mmcorl.analysis.report.tables import ResultTable, result_table
from mmcorl.analysis.report.words import listed

_SAMPLES = 32
_SAMPLE_STEPS = 6
_FEWEST_SAMPLES = 4


@dataclass(frozen=True)
class Report:
    """What a report of some runs shows."""

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
    def style(self) -> Style:
        return Style(list(dict.fromkeys(name for run in self.runs for name in run.agents)), len(self.runs))

    @property
    def title(self) -> str:
        return listed([run.title for run in self.runs])


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
