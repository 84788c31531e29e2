"""How far an evaluation is, with the accuracy so far."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from mmcorl.evaluation.records import SampleRecord


class Progress:
    """A bar on the terminal, or a line for each benchmark where the error stream is none."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[figures]}"),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._total = 0
        self._seen = self._right = self._read = self._cut_off = 0

    def start(self, title: str, samples: int) -> None:
        """Begin to count the samples of one model on one benchmark."""
        self._title, self._total = title, samples
        self._seen = self._right = self._read = self._cut_off = 0
        self._task = self._bars.add_task(title, total=samples, figures="")

    def advance(self, samples: Sequence[SampleRecord]) -> None:
        """Count these, new or found done."""
        self._seen += len(samples)
        self._right += sum(s.correct for s in samples)
        self._read += sum(s.answer is not None for s in samples)
        self._cut_off += sum(not s.finished for s in samples)
        self._bars.update(self._task, completed=self._seen, figures=self._figures())
        if self._seen == self._total and not self._console.is_terminal:
            self._console.print(f"{self._title}: {self._seen} samples, {self._figures()}", highlight=False)

    def _figures(self) -> str:
        right, read, cut = (f"{100 * n / self._seen:.1f} %" for n in (self._right, self._read, self._cut_off))
        return f"right {right}, read {read}, cut off {cut}"

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()
