"""The training step, top to bottom, and the loop around it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random

import torch
from torch import Tensor

from mmcorl.agents.agent import Agent
from mmcorl.agents.batches import TokenGroup
from mmcorl.agents.endpoint import Endpoint
from mmcorl.agents.engine_check import engine_gap
from mmcorl.agents.statistics import STATISTICS
from mmcorl.cohort.ballots import Ballot, Vote, elect
from mmcorl.cohort.exchange import Exchange
from mmcorl.cohort.sameness import digest, require_different, surprise
from mmcorl.config import Config
from mmcorl.data.order import problems_of_step
from mmcorl.graders import Answer, Grader
from mmcorl.problems import Problem, RolloutGroup
from mmcorl.rewards import RewardInputs, Rule
from mmcorl.training import checkpoints, grpo
from mmcorl.training.ahead import Ahead, write_ahead
from mmcorl.training.learner import Learner, Observed
from mmcorl.training.phases import Phases
from mmcorl.training.step import Readings, Step
from mmcorl.training.teacher import Teacher
from mmcorl.training.turns import Turns
from mmcorl.training.voting import votes_of
from mmcorl.training.world import World


@dataclass
class Trainer:
    """One agent of a cohort at its training. Every rank of the agent has one, and takes its share of each batch.

    Rollouts and gradients are this rank's own; all in between is small and done for the whole batch on every rank.
    """

    config: Config
    agent: Agent | Endpoint
    learner: Learner | None
    """None for an agent that only votes."""
    rule: Rule
    problems: Sequence[Problem]
    exchange: Exchange | None
    """None on all ranks but the first."""
    grader: Grader
    world: World
    teacher: Teacher | None = None
    twins: Sequence[Problem] = ()
    """The other wording of each problem, where the cohort is asked both."""
    turns: Turns | None = None
    """Of agents that share a device and take turns."""
    ahead: Ahead | None = None
    """Rollouts of the next step that are there already."""
    engine_checked: bool = False
    tell: Callable[[int, str], None] = lambda number, phase: None
    """Called with the step's number and the name of each phase that begins."""

    def step(self, number: int, stop: bool = False) -> Step:
        """Step `number`, counted from 1. With `stop`, tell the cohort that this is to be everybody's last step."""
        config, world, name, phases = self.config, self.world, self.agent.name, self.phases(number)
        problems = self.batch(number)
        checks = self.check_engine(number, problems)

        rollouts = self.sampled_ahead(number) or self.sample(self.agent, problems, number)

        phases.enter("grading")
        readings = self.read(rollouts)
        ballots = self.count(readings)
        phases.enter("exchange")
        self.send_ballots(number, problems, ballots, stop)

        phases.enter("signal")  # while the peers finish: all that needs no reward
        rollouts, readings = [self.learned(r) for r in rollouts], readings.first(config.rollouts.per_problem)
        teacher_votes = self.ask_teacher(problems, number)
        observed = self.observe(rollouts)
        statistics = self.means(observed)
        phases.enter("rollout")
        self.sample_ahead(number)

        phases.enter("exchange")
        cohort, stop = self.receive_ballots()
        require_different(name, cohort, readings.surprises)
        votes, supervising = votes_of(config.cohort, name, cohort, self.grader.classes)

        phases.enter("update")
        rewards = self.rule(
            RewardInputs(
                problems, readings.answers, votes[name], supervising, self.grader.same, self.grader.correct,
                cohort[name], teacher_votes, statistics, partial(draw, config, name, number), self.texts(rollouts),
            )
        )  # fmt: skip
        labelled = torch.tensor(rewards.labelled)
        advantages = grpo.group_advantages(torch.tensor(rewards.values), labelled, config.loss.scale)
        weights = self.weights(readings.lengths, readings.finished, labelled)

        learning = {}
        if self.learner is not None:
            with self.turn():
                learning = self.learner.learn(
                    rollouts,
                    advantages[world.rank :: world.size],
                    weights[world.rank :: world.size],
                    updates_done=(number - 1) * config.loss.updates_per_rollout,
                    observed=observed,
                )
        return Step(
            number, problems, rollouts, readings.answers, readings.lengths, readings.finished, votes, supervising,
            rewards, advantages, {**learning, **checks}, phases.end(), stop, statistics, readings.nats,
        )  # fmt: skip

    def phases(self, number: int) -> Phases:
        """The phases of step `number`, which begin with its rollouts."""
        phases = Phases(lambda phase: self.tell(number, phase))
        phases.enter("rollout")
        return phases

    def batch(self, number: int) -> list[Problem]:
        """The problems of a step: the same for every agent and rank. Where there are twins, each after its problem."""
        per_step, seed = self.config.rollouts.problems_per_step, self.config.run.seed
        places = problems_of_step(len(self.problems), per_step, number - 1, seed)
        wordings = (self.problems, self.twins) if self.twins else (self.problems,)
        return [wording[i] for i in places for wording in wordings]

    def sample(
        self, agent: Agent | Endpoint, problems: Sequence[Problem], number: int, *key: str
    ) -> list[RolloutGroup]:
        """This rank's share of the step's completions, M a problem; `key` tells other samplers' noise from the agent's."""
        settings = self.config.rollouts
        with self.turn():
            return agent.rollout(
                self.world.share(problems),
                samples=settings.votes or settings.per_problem,
                max_tokens=settings.max_tokens,
                temperature=settings.temperature,
                noise_key=(self.config.run.seed, self.agent.name, number, *key),
            )

    def turn(self) -> AbstractContextManager[None]:
        """Open it to compute: where agents on one device take turns, it waits for this agent's."""
        return nullcontext() if self.turns is None else self.turns.taken()

    def sample_ahead(self, number: int) -> None:
        """Where the run may be one update stale, the rollouts of the step after `number`, from the present weights."""
        if self.config.cohort.max_staleness and number < self.config.run.steps:
            following = number + 1
            self.ahead = Ahead(following, self.sample(self.agent, self.batch(following), following))

    def sampled_ahead(self, number: int) -> list[RolloutGroup]:
        """The rollouts of step `number` that are there already."""
        ahead, self.ahead = self.ahead, None
        return ahead.rollouts if ahead is not None and ahead.step == number else []

    def read(self, rollouts: Sequence[RolloutGroup]) -> Readings:
        """What this rank's completions and those of all others say."""
        asked = [(c, group.problem) for group in rollouts for c in group.completions]
        given = iter(self.grader.answers(asked))  # all at once: programs run side by side
        mine = []
        for group in rollouts:
            texts = [c.text for c in group.completions]
            answers = [next(given) for _ in texts]
            mine.append(
                {
                    "answers": [answer and answer.to_json() for answer in answers],
                    "lengths": [len(c.token_ids) for c in group.completions],
                    "finished": [c.finished for c in group.completions],
                    "nats": [-sum(c.logprobs) for c in group.completions],
                    "digest": digest(texts),
                    "surprise": surprise(texts),
                }
            )
        batch = self.world.gather(mine)
        return Readings(
            answers=[[a and Answer.from_json(a) for a in row["answers"]] for row in batch],
            lengths=torch.tensor([row["lengths"] for row in batch]),
            finished=torch.tensor([row["finished"] for row in batch]),
            nats=torch.tensor([row["nats"] for row in batch], dtype=torch.float64),
            digests=[row["digest"] for row in batch],
            surprises=[row["surprise"] for row in batch],
        )

    def count(self, readings: Readings) -> list[Ballot]:
        """A ballot of each problem's answers."""
        rows = zip(readings.answers, readings.digests, strict=True)
        return [Ballot.count(answers, self.grader.classes, texts) for answers, texts in rows]

    def learned(self, rollout: RolloutGroup) -> RolloutGroup:
        """The completions that are learned from: of the M that vote the first K, which are no choice."""
        return replace(rollout, completions=rollout.completions[: self.config.rollouts.per_problem])

    def ask_teacher(self, problems: Sequence[Problem], number: int) -> list[Vote]:
        """What the completions of the agent's teacher elect, once it has followed the agent; nothing without one."""
        if self.teacher is None:
            return []
        self.teacher.follow(number)
        readings = self.read(self.sample(self.teacher.agent, problems, number, "teacher"))
        config = self.config.cohort
        return [elect(ballot, config.threshold, config.ties) for ballot in self.count(readings)]

    def observe(self, rollouts: Sequence[RolloutGroup]) -> Observed | None:
        """The token statistics that the rule needs, of this rank's completions; None where it needs none."""
        names = sorted(self.rule.needs & STATISTICS.keys())
        if not names or self.learner is None:
            return None
        with self.turn():
            return self.learner.observe(rollouts, names)

    def means(self, observed: Observed | None) -> dict[str, list[list[float]]]:
        """Each statistic's mean over its tokens, for every completion of the whole batch."""
        return {
            name: self.world.gather([[float(t.double().mean()) for t in row] for row in rows])
            for name, rows in (observed or {}).items()
            if name in STATISTICS
        }

    def texts(self, rollouts: Sequence[RolloutGroup]) -> list[list[str]]:
        """What the completions of the whole batch say, where the rule reads it."""
        if "texts" not in self.rule.needs:
            return []
        return self.world.gather([[c.text for c in group.completions] for group in rollouts])

    def exchange_ballots(
        self, number: int, problems: Sequence[Problem], ballots: Sequence[Ballot], stop: bool
    ) -> tuple[dict[str, list[Ballot]], bool]:
        """Send and receive, with nothing in between."""
        self.send_ballots(number, problems, ballots, stop)
        return self.receive_ballots()

    def send_ballots(
        self, number: int, problems: Sequence[Problem], ballots: Sequence[Ballot], stop: bool
    ) -> None:
        """Send this agent's ballots of a step, and whether it asks to stop after it, on their way."""
        if self.exchange is not None:
            self.exchange.post(number, [p.id for p in problems], ballots, stop)

    def receive_ballots(self) -> tuple[dict[str, list[Ballot]], bool]:
        """Every agent's ballots of the step, in the cohort's order, and whether anybody asks to stop after it."""
        received = None
        if self.exchange is not None:
            messages = self.exchange.collect()
            received = {
                "ballots": {name: [b.to_json() for b in m.ballots] for name, m in messages.items()},
                "stop": any(m.stop for m in messages.values()),
            }
        received = self.world.broadcast(received)
        assert received is not None
        cohort = {n: [Ballot.from_json(b) for b in rows] for n, rows in received["ballots"].items()}
        return cohort, received["stop"]

    def waited(self) -> float:
        """Seconds spent in waiting for peers since this was last asked, in all phases together."""
        if self.exchange is None:
            return 0.0
        seconds, self.exchange.waited = self.exchange.waited, 0.0
        return seconds

    def weights(self, lengths: Tensor, finished: Tensor, labelled: Tensor) -> Tensor:
        """Loss weight of every completion, (B, K); 0 for those that are left out, whose tokens still count."""
        loss = self.config.loss
        shares = lengths.chunk(loss.updates_per_rollout)
        weights = torch.cat([
            grpo.completion_weights(
                share.flatten(), loss.kind, self.config.rollouts.max_tokens, loss.bnpo_completions
            ).view_as(share)
            for share in shares
        ])  # fmt: skip
        keep = labelled[:, None] & (finished if loss.mask_truncated else torch.ones_like(finished))
        return weights * keep

    def check_shared_prefix(self) -> float | None:
        """Compare the two ways of computing log-probabilities on a real problem, before anything is learned."""
        if self.learner is None:
            return None
        agent = self.learner.agent
        [rollout] = agent.rollout(
            self.batch(1)[:1],
            samples=2,
            max_tokens=min(16, self.config.rollouts.max_tokens),
            noise_key=("check",),
        )
        tokens = [torch.tensor(c.token_ids) for c in rollout.completions]
        with self.learner.whole():
            return agent.policy.check_shared_prefix([TokenGroup(agent.encode(rollout.problem), tokens)])

    def check_engine(self, number: int, problems: Sequence[Problem]) -> dict[str, float]:
        """The metric `engine_gap`, where a second engine samples: at the first step of a start and when it is due."""
        settings = self.config.rollouts
        if settings.engine == "transformers" or not isinstance(self.agent, Agent):
            return {}
        if self.engine_checked and number % settings.vllm.check_every:
            return {}
        limit = settings.vllm.gap_limit or (1e-3 if self.agent.policy.autocast is None else 1.0)
        self.engine_checked = True
        with self.learner.whole() if self.learner is not None else nullcontext():
            return {"engine_gap": engine_gap(self.agent, problems, settings.max_tokens, limit)}

    def snapshot(self) -> Callable[[Path], None] | None:
        """Copy into host memory what a checkpoint holds; what is returned writes it into a folder, while steps go on.

        That is a `from_pretrained` folder, and `training/` to resume from; of a frozen agent nothing. All ranks call
        this, and the first is given the copy.
        """
        ahead = self.ahead and (self.ahead.step, self.world.gather(self.ahead.completions()))
        weights, states = None, []
        if self.learner is not None:
            weights = self.learner.agent.snapshot(keep=self.world.is_first)
            states.append(self.learner.snapshot())
        if not self.world.is_first:
            return None
        if self.teacher is not None:
            states.append(self.teacher.snapshot())
        if ahead is not None:
            states.append(partial(write_ahead, step=ahead[0], completions=ahead[1]))

        def write(folder: Path) -> None:
            if weights is not None:
                weights(folder)
            training = folder / checkpoints.TRAINING
            training.mkdir()
            for state in states:
                state(training)

        return write


def draw(config: Config, name: str, number: int, problem_id: str) -> list[float]:
    """K numbers in [0, 1) that depend on run, agent, step and problem alone."""
    source = Random(json.dumps(["draw", config.run.seed, name, number, problem_id]))
    return [source.random() for _ in range(config.rollouts.per_problem)]
