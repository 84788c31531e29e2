"""What a person sees while a run goes on: one table that renews itself, or plain lines where there is no terminal."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mmcorl.config import Config
from mmcorl.training.folders import RunFolder
from mmcorl.training.metrics import Line, Tail
from mmcorl.training.phases import PHASES

_LINE_SECONDS = 10.0
_BARS = "▁▂▃▄▅▆▇█"
_SPARKS = 12


@dataclass
class AgentProgress:
    """The newest records of one agent, what came before them, and its pace since this launcher started."""

    train: Line = field(default_factory=dict)
    evaluation: Line = field(default_factory=dict)
    alarm: Line = field(default_factory=dict)
    phase: str = ""
    """What it is doing, as it wrote it last."""
    agreements: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)
    first: tuple[int, float] | None = None
    """Step and time of the first training record seen."""
    last: tuple[int, float] | None = None

    def add(self, record: Line, now: float) -> None:
        match record["kind"]:
            case "eval":
                self.evaluation = record
                self.accuracies += _known(record.get("accuracy"))
            case "alarm":
                self.alarm = record
            case "train":
                self.train = record
                self.agreements += _known(record.get("agreement"))
                self.last = (record["step"], now)
                self.first = self.first or self.last

    def seconds_left(self, steps: int) -> float | None:
        """Steps still to do at the pace so far, evaluations included; None until two steps are seen."""
        pace = self.pace()
        return None if pace is None or self.last is None else pace * (steps - self.last[0])

    def pace(self) -> float | None:
        """Seconds a step so far; None until two steps are seen."""
        if self.first is None or self.last is None or self.last[0] == self.first[0]:
            return None
        return (self.last[1] - self.first[1]) / (self.last[0] - self.first[0])


def _known(value: Any) -> list[float]:
    return [] if value is None else [float(value)]


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
        self._phases = {name: folder.phase(name) for name in agents}
        self._progress = {name: AgentProgress() for name in agents}
        self._live = Live(console=self._console, auto_refresh=False) if self._console.is_terminal else None
        self._said: dict[str, float] = dict.fromkeys(agents, -_LINE_SECONDS)

    def __enter__(self) -> LiveView:
        if self._live:
            self._live.start()
            self._show()
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
            phase = self._phase_of(name)
            changed |= phase != self._progress[name].phase
            self._progress[name].phase = phase
        if changed:
            self._show()

    def _show(self) -> None:
        if self._live:
            width = self._console.width
            self._live.update(as_table(self._title, self._progress, self._steps, width), refresh=True)

    def _phase_of(self, name: str) -> str:
        try:
            return self._phases[name].read_text(encoding="utf-8").partition(" ")[2]
        except OSError:
            return ""

    def _print(self, name: str, record: Line, now: float) -> None:
        """Every alarm; and where there is no table, every evaluation and now and then a step."""
        if record["kind"] == "alarm":
            self.say(f"{name}: alarm at step {record['step']}: {record['what']}; {record['advice']}")
        elif not self._live and (record["kind"] == "eval" or now - self._said[name] >= _LINE_SECONDS):
            self._said[name] = now
            self._console.print(as_line(name, record, self._steps), highlight=False, soft_wrap=True)


def as_table(title: str, progress: dict[str, AgentProgress], steps: int, width: int = 120) -> Table:
    """A row an agent, and under it the last alarm of each; columns that do not fit into `width` are left out."""
    rows = {name: _cells(agent, steps) for name, agent in progress.items()}
    alarms = [
        f"alarm of {name} at step {agent.alarm['step']}: {agent.alarm['what']}; {agent.alarm['advice']}"
        for name, agent in progress.items()
        if agent.alarm
    ]
    table = Table(title=Text(title), title_justify="left", caption_justify="left")
    table.caption = Text("\n".join(alarms)) if alarms else None
    table.add_column("")
    names = _fitting(rows, width)
    for name in names:
        table.add_column(name, justify="left" if name == "phase" else "right", no_wrap=True)
    for agent, cells in rows.items():
        table.add_row(agent, *(cells[name] for name in names))
    return table


_LEAST_WANTED = ("abstained", "length", "vote share", "reward", "s/step", "phase", "agreement", "left")
"""Columns in the order in which a narrow terminal loses them."""


def _fitting(rows: dict[str, dict[str, str]], width: int) -> list[str]:
    names = list(next(iter(rows.values())))
    room = {name: 3 + max(len(name), *(len(cells[name]) for cells in rows.values())) for name in names}
    taken = 4 + max(map(len, rows)) + sum(room.values())
    for name in _LEAST_WANTED:
        if taken <= width:
            break
        names.remove(name)
        taken -= room[name]
    return names


def _cells(agent: AgentProgress, steps: int) -> dict[str, str]:
    train, evaluation = agent.train, agent.evaluation
    left, pace = agent.seconds_left(steps), agent.pace()
    return {
        "step": f"{train.get('step', 0)}/{steps}",
        "phase": agent.phase or ("-" if train else "starting"),
        "held-out": f"{sparks(agent.accuracies)} {_share(evaluation.get('accuracy'))}",
        "agreement": f"{sparks(agent.agreements)} {_number(train.get('agreement'), 2)}",
        "reward": _number(train.get("reward"), 2),
        "vote share": _number(train.get("vote_share"), 2),
        "length": _number(train.get("length"), 0),
        "abstained": _share(train.get("abstained")),
        "s/step": _number(pace, 2),
        "left": "-" if left is None else _duration(left),
    }


def sparks(shares: Sequence[float]) -> str:
    """The course of a share between 0 and 1 as bars, the newest on the right; a bar is the mean of a like number of values."""
    n = min(len(shares), _SPARKS)
    cuts = [round(i * len(shares) / n) for i in range(n + 1)] if n else []
    means = [sum(shares[a:b]) / (b - a) for a, b in pairwise(cuts)]
    return "".join(_BARS[min(int(mean * len(_BARS)), len(_BARS) - 1)] for mean in means).rjust(_SPARKS)


def as_line(name: str, record: Line, steps: int) -> str:
    """One record for a log file or a pipe."""
    if record["kind"] == "eval":
        sampled = f", avg@{record['samples']} {_share(record['avg'])}" if record.get("samples") else ""
        return f"{name}: step {record['step']}/{steps}: held-out accuracy {_share(record.get('accuracy'))}{sampled}"
    values = ", ".join(
        f"{key} {_number(record.get(key), 3)}" for key in ("reward", "agreement", "vote_share")
    )
    seconds = sum(record.get(f"seconds_{phase}") or 0.0 for phase in PHASES)
    return f"{name}: step {record['step']}/{steps}: {values}, {seconds:.2f} s"


def _number(value: Any, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _share(value: Any) -> str:
    return "-" if value is None else f"{value:.1%}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
