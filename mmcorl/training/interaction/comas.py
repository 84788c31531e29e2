"""CoMAS: agents solve, evaluate each other's solutions, and score them; rewards come from the scores alone.

Every agent solves each problem K times a round, which are K runs of the interaction side by side. Within a run each
solution is evaluated by one agent and then scored by one, drawn so that everybody has one of each to do. From the
second round on a solver is shown solutions and evaluations of the round before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from mmcorl.cohort.sameness import require_different
from mmcorl.config import ComasConfig, Scale
from mmcorl.problems import Problem
from mmcorl.rewards import Rewards
from mmcorl.training import grpo
from mmcorl.training.interaction import roles
from mmcorl.training.interaction.assignment import assign, draw
from mmcorl.training.interaction.comas_rewards import role_rewards
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
from mmcorl.training.phases import Phases
from mmcorl.training.voting import votes_of

ROLES = ["solver", "evaluator", "scorer"]

Duties = list[list[list[int]]]
"""The agent that has to do with the solution of agent s to problem i in run k, at [i][k][s]."""


@dataclass(frozen=True)
class Round:
    """What came of one round. Tables have a row for each problem and a column for each run."""

    phases: Mapping[str, Phase]
    """This agent's, by role."""
    solutions: Mapping[str, Table]
    evaluations: Mapping[str, Table]
    evaluators: Duties
    scorers: Duties
    scores: list[list[list[int | None]]]
    """The score of every agent's solution, at [i][k][s]."""


class Comas(Interaction):
    """The loop of CoMAS. Nothing in it knows a labelled answer."""

    def step(self, number: int, stop: bool = False) -> InteractionStep:
        """As `Trainer.step`."""
        config, name, phases = self.config, self.agent.name, self.phases(number)
        assert config.interaction is not None
        problems = self.batch(number)
        checks = self.check_engine(number, problems)
        rounds: list[Round] = []

        first = self.speak(
            number, "solver 1", self.to_solve(number, problems, rounds), config.rollouts.per_problem
        )
        phases.enter("grading")
        readings = self.conclusions(first)
        ballots = self.count(readings)
        phases.enter("exchange")
        cohort, stop = self.exchange_ballots(number, problems, ballots, stop)
        require_different(name, cohort, readings.surprises)
        votes, supervising = votes_of(self.config.cohort, name, cohort, self.grader.classes)

        for _ in range(config.interaction.comas.rounds):
            rounds.append(self.round(number, problems, rounds, first, phases))

        phases.enter("grading")
        lessons = self.lessons(rounds)
        answers = {"solver 1": readings.answers}
        for lesson in lessons:
            role = lesson.phase.role
            if role.startswith("solver") and role not in answers:
                answers[role] = self.conclusions(lesson.phase).answers
        phases.enter("update")
        learning = self.learn_from(number, lessons)

        said = said_of(problems, supervising, votes[name])
        solved = lessons[0]
        return InteractionStep(
            number, problems, self.as_of_the_problems(first), readings.answers, readings.lengths, readings.finished,
            votes, supervising, Rewards(solved.rewards.tolist(), [True] * len(problems)), solved.advantages,
            {**learning, **checks}, phases.end(), stop, nats=readings.nats,
            extra={"label_free": True, **step_extras(lessons), **self.metrics(rounds, lessons)},
            records=[r for lesson in lessons for r in records_of(lesson, answers.get(lesson.phase.role), said)],
        )  # fmt: skip

    def round(
        self, number: int, problems: Sequence[Problem], before: Sequence[Round], first: Phase, timed: Phases
    ) -> Round:
        """Solve, evaluate, score. The solutions of round 1 are there already."""
        at, settings = len(before) + 1, self._settings
        solved = first
        if before:
            timed.enter("rollout")
            solved = self.speak(
                number,
                f"solver {at}",
                self.to_solve(number, problems, before),
                self.config.rollouts.per_problem,
            )
        timed.enter("exchange")
        solutions = self.share_texts(number, f"solutions of round {at}", problems, solved.texts)

        timed.enter("rollout")
        nobody = [] if settings.self_evaluation else [list(range(len(self.names)))]
        evaluators = self.duties(number, at, "evaluator", problems, [[nobody] * self._runs] * len(problems))
        evaluated = self.speak(
            number, f"evaluator {at}",
            [
                Ask(p, f"{p.id}#evaluator{at}.{k}", _evaluation, (solutions[self.names[s]][i][k],))
                for i, p in enumerate(problems) for k, s in enumerate(self.mine(evaluators[i]))
            ],
            samples=1,
        )  # fmt: skip
        timed.enter("exchange")
        evaluations = self.share_texts(
            number, f"evaluations of round {at}", problems, self.tabled(evaluated.texts)
        )

        timed.enter("rollout")
        taken = [
            [[*nobody, row] if nobody and len(self.names) > 2 else nobody for row in rows]
            for rows in evaluators
        ]
        scorers = self.duties(number, at, "scorer", problems, taken)
        scored = self.speak(
            number, f"scorer {at}",
            [
                Ask(
                    p, f"{p.id}#scorer{at}.{k}", _scoring,
                    (solutions[self.names[s]][i][k], evaluations[self.names[evaluators[i][k][s]]][i][k]),
                )
                for i, p in enumerate(problems) for k, s in enumerate(self.mine(scorers[i]))
            ],
            samples=1,
        )  # fmt: skip
        timed.enter("exchange")
        said = self.share_texts(number, f"scores of round {at}", problems, self.tabled(scored.texts))
        scores = [
            [[roles.read_score(said[self.names[c]][i][k]) for c in row] for k, row in enumerate(rows)]
            for i, rows in enumerate(scorers)
        ]
        phases = {"solver": solved, "evaluator": evaluated, "scorer": scored}
        return Round(phases, solutions, evaluations, evaluators, scorers, scores)

    def to_solve(self, number: int, problems: Sequence[Problem], before: Sequence[Round]) -> list[Ask]:
        """The problems with references from the round before; all K runs of this agent see the same ones."""
        at, asks = len(before) + 1, []
        for i, problem in enumerate(problems):
            references: list[tuple[str, str]] = []
            if before:
                last = before[-1]
                pairs = [
                    (
                        last.solutions[solver][i][k],
                        last.evaluations[self.names[last.evaluators[i][k][s]]][i][k],
                    )
                    for k in range(self._runs)
                    for s, solver in enumerate(self.names)
                ]
                key = (self.config.run.seed, number, at, problem.id, self.agent.name)
                references = draw(pairs, self._settings.references, key)
            write = partial(_solution, self.config.prompt.instruction)
            # A lone agent would be asked the first round's questions, and so they keep their ids.
            ask_id = problem.id if at == 1 else f"{problem.id}#solver{at}"
            asks.append(Ask(problem, ask_id, write, tuple(text for pair in references for text in pair)))
        return asks

    def duties(
        self,
        number: int,
        at: int,
        role: str,
        problems: Sequence[Problem],
        taken: Sequence[Sequence[list[list[int]]]],
    ) -> Duties:
        """Who has a role towards whose solution, for every problem and run; all agents draw the same."""
        seed = self.config.run.seed
        return [
            [assign(len(self.names), (seed, number, at, role, p.id, k), out) for k, out in enumerate(rows)]
            for p, rows in zip(problems, taken, strict=True)
        ]

    def mine(self, duties: Sequence[Sequence[int]]) -> list[int]:
        """Whose solution this agent has to do with, in each run of one problem."""
        return [row.index(self.place) for row in duties]

    def tabled(self, texts: Table) -> Table:
        """Texts of asks that are one for each problem and run, as rows of problems."""
        flat = [text for row in texts for text in row]
        return [flat[start : start + self._runs] for start in range(0, len(flat), self._runs)]

    def lessons(self, rounds: Sequence[Round]) -> list[Lesson]:
        """What this agent learns from, round by round and role by role. Advantages are standardised within a role."""
        rewards = [self.rewards(outcome) for outcome in rounds]
        advantages = {
            role: role_advantages([r[role] for r in rewards], self.config.loss.scale) for role in ROLES
        }
        return [
            Lesson(
                outcome.phases[role],
                rewards[at][role],
                advantages[role][at],
                torch.ones_like(rewards[at][role], dtype=torch.bool),
            )
            for at, outcome in enumerate(rounds)
            for role in ROLES
        ]

    def rewards(self, outcome: Round) -> dict[str, Tensor]:
        """This agent's rewards in one round: of its solutions (P, K), its evaluations (P K, 1) and its scores (P K, 1)."""
        solver, evaluator, scorer = [], [], []
        for scores, evaluators, scorers in zip(
            outcome.scores, outcome.evaluators, outcome.scorers, strict=True
        ):
            solver.append([role_rewards(row[self.place]).solver for row in scores])
            for row, s in zip(scores, self.mine(evaluators), strict=True):
                evaluator.append([role_rewards(row[s]).evaluator])
            for row, s in zip(scores, self.mine(scorers), strict=True):
                scorer.append([role_rewards(row[s]).scorer])
        return dict(zip(ROLES, map(torch.tensor, (solver, evaluator, scorer)), strict=True))

    def metrics(self, rounds: Sequence[Round], lessons: Sequence[Lesson]) -> dict[str, Any]:
        """Rewards and lengths by role, and how the cohort scores: the same for every agent where it says so in docs."""
        found: dict[str, Any] = {}
        for role in ROLES:
            own = [lesson for lesson in lessons if lesson.phase.role.startswith(role)]
            found[f"reward_{role}"] = mean(r for lesson in own for r in lesson.rewards.flatten().tolist())
            found[f"length_{role}"] = (
                mean(n for lesson in own for n in lesson.phase.lengths.flatten().tolist()) or None
            )
        scores = [score for r in rounds for rows in r.scores for row in rows for score in row]
        parsed = [score for score in scores if score is not None]
        for name, duties in (("self_evaluation", "evaluators"), ("self_scoring", "scorers")):
            found[name] = mean(
                agent == s
                for r in rounds
                for rows in getattr(r, duties)
                for row in rows
                for s, agent in enumerate(row)
            )
        return found | {
            "labelled": mean(score is not None for score in scores),
            "score": mean(parsed),
            "score_top": mean(score == roles.SCORES[-1] for score in parsed),
        }

    @property
    def _settings(self) -> ComasConfig:
        assert self.config.interaction is not None
        return self.config.interaction.comas

    @property
    def _runs(self) -> int:
        return self.config.rollouts.per_problem


def role_advantages(rewards: Sequence[Tensor], scale: Scale) -> list[Tensor]:
    """How much better than the mean of all completions in one role each is: a tensor for each of `rewards`.

    Roles are rewarded on scales of their own, so that no role is a baseline for another.
    """
    flat = torch.cat([r.flatten() for r in rewards])
    advantages = grpo.group_advantages(flat[None], torch.tensor([True]), scale)[0]
    parts = advantages.split([r.numel() for r in rewards])
    return [part.view_as(r) for part, r in zip(parts, rewards, strict=True)]


def _solution(instruction: str, task: str, texts: Sequence[str]) -> str:
    return roles.solve(task, instruction, list(zip(texts[::2], texts[1::2], strict=True)))


def _evaluation(task: str, texts: Sequence[str]) -> str:
    return roles.evaluate(task, *texts)


def _scoring(task: str, texts: Sequence[str]) -> str:
    return roles.score(task, *texts)
