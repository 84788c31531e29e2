"""Who can correct whom: for two agents' votes on one problem, which of them are right, over the steps of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Literal

from mmcorl.analysis.report.digests import Vote, evenly
from mmcorl.analysis.report.problems import Judge

Outcome = Literal["both", "first", "second", "neither"]
OUTCOMES: tuple[Outcome, ...] = ("both", "first", "second", "neither")

_MOST_PAIRS = 3
_MOST_SPANS = 20
_MOST_VOTES = 2000


@dataclass(frozen=True)
class Span:
    """Neighbouring steps, and how many of the judged problems had each outcome in them."""

    first_step: int
    last_step: int
    counts: Counter[Outcome]

    def share(self, outcome: Outcome) -> float:
        return self.counts[outcome] / self.counts.total()


@dataclass(frozen=True)
class Outcomes:
    """The four outcomes of a pair of agents: both right, only the first, only the second, neither."""

    first: str
    second: str
    spans: list[Span]
    judged_steps: int
    steps: int


def pairs(agents: Sequence[str]) -> list[tuple[str, str]]:
    """The pairs that are looked at: all of a small cohort, neighbours in the ring of a larger one."""
    every = list(combinations(agents, 2))
    return every if len(every) <= _MOST_PAIRS else [(agents[i - 1], name) for i, name in enumerate(agents)]


def count_outcomes(
    votes: Mapping[str, Sequence[Vote]], first: str, second: str, judge: Judge
) -> Outcomes | None:
    """Judge both agents' own votes at every step, or of a long run at steps evenly spaced.

    None where no problem that both voted on has a labelled answer. An agent that elected nothing is not right.
    """
    ballots = {(vote.step, vote.problem): vote.answer for vote in votes.get(second, ())}
    by_step: dict[int, list[tuple[str, str | None, str | None]]] = {}
    for vote in votes.get(first, ()):
        if (vote.step, vote.problem) in ballots:
            answers = (vote.problem, vote.answer, ballots[vote.step, vote.problem])
            by_step.setdefault(vote.step, []).append(answers)
    if not by_step:
        return None
    per_step = max(map(len, by_step.values()))
    steps = evenly(list(by_step), max(1, _MOST_VOTES // per_step))
    counted = {step: Counter(_outcomes(by_step[step], judge)) for step in steps}
    spans = [
        Span(span[0], span[-1], sum((counted[step] for step in span), Counter()))
        for span in _cut([step for step in steps if counted[step]], _MOST_SPANS)
    ]
    return Outcomes(first, second, spans, len(steps), len(by_step)) if spans else None


def _outcomes(answers: Sequence[tuple[str, str | None, str | None]], judge: Judge) -> list[Outcome]:
    names: dict[tuple[bool | None, bool | None], Outcome] = {
        (True, True): "both",
        (True, False): "first",
        (False, True): "second",
        (False, False): "neither",
    }
    verdicts = [(judge.right(problem, a), judge.right(problem, b)) for problem, a, b in answers]
    return [names[verdict] for verdict in verdicts if verdict in names]


def _cut(steps: Sequence[int], most: int) -> list[Sequence[int]]:
    """Neighbours together, in at most so many spans of nearly equal length."""
    count = min(most, len(steps))
    edges = [round(place * len(steps) / count) for place in range(count + 1)] if count else [0]
    return [steps[a:b] for a, b in pairwise(edges)]
