"""What the interaction loops share: asking, exchanging texts, learning from all of a step at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn.functional import pad

from mmcorl.agents.agent import Agent
from mmcorl.agents.endpoint import Endpoint
from mmcorl.cohort.ballots import Vote
from mmcorl.graders import Answer
from mmcorl.problems import Problem, RolloutGroup
from mmcorl.training import grpo
from mmcorl.training.completions import CompletionRecord
from mmcorl.training.interaction.quoting import Ask, Reader
from mmcorl.training.loop import Trainer
from mmcorl.training.step import Readings, Step

Table = list[list[str]]
"""A text for each problem (P) and each of the K runs of the interaction on it."""


@dataclass(frozen=True)
class InteractionStep(Step):
    """One step. What it has of a `Step` are the answers of each agent alone, before it read others."""

    extra: Mapping[str, Any] = field(default_factory=dict)
    """Metrics beside those of a `Step`, or instead of them."""
    records: Sequence[CompletionRecord] = ()
    """Every completion of the step, with its role."""


@dataclass(frozen=True)
class Phase:
    """What this agent said in one role: n asks of k completions each. Texts and tensors are of the whole batch."""

    role: str
    asks: Sequence[Ask]
    rollouts: Sequence[RolloutGroup]
    """This rank's, with the problems as they were asked."""
    texts: Table
    lengths: Tensor
    finished: Tensor
    cut: Sequence[bool]
    """Whether texts of others had to be cut in the prompt of an ask."""


@dataclass(frozen=True)
class Lesson:
    """A phase with the rewards (n, k) and advantages of its completions; those not `kept` are left out of the loss."""

    phase: Phase
    rewards: Tensor
    advantages: Tensor
    kept: Tensor


@dataclass
class Interaction(Trainer):
    """A trainer whose agents read each other's texts. Every rank of an agent has one, as of a `Trainer`."""

    def __post_init__(self) -> None:
        self.reader = Reader(self.agent, self.config.prompt)
        if self.learner is not None:
            # It must take up prompts just as they were asked.
            assert isinstance(self.reader.agent, Agent)
            self.learner.agent = self.reader.agent

    @classmethod
    def of(cls, trainer: Trainer) -> Self:
        """The same agent, learner and exchange in this interaction."""
        return cls(**{f.name: getattr(trainer, f.name) for f in fields(Trainer)})

    @property
    def names(self) -> list[str]:
        """All agents, in the cohort's order."""
        return list(self.config.agents)

    @property
    def place(self) -> int:
        """This agent's place among them."""
        return self.names.index(self.agent.name)

    def speak(self, number: int, role: str, asks: Sequence[Ask], samples: int) -> Phase:
        """`samples` completions of each ask, from all ranks together."""
        speaker: Agent | Endpoint = self.reader.agent
        read = [self.reader.read(ask) for ask in self.world.share(asks)]
        with self.turn():
            rollouts = speaker.rollout(
                [problem for problem, _ in read],
                samples=samples,
                max_tokens=self.config.rollouts.max_tokens,
                temperature=self.config.rollouts.temperature,
                noise_key=(self.config.run.seed, self.agent.name, number, role),
            )
        mine = [
            {
                "texts": [c.text for c in group.completions],
                "lengths": [len(c.token_ids) for c in group.completions],
                "finished": [c.finished for c in group.completions],
                "cut": cut,
            }
            for group, (_, cut) in zip(rollouts, read, strict=True)
        ]
        rows = self.world.gather(mine)
        return Phase(
            role,
            asks,
            rollouts,
            texts=[row["texts"] for row in rows],
            lengths=torch.tensor([row["lengths"] for row in rows], dtype=torch.long).view(-1, samples),
            finished=torch.tensor([row["finished"] for row in rows], dtype=torch.bool).view(-1, samples),
            cut=[row["cut"] for row in rows],
        )

    def conclusions(self, phase: Phase) -> Readings:
        """What the completions of a phase that answers the problems conclude."""
        return self.read(self.as_of_the_problems(phase))

    def as_of_the_problems(self, phase: Phase) -> list[RolloutGroup]:
        """This rank's rollouts with the problems themselves, which have the options that answers are read by."""
        mine = self.world.share(phase.asks)
        return [replace(group, problem=a.problem) for group, a in zip(phase.rollouts, mine, strict=True)]

    def share_texts(
        self, number: int, phase: str, problems: Sequence[Problem], texts: Sequence[Sequence[str]]
    ) -> dict[str, Table]:
        """Every agent's texts of one phase, in the cohort's order: the only thing that agents tell each other here."""
        said = None
        if self.exchange is not None:
            messages = self.exchange.gather_texts(number, phase, [p.id for p in problems], texts)
            said = {name: message.texts for name, message in messages.items()}
        said = self.world.broadcast(said)
        assert said is not None
        return {name: [list(row) for row in rows] for name, rows in said.items()}

    def learn_from(self, number: int, lessons: Sequence[Lesson]) -> dict[str, float]:
        """One update on all completions of a step, whatever their roles; nothing for a frozen agent."""
        if self.learner is None:
            return {}
        loss, most = self.config.loss, max(lesson.advantages.shape[1] for lesson in lessons)
        lengths = torch.cat([lesson.phase.lengths.flatten() for lesson in lessons])
        weights = grpo.completion_weights(
            lengths, loss.kind, self.config.rollouts.max_tokens, loss.bnpo_completions
        ).split([lesson.phase.lengths.numel() for lesson in lessons])
        rollouts, advantage_rows, weight_rows = [], [], []
        for lesson, flat in zip(lessons, weights, strict=True):
            keep = lesson.kept & (lesson.phase.finished | (not loss.mask_truncated))
            rollouts += lesson.phase.rollouts
            # Groups of fewer completions than others are filled up with such as have no weight.
            advantage_rows += [self._mine(lesson.advantages, most)]
            weight_rows += [self._mine(flat.view_as(keep) * keep, most)]
        with self.turn():
            return self.learner.learn(
                rollouts, torch.cat(advantage_rows), torch.cat(weight_rows), updates_done=number - 1
            )

    def _mine(self, rows: Tensor, width: int) -> Tensor:
        return pad(rows.float()[self.world.rank :: self.world.size], (0, width - rows.shape[1]))


def step_extras(lessons: Sequence[Lesson]) -> dict[str, Any]:
    """Metrics over all completions of a step, in place of those of the first answers alone."""
    lengths, finished, kept, rewards = (
        torch.cat([part.flatten() for part in parts]).double()
        for parts in (
            [lesson.phase.lengths for lesson in lessons],
            [lesson.phase.finished for lesson in lessons],
            [lesson.kept for lesson in lessons],
            [lesson.rewards for lesson in lessons],
        )
    )
    live = [(lesson.advantages * lesson.kept != 0).any(dim=1) for lesson in lessons]
    told = [
        cut
        for lesson in lessons
        for ask, cut in zip(lesson.phase.asks, lesson.phase.cut, strict=True)
        if ask.texts
    ]
    return {
        "reward": mean(rewards[kept > 0].tolist()),
        "length": float(lengths.mean()) or None,  # an endpoint tells no tokens
        "truncated": 1 - float(finished.mean()),
        "live_groups": float(torch.cat(live).double().mean()),
        "cut_prompts": mean(told),
    }


def said_of(
    problems: Sequence[Problem], supervising: Sequence[Vote], own: Sequence[Vote]
) -> dict[str, tuple[str | None, str | None]]:
    """What the supervising and the own votes elected, by problem id, in canonical form."""
    return {
        p.id: (s.answer and s.answer.value, o.answer and o.answer.value)
        for p, s, o in zip(problems, supervising, own, strict=True)
    }


def records_of(
    lesson: Lesson,
    answers: Sequence[Sequence[Answer | None]] | None,
    votes: Mapping[str, tuple[str | None, str | None]],
) -> list[CompletionRecord]:
    """The completions of a lesson. `votes` has the supervising and the own vote of each problem that was voted on."""
    records = []
    for i, (ask, texts) in enumerate(zip(lesson.phase.asks, lesson.phase.texts, strict=True)):
        vote, own_vote = votes.get(ask.id, (None, None))
        for k, text in enumerate(texts):
            answer = answers[i][k] if answers is not None else None
            records.append(
                CompletionRecord(
                    problem=ask.id,
                    text=text,
                    tokens=int(lesson.phase.lengths[i, k]) or None,
                    finished=bool(lesson.phase.finished[i, k]),
                    answer=answer and answer.value,
                    reward=float(lesson.rewards[i, k]) if lesson.kept[i, k] else None,
                    advantage=float(lesson.advantages[i, k]),
                    vote=vote,
                    own_vote=own_vote,
                    role=lesson.phase.role,
                )
            )
    return records


def mean(values: Iterable[float]) -> float | None:
    """None of no values."""
    numbers = [float(value) for value in values]
    return sum(numbers) / len(numbers) if numbers else None
