"""What a person sees while a run goes on: one table that renews itself, or plain lines where there is no terminal."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mmcorl.config import Config
from mmcorl.training.folders import RunFolder
from mmcorl.training.metrics import Line, Tail

_PHASES = ("rollout", "exchange", "update")
_LINE_SECONDS = 10.0


@dataclass
class AgentProgress:
    """The newest records of one agent, and its pace since this launcher started."""

    train: Line = field(default_factory=dict)
    evaluation: Line = field(default_factory=dict)
    first: tuple[int, float] | None = None
    """Step and time of the first training record seen."""
    last: tuple[int, float] | None = None

    def add(self, record: Line, now: float) -> None:
        if record["kind"] == "eval":
            self.evaluation = record
        if record["kind"] != "train":
            return
        self.train = record
        self.last = (record["step"], now)
        self.first = self.first or self.last

    def seconds_left(self, steps: int) -> float | None:
        """Steps still to do at the pace so far, evaluations included; None until two steps are seen."""
        if self.first is None or self.last is None or self.last[0] == self.first[0]:
            return None
        pace = (self.last[1] - self.first[1]) / (self.last[0] - self.first[0])
        return pace * (steps - self.last[0])


class LiveView:
    """Follows the metrics of the agents of a run that train on this machine. A context manager.

    A run that resumes at `resume_step` fills the table with what it had reached, and prints no line of it again.
    """

    def __init__(
        self,
        config: Config,
        agents: Sequence[str],
        resume_step: int | None = None,
        console: Console | None = None,
    ) -> None:
        folder = RunFolder.of(config)
        self._title = str(folder.path)
        self._steps = config.run.steps
        self._known = -1 if resume_step is None else resume_step
        self._console = console or Console()
        self._tails = {name: Tail(folder.metrics(name)) for name in agents}
        self._progress = {name: AgentProgress() for name in agents}
        self._live = Live(console=self._console, auto_refresh=False) if self._console.is_terminal else None
        self._said: dict[str, float] = dict.fromkeys(agents, -_LINE_SECONDS)

    def __enter__(self) -> LiveView:
        if self._live:
            self._live.start()
            self._live.update(as_table(self._title, self._progress, self._steps), refresh=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.update()
        if self._live:
            self._live.stop()

    def say(self, message: str) -> None:
        """Print a line above the table."""
        self._console.print(message, highlight=False, markup=False, soft_wrap=True)

    def update(self) -> None:
        """Read what the agents have written since, and show it."""
        now = time.monotonic()
        changed = False
        for name, tail in self._tails.items():
            replaced, records = tail.read()
            changed |= replaced or bool(records)
            if replaced:
                self._progress[name] = AgentProgress()
            for record in records:
                self._progress[name].add(record, now)
                if record["step"] > self._known:
                    self._print(name, record, now)
        if self._live and changed:
            self._live.update(as_table(self._title, self._progress, self._steps), refresh=True)

    def _print(self, name: str, record: Line, now: float) -> None:
        """Every alarm; and where there is no table, every evaluation and now and then a step."""
        if record["kind"] == "alarm":
            self.say(f"{name}: alarm at step {record['step']}: {record['what']}; {record['advice']}")
        elif not self._live and (record["kind"] == "eval" or now - self._said[name] >= _LINE_SECONDS):
            self._said[name] = now
            self._console.print(as_line(name, record, self._steps), highlight=False, soft_wrap=True)


def as_table(title: str, progress: dict[str, AgentProgress], steps: int) -> Table:
    """A column an agent, so that a cohort fits a narrow terminal; a row each thing to watch, as in `metrics.jsonl`."""
    table = Table(title=Text(title), title_justify="left")
    table.add_column("")
    for name in progress:
        table.add_column(name, justify="right", min_width=9)
    columns = [_cells(agent, steps) for agent in progress.values()]
    for row in zip(*(column.items() for column in columns), strict=True):
        table.add_row(
            row[0][0], *(cell for _, cell in row), end_section=row[0][0] in ("step", "held-out accuracy")
        )
    return table


def _cells(agent: AgentProgress, steps: int) -> dict[str, str]:
    train, evaluation = agent.train, agent.evaluation
    left = agent.seconds_left(steps)
    accuracy = f"{_share(evaluation.get('accuracy'))} at {evaluation['step']}" if evaluation else "-"
    cells = {
        "step": f"{train.get('step', 0)}/{steps}",
        "reward": _number(train.get("reward"), 3),
        "agreement": _number(train.get("agreement"), 3),
        "vote share": _number(train.get("vote_share"), 3),
        "length": _number(train.get("length"), 1),
        "abstained": _share(train.get("abstained")),
        "held-out accuracy": accuracy,
    }
    cells |= {f"seconds {phase}": _number(train.get(f"seconds_{phase}"), 2) for phase in _PHASES}
    return cells | {"time left": "-" if left is None else _duration(left)}


def as_line(name: str, record: Line, steps: int) -> str:
    """One record for a log file or a pipe."""
    if record["kind"] == "eval":
        sampled = f", avg@{record['samples']} {_share(record['avg'])}" if record.get("samples") else ""
        return f"{name}: step {record['step']}/{steps}: held-out accuracy {_share(record.get('accuracy'))}{sampled}"
    values = ", ".join(
        f"{key} {_number(record.get(key), 3)}" for key in ("reward", "agreement", "vote_share")
    )
    seconds = sum(record.get(f"seconds_{phase}") or 0.0 for phase in _PHASES)
    return f"{name}: step {record['step']}/{steps}: {values}, {seconds:.2f} s"


def _number(value: Any, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _share(value: Any) -> str:
    return "-" if value is None else f"{value:.1%}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
