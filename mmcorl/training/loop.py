"""The training step, top to bottom, and the loop around it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mmcorl.agents.agent import Agent
from mmcorl.agents.batches import TokenGroup
from mmcorl.cohort.ballots import Ballot, Vote, elect
from mmcorl.cohort.exchange import Exchange
from mmcorl.cohort.topology import supervise
from mmcorl.config import Config
from mmcorl.data.order import problems_of_step
from mmcorl.graders import Answer, Grader
from mmcorl.problems import Problem, RolloutGroup
from mmcorl.rewards import RewardInputs, RewardRule, Rewards
from mmcorl.training import checkpoints, grpo
from mmcorl.training.learner import Learner
from mmcorl.training.world import World


@dataclass(frozen=True)
class Step:
    """What one step did: the whole batch's answers, votes and rewards, and this rank's rollouts."""

    number: int
    problems: Sequence[Problem]
    rollouts: Sequence[RolloutGroup]
    answers: Sequence[Sequence[Answer | None]]
    lengths: Tensor
    finished: Tensor
    votes: Mapping[str, Sequence[Vote]]
    supervising_votes: Sequence[Vote]
    rewards: Rewards
    advantages: Tensor
    learning: Mapping[str, float]
    seconds: Mapping[str, float]
    stop: bool


@dataclass
class Trainer:
    """One agent of a cohort at its training. Every rank of the agent has one, and takes its share of each batch.

    Rollouts and gradients are this rank's own; all in between is small and done for the whole batch on every rank.
    """

    config: Config
    agent: Agent
    learner: Learner
    rule: RewardRule
    problems: Sequence[Problem]
    exchange: Exchange | None
    """None on all ranks but the first."""
    grader: Grader
    world: World

    def step(self, number: int, stop: bool = False) -> Step:
        """Step `number`, counted from 1. With `stop`, tell the cohort that this is to be everybody's last step."""
        config, world, name, clock = self.config, self.world, self.agent.name, Clock()
        problems = self.batch(number)

        rollouts = self.agent.rollout(
            world.share(problems),
            samples=config.rollouts.per_problem,
            max_tokens=config.rollouts.max_tokens,
            temperature=config.rollouts.temperature,
            noise_key=(config.run.seed, name, number),
        )
        clock.lap("rollout")

        answers, lengths, finished = self.read(rollouts)
        ballots = [Ballot.count(row, self.grader.classes) for row in answers]
        clock.lap("grading")

        cohort, stop = self.exchange_ballots(number, problems, ballots, stop)
        clock.lap("exchange")

        votes, supervising = self.elect(cohort)
        rewards = self.rule(RewardInputs(problems, answers, votes[name], supervising, self.grader.same))
        labelled = torch.tensor(rewards.labelled)
        advantages = grpo.group_advantages(torch.tensor(rewards.values), labelled, config.loss.scale)
        weights = self.weights(lengths, finished, labelled)

        learning = self.learner.learn(
            rollouts,
            advantages[world.rank :: world.size],
            weights[world.rank :: world.size],
            updates_done=(number - 1) * config.loss.updates_per_rollout,
        )
        clock.lap("update")
        return Step(
            number, problems, rollouts, answers, lengths, finished, votes, supervising, rewards, advantages,
            learning, clock.seconds, stop,
        )  # fmt: skip

    def batch(self, number: int) -> list[Problem]:
        """The problems of a step: the same for every agent and rank."""
        per_step, seed = self.config.rollouts.problems_per_step, self.config.run.seed
        return [self.problems[i] for i in problems_of_step(len(self.problems), per_step, number - 1, seed)]

    def read(self, rollouts: Sequence[RolloutGroup]) -> tuple[list[list[Answer | None]], Tensor, Tensor]:
        """Answers of the whole batch, and (B, K) the length of each completion in tokens and whether it finished."""
        mine = [
            {
                "answers": [
                    a and a.to_json() for a in (self.grader.answer(c.text, g.problem) for c in g.completions)
                ],
                "lengths": [len(c.token_ids) for c in g.completions],
                "finished": [c.finished for c in g.completions],
            }
            for g in rollouts
        ]
        batch = self.world.gather(mine)
        answers = [[a and Answer.from_json(a) for a in row["answers"]] for row in batch]
        return (
            answers,
            torch.tensor([r["lengths"] for r in batch]),
            torch.tensor([r["finished"] for r in batch]),
        )

    def exchange_ballots(
        self, number: int, problems: Sequence[Problem], ballots: Sequence[Ballot], stop: bool
    ) -> tuple[dict[str, list[Ballot]], bool]:
        """Every agent's ballots of this step, in the cohort's order, and whether anybody asks to stop after it."""
        received = None
        if self.exchange is not None:
            messages = self.exchange.gather(number, [p.id for p in problems], ballots, stop)
            received = {
                "ballots": {name: [b.to_json() for b in m.ballots] for name, m in messages.items()},
                "stop": any(m.stop for m in messages.values()),
            }
        received = self.world.broadcast(received)
        assert received is not None
        cohort = {n: [Ballot.from_json(b) for b in rows] for n, rows in received["ballots"].items()}
        return cohort, received["stop"]

    def elect(self, cohort: Mapping[str, Sequence[Ballot]]) -> tuple[dict[str, list[Vote]], list[Vote]]:
        """What every agent's ballots elect, and for each problem the vote that supervises this agent."""
        config, names = self.config.cohort, list(self.config.agents)
        votes = {
            name: [elect(b, config.threshold, config.ties) for b in rows] for name, rows in cohort.items()
        }
        supervising = [
            supervise(
                names,
                config.topology,
                self.agent.name,
                dict(zip(votes, row, strict=True)),
                self.grader.classes,
            )
            for row in zip(*votes.values(), strict=True)
        ]
        return votes, supervising

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
        [rollout] = self.agent.rollout(
            self.batch(1)[:1],
            samples=2,
            max_tokens=min(16, self.config.rollouts.max_tokens),
            noise_key=("check",),
        )
        tokens = [torch.tensor(c.token_ids) for c in rollout.completions]
        return self.agent.policy.check_shared_prefix([TokenGroup(self.agent.encode(rollout.problem), tokens)])

    def save(self, folder: Path) -> None:
        """Write a checkpoint: a `from_pretrained` folder, and `training/` to resume from."""
        self.agent.save(folder)
        training = folder / checkpoints.TRAINING
        training.mkdir()
        self.learner.save(training)


class Clock:
    """Seconds of each phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.monotonic()

    def lap(self, phase: str) -> None:
        """Count the seconds since the last lap towards `phase`."""
        now = time.monotonic()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + now - self._last
        self._last = now


def step_metrics(step: Step, name: str, grader: Grader, golds: Mapping[str, Answer | None]) -> dict[str, Any]:
    """One step in numbers. `golds` serve a diagnostic only: the accuracy of the supervising votes."""
    own, votes = step.votes[name], step.supervising_votes
    answers = [answer for row in step.answers for answer in row]
    labelled = zip(step.rewards.values, step.rewards.labelled, strict=True)
    both = [(o.answer, v.answer) for o, v in zip(own, votes, strict=True) if o.answer and v.answer]
    judged = [
        grader.correct(v.answer, golds[p.id], p)
        for p, v in zip(step.problems, votes, strict=True)
        if v.answer and golds.get(p.id)
    ]
    metrics = {
        "reward": _share(reward for row, has_label in labelled if has_label for reward in row),
        "agreement": _share(grader.same(o, v) for o, v in both),
        "vote_share": _share(vote.share for vote in own),
        "tie_rate": _share(vote.tie for vote in own),
        "labelled": _share(step.rewards.labelled),
        "abstained": _share(answer is None for answer in answers),
        "length": float(step.lengths.float().mean()),
        "truncated": 1 - float(step.finished.float().mean()),
        "live_groups": float((step.advantages != 0).any(dim=1).float().mean()),
        **step.learning,
        **{f"seconds_{phase}": seconds for phase, seconds in step.seconds.items()},
    }
    if golds:
        metrics["vote_accuracy"] = _share(judged)
    return metrics


def _share(values: Iterable[float]) -> float | None:
    numbers = [float(v) for v in values]
    return sum(numbers) / len(numbers) if numbers else None
