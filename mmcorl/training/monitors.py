"""Alarms: what is going wrong in a run, in words, from the metrics that it writes anyway.

Label-free training can fail in silence: the votes agree more and more, and on nothing. Each rule here looks at one
metric over the last steps and says what it means and what to change. None of them reads a labelled answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mmcorl.config import MonitorsConfig

Metrics = Mapping[str, Any]

_BASELINE_STEPS = 5
"""The first steps of a run, whose mean is what later ones are compared with."""
_DOUBLING_STEPS = 50


@dataclass(frozen=True)
class Alarm:
    """What is wrong since when, and what to change. `collapse` marks the ones that `monitors.stop_on_collapse` obeys."""

    name: str
    step: int
    what: str
    advice: str
    collapse: bool

    def __str__(self) -> str:
        return f"{self.what}: {self.advice}"

    def line(self) -> dict[str, Any]:
        """What `metrics.jsonl` keeps of it."""
        return {"name": self.name, "what": self.what, "advice": self.advice, "collapse": self.collapse}


class _History:
    """The means of a run's first steps, and every metric of its last ones."""

    def __init__(self) -> None:
        self.first: list[Metrics] = []
        self.last: deque[Metrics] = deque(maxlen=_DOUBLING_STEPS)

    def add(self, metrics: Metrics) -> None:
        if len(self.first) < _BASELINE_STEPS:
            self.first.append(metrics)
        self.last.append(metrics)

    def start(self, name: str) -> float | None:
        """Mean over the first steps that have this metric."""
        return _mean([m[name] for m in self.first if m.get(name) is not None])

    def before(self, name: str) -> float | None:
        """Its smallest mean over five steps running, among the last."""
        values = [m[name] for m in self.last if m.get(name) is not None]
        means = [_mean(values[i : i + _BASELINE_STEPS]) for i in range(len(values) - _BASELINE_STEPS)]
        return min((mean for mean in means if mean is not None), default=None)


@dataclass(frozen=True)
class _Rule:
    """`tell` gives the finding at one step, or None; the alarm goes off when `monitors.patience` steps running have one.

    It is asked only at steps that have all the metrics that it `reads`.
    """

    name: str
    reads: tuple[str, ...]
    advice: str
    collapse: bool
    tell: Callable[[Metrics, _History, MonitorsConfig], str | None]


class Monitor:
    """Watches the metrics of one agent, step after step. A resumed run shows it the earlier steps first.

    An alarm is given once, and again only after its finding has gone away and come back. `alone` is for an agent that
    supervises itself, which always agrees with its supervisor.
    """

    def __init__(self, config: MonitorsConfig, alone: bool = False) -> None:
        self._config, self._history = config, _History()
        self._rules = [rule for rule in _RULES if not (alone and rule.name in _NEED_A_PEER)]
        self._running = {rule.name: 0 for rule in self._rules}

    def look(self, step: int, metrics: Metrics) -> list[Alarm]:
        """The alarms that go off at this step."""
        self._history.add(metrics)
        alarms = []
        for rule in self._rules:
            readable = all(metrics.get(metric) is not None for metric in rule.reads)
            finding = rule.tell(metrics, self._history, self._config) if readable else None
            self._running[rule.name] = 0 if finding is None else self._running[rule.name] + 1
            if finding is not None and self._running[rule.name] == self._config.patience:
                alarms.append(Alarm(rule.name, step, finding, rule.advice, rule.collapse))
        return alarms


def _few_answers(m: Metrics, h: _History, c: MonitorsConfig) -> str | None:
    if 1 - m["abstained"] >= c.parsed_min:
        return None
    return f"only {1 - m['abstained']:.0%} of completions hold an answer"


def _cut_off(m: Metrics, h: _History, c: MonitorsConfig) -> str | None:
    before = h.before("truncated")
    if before is None or m["truncated"] < max(2 * before, c.truncated_max):
        return None
    return f"{m['truncated']:.0%} of completions run into rollouts.max_tokens, up from {before:.0%}"


def _no_contrast(m: Metrics, h: _History, c: MonitorsConfig) -> str | None:
    if m["live_groups"] >= c.live_min:
        return None
    return f"only {m['live_groups']:.0%} of groups have rewards that differ"


def _reward_gone(m: Metrics, h: _History, c: MonitorsConfig) -> str | None:
    start = h.start("reward_std")
    if not start or m["reward_std"] >= c.reward_std_min * start:
        return None
    return f"rewards within a group differ {m['reward_std'] / start:.2f} times as much as at the start"


def _constant_answer(m: Metrics, h: _History, c: MonitorsConfig) -> str | None:
    share, start = m["constant_answer"], h.start("constant_answer")
    if start is None or share <= max(c.constant_max, 1.5 * start):
        return None
    return f"{share:.0%} of the labels of a step are one answer, up from {start:.0%}"


def _fewer_answers(m: Metrics, h: _History, c: MonitorsConfig) -> str | None:
    start = h.start("distinct_labels")
    if not start or m["vote_share"] < 0.95 or m["distinct_labels"] >= 0.5 * start:
        return None
    return f"votes are unanimous, over {m['distinct_labels']:.0f} different answers a step instead of {start:.0f}"


def _length_gone(m: Metrics, h: _History, c: MonitorsConfig) -> str | None:
    start = h.start("length")
    if not start or 1 / c.length_factor <= m["length"] / start <= c.length_factor:
        return None
    return f"completions are {m['length']:.0f} tokens long; they were {start:.0f}"


def _at_odds(m: Metrics, h: _History, c: MonitorsConfig) -> str | None:
    if m["agreement"] >= c.agreement_min:
        return None
    return f"this agent's votes agree with the supervising ones on {m['agreement']:.0%} of problems"


def _alike(m: Metrics, h: _History, c: MonitorsConfig) -> str | None:
    if m["agreement"] <= c.agreement_max:
        return None
    return f"this agent's votes agree with the supervising ones on {m['agreement']:.0%} of problems"


def _off_policy(m: Metrics, h: _History, c: MonitorsConfig) -> str | None:
    if m["masked"] <= c.masked_max:
        return None
    return f"{m['masked']:.0%} of tokens have an importance weight at its cap or masked"


_RULES: Sequence[_Rule] = (
    _Rule("few_answers", ("abstained",), "mend prompt.instruction, or raise rollouts.max_tokens", True, _few_answers),
    _Rule("cut_off", ("truncated",), "lower optimizer.lr, set loss.mask_truncated=true, or raise rollouts.max_tokens", True, _cut_off),
    _Rule("no_contrast", ("live_groups",), "the problems are too easy or too hard for this agent; change data.train, or stop", False, _no_contrast),
    _Rule("reward_gone", ("reward_std",), "the run has converged or collapsed; compare held-out accuracy, and keep an earlier checkpoint if it fell", False, _reward_gone),
    _Rule("constant_answer", ("constant_answer",), "the cohort learns to say one thing; set cohort.threshold above 0 or choose agents that err differently", True, _constant_answer),
    _Rule("fewer_answers", ("distinct_labels", "vote_share"), "the cohort learns to say few things; set cohort.threshold above 0 or choose agents that err differently", True, _fewer_answers),
    _Rule("length_gone", ("length",), "lower optimizer.lr, or set loss.beta above 0 to keep near the start", False, _length_gone),
    _Rule("at_odds", ("agreement",), "a weak supervisor, or prompts that do not match; look at the completions, or set cohort.threshold to 0.3 or more", False, _at_odds),
    _Rule("alike", ("agreement",), "the cohort has nothing more to teach itself; stop, or keep the best checkpoint so far", False, _alike),
    _Rule("off_policy", ("masked",), "sampler and policy disagree; check dtype and rollouts.engine, or set loss.sampler_correction", False, _off_policy),
)  # fmt: skip


_NEED_A_PEER = {"at_odds", "alike"}


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
