"""MAPoRL: agents debate, every turn's answer is scored by a verifier, and agents share what later turns score.

The verifier is the grader with the labelled answers, so that this is no label-free method. Every agent answers each
problem K times, which are K debates side by side; after the first turn an agent sees all answers of its debate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from mmcorl.cohort.sameness import require_different
from mmcorl.config import MaporlConfig, Scale
from mmcorl.errors import CohortMismatch
from mmcorl.graders import Answer
from mmcorl.problems import Problem
from mmcorl.rewards import Rewards
from mmcorl.training import grpo
from mmcorl.training.interaction import roles
from mmcorl.training.interaction.maporl_rewards import incentives, shared_rewards
from mmcorl.training.interaction.quoting import Ask
from mmcorl.training.interaction.shared import (
    Interaction,
    InteractionStep,
    Lesson,
    Phase,
    Table,
    mean,
    records_of,
    said_of,
    step_extras,
)
from mmcorl.training.voting import votes_of

_VERDICTS = {"1": 1.0, "0": 0.0, "": None}
"""What agents tell each other of an answer: its score, or that the problem has no label."""


@dataclass(frozen=True)
class Turn:
    """One turn of all debates; `[i][k]` is the debate in run k on problem i."""

    phase: Phase
    """This agent's, with an ask for each debate that goes on; in the first turn for each problem."""
    going: list[list[bool]]
    """The debates that reached this turn."""
    answers: list[list[Answer | None]]
    """This agent's, a row for each ask."""
    texts: Mapping[str, Table]
    scores: Mapping[str, list[list[float | None]]]
    """Every agent's; None where the problem has no label or the debate ended before."""


@dataclass
class Maporl(Interaction):
    """The debate. `golds` are the labelled answers by problem id, which the verifier reads."""

    golds: Mapping[str, Answer | None] = field(default_factory=dict)

    def step(self, number: int, stop: bool = False) -> InteractionStep:
        """As `Trainer.step`."""
        name, runs, phases = self.agent.name, self.config.rollouts.per_problem, self.phases(number)
        problems = self.batch(number)
        checks = self.check_engine(number, problems)
        instruction = self.config.prompt.instruction
        write = partial(_answer_alone, instruction)

        phase = self.speak(number, "debater 1", [Ask(p, p.id, write) for p in problems], runs)
        phases.enter("grading")
        readings = self.conclusions(phase)
        ballots = self.count(readings)
        phases.enter("exchange")
        cohort, stop = self.exchange_ballots(number, problems, ballots, stop)
        require_different(name, cohort, readings.surprises)
        votes, supervising = votes_of(self.config.cohort, name, cohort, self.grader.classes)

        going, turns = [[True] * runs for _ in problems], []
        answers = readings.answers
        while True:
            phases.enter("exchange")
            turns.append(self.told(number, len(turns) + 1, problems, going, phase, answers))
            going = self.still_going(number, problems, turns[-1])
            if len(turns) == self._settings.turns or not any(map(any, going)):
                break
            phases.enter("rollout")
            phase = self.speak(
                number, f"debater {len(turns) + 1}", self.to_debate(problems, turns[-1], going), samples=1
            )
            phases.enter("grading")
            answers = self.conclusions(phase).answers

        phases.enter("update")
        lessons = self.lessons(turns)
        learning = self.learn_from(number, lessons)
        said = said_of(problems, supervising, votes[name])
        alone = lessons[0]
        return InteractionStep(
            number, problems, self.as_of_the_problems(turns[0].phase), readings.answers, readings.lengths,
            readings.finished, votes, supervising,
            Rewards(alone.rewards.tolist(), alone.kept.all(dim=1).tolist()), alone.advantages,
            {**learning, **checks}, phases.end(), stop, nats=readings.nats,
            extra={"label_free": False, **step_extras(lessons), **self.metrics(turns, lessons)},
            records=[r for x, t in zip(lessons, turns, strict=True) for r in records_of(x, t.answers, said)],
        )  # fmt: skip

    def told(
        self,
        number: int,
        at: int,
        problems: Sequence[Problem],
        going: list[list[bool]],
        phase: Phase,
        answers: list[list[Answer | None]],
    ) -> Turn:
        """A turn once everybody knows what everybody said, and how it was scored."""
        texts = self.share_texts(number, f"answers of turn {at}", problems, scattered(phase.texts, going, ""))
        grid = scattered(answers, going, None)
        verdicts = [
            [self.verdict(problem, answer) if goes else "" for answer, goes in zip(row, on, strict=True)]
            for problem, row, on in zip(problems, grid, going, strict=True)
        ]
        said = self.share_texts(number, f"verdicts of turn {at}", problems, verdicts)
        return Turn(phase, going, answers, texts, {name: _scores(name, rows) for name, rows in said.items()})

    def verdict(self, problem: Problem, answer: Answer | None) -> str:
        """`1` for the labelled answer, `0` for any other or none, and nothing where there is no label."""
        gold = self.golds.get(problem.id)
        return "" if gold is None else str(int(self.grader.correct(answer, gold, problem)))

    def still_going(self, number: int, problems: Sequence[Problem], turn: Turn) -> list[list[bool]]:
        """The debates that go on after a turn: those where not all gave the same answer, if that is to end one.

        Agents tell each other their answers for that, as two graders may read one text differently where time is short.
        """
        if not self._settings.stop_on_agreement:
            return turn.going
        own = [[a.value if a else "" for a in row] for row in scattered(turn.answers, turn.going, None)]
        said = self.share_texts(number, f"conclusions after {turn.phase.role}", problems, own)
        return [
            [
                goes and ("" in given or len(given) > 1)
                for k, goes in enumerate(row)
                for given in [{table[i][k] for table in said.values()}]
            ]
            for i, row in enumerate(turn.going)
        ]

    def to_debate(self, problems: Sequence[Problem], last: Turn, going: list[list[bool]]) -> list[Ask]:
        """For each debate that goes on: the problem, this agent's answer at the last turn, then those of the others."""
        name, at = self.agent.name, int(last.phase.role.split()[-1]) + 1
        others = [table for other, table in last.texts.items() if other != name]
        write = partial(_answer_again, self.config.prompt.instruction)
        return [
            Ask(p, f"{p.id}#debater{at}.{k}", write, (last.texts[name][i][k], *(t[i][k] for t in others)))
            for i, p in enumerate(problems)
            for k, goes in enumerate(going[i])
            if goes
        ]

    def lessons(self, turns: Sequence[Turn]) -> list[Lesson]:
        """What this agent learns from, turn by turn; each answer is compared with those to its problem at its turn."""
        rewards_pkt, kept_pkt = self.rewards(turns)
        lessons = []
        for at, turn in enumerate(turns):
            rewards, kept = rewards_pkt[..., at], kept_pkt[..., at]
            advantages = turn_advantages(rewards, kept, self.config.loss.scale)
            if at > 0:  # an ask for each debate
                on = torch.tensor(turn.going)
                rewards, advantages, kept = (t[on][:, None] for t in (rewards, advantages, kept))
            lessons.append(Lesson(turn.phase, rewards, advantages, kept))
        return lessons

    def rewards(self, turns: Sequence[Turn]) -> tuple[Tensor, Tensor]:
        """This agent's rewards (P, K, T), and where there are any: in debates on labelled problems, at turns reached."""
        settings = self._settings
        reached_pkt = torch.stack([torch.tensor(turn.going) for turn in turns], dim=-1)
        scores = [[turn.scores[name] for turn in turns] for name in self.names]
        flat = [
            [[s or 0.0 for row in table for s in row] for table in tables] for tables in scores
        ]  # agents, turns, debates
        scores_dat = torch.tensor(flat, dtype=torch.float64).permute(2, 0, 1)
        reached_dt = reached_pkt.flatten(0, 1)
        values_dat = shared_rewards(scores_dat, reached_dt, settings.discount)
        if any(settings.incentives):
            values_dat = values_dat + incentives(scores_dat, reached_dt, settings.incentives)
        labelled_pk = torch.tensor([
            [all(table[0][i][k] is not None for table in scores) for k in range(len(row))]
            for i, row in enumerate(turns[0].going)
        ])  # fmt: skip
        values_pkt = values_dat[:, self.place].view(reached_pkt.shape).float()
        return values_pkt, reached_pkt & labelled_pk[..., None]

    def metrics(self, turns: Sequence[Turn], lessons: Sequence[Lesson]) -> dict[str, Any]:
        """By turn: the share of debates that reach it, this agent's accuracy, and its mean reward."""
        found: dict[str, Any] = {}
        for at in range(1, self._settings.turns + 1):
            turn = turns[at - 1] if at <= len(turns) else None
            scores = turn.scores[self.agent.name] if turn else []
            lesson = lessons[at - 1] if turn else None
            found[f"reached_{at}"] = mean(goes for row in turn.going for goes in row) if turn else 0.0
            found[f"accuracy_{at}"] = mean(s for row in scores for s in row if s is not None)
            found[f"reward_{at}"] = mean(lesson.rewards[lesson.kept].tolist()) if lesson else None
        return found

    @property
    def _settings(self) -> MaporlConfig:
        assert self.config.interaction is not None
        return self.config.interaction.maporl


def turn_advantages(rewards_pk: Tensor, kept_pk: Tensor, scale: Scale) -> Tensor:
    """How much better than the others to its problem at this turn each answer is (P, K); 0 where not kept."""
    advantages = torch.zeros_like(rewards_pk)
    for row, kept, place in zip(rewards_pk, kept_pk, range(len(rewards_pk)), strict=True):
        if kept.any():
            advantages[place, kept] = grpo.group_advantages(row[kept][None], torch.tensor([True]), scale)[0]
    return advantages


def scattered(rows: Sequence[Sequence[Any]], going: Sequence[Sequence[bool]], absent: Any) -> list[list[Any]]:
    """Items of the debates that go on, in order, as rows of problems, with `absent` for those that ended."""
    items = iter([item for row in rows for item in row])
    table = [[next(items) if goes else absent for goes in row] for row in going]
    assert next(items, None) is None
    return table


def _scores(name: str, rows: Table) -> list[list[float | None]]:
    for text in (text for row in rows for text in row):
        if text not in _VERDICTS:
            raise CohortMismatch(f"agent {name} sent {text[:40]!r} as the verdict on an answer")
    return [[_VERDICTS[text] for text in row] for row in rows]


def _answer_alone(instruction: str, task: str, texts: Sequence[str]) -> str:
    return roles.solve(task, instruction)


def _answer_again(instruction: str, task: str, texts: Sequence[str]) -> str:
    return roles.debate(task, instruction, texts[0], texts[1:])
