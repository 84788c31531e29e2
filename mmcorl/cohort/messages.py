"""What agents send each other, and the check that they speak of the same thing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from mmcorl.cohort.ballots import Ballot
from mmcorl.errors import CohortMismatch
from mmcorl.problems import Problem


@dataclass(frozen=True)
class Greeting:
    """What an agent says when it joins: its run, the cohort as it knows it, and a digest of its problems."""

    run: str
    agent: str
    cohort: tuple[str, ...]
    problems: str

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: bytes | str) -> Greeting:
        """Read what `to_json` wrote; anything else raises ValueError."""
        match _loads(text):
            case {
                "run": str(run),
                "agent": str(agent),
                "cohort": list(cohort),
                "problems": str(problems),
                **rest,
            } if not rest and all(isinstance(name, str) for name in cohort):
                return Greeting(run, agent, tuple(cohort), problems)
            case _:
                raise ValueError("not a greeting")


@dataclass(frozen=True)
class Message:
    """One agent's ballots of one step.

    `problems` holds a hash of each problem's id, in the order of `ballots`. `stop` asks the cohort to end after this
    step.
    """

    run: str
    step: int
    agent: str
    problems: tuple[str, ...]
    ballots: tuple[Ballot, ...]
    stop: bool = False

    def to_json(self) -> str:
        return json.dumps(
            {
                "run": self.run,
                "step": self.step,
                "agent": self.agent,
                "problems": self.problems,
                "ballots": [ballot.to_json() for ballot in self.ballots],
                "stop": self.stop,
            }
        )

    @staticmethod
    def from_json(text: bytes | str) -> Message:
        """Read what `to_json` wrote; anything else raises ValueError."""
        match _loads(text):
            case {
                "run": str(run),
                "step": int(step),
                "agent": str(agent),
                "problems": list(problems),
                "ballots": list(ballots),
                "stop": bool(stop),
                **rest,
            } if not rest and type(step) is int and all(isinstance(problem, str) for problem in problems):
                if len(ballots) != len(problems):
                    raise ValueError(f"{len(ballots)} ballots for {len(problems)} problems")
                return Message(run, step, agent, tuple(problems), tuple(map(Ballot.from_json, ballots)), stop)
            case _:
                raise ValueError("not a message")


LONGEST_TEXT = 200_000
"""Characters of one text that agents exchange; whoever sends cuts there, and nothing longer is read."""


@dataclass(frozen=True)
class Texts:
    """What one agent says in one phase of a step: for each problem the same number of texts, each at most
    `LONGEST_TEXT` characters. `problems` is as in `Message`.
    """

    run: str
    step: int
    agent: str
    phase: str
    problems: tuple[str, ...]
    texts: tuple[tuple[str, ...], ...]

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: bytes | str) -> Texts:
        """Read what `to_json` wrote; anything else raises ValueError."""
        match _loads(text):
            case {
                "run": str(run),
                "step": int(step),
                "agent": str(agent),
                "phase": str(phase),
                "problems": list(problems),
                "texts": list(rows),
                **rest,
            } if not rest and type(step) is int and all(isinstance(problem, str) for problem in problems):
                if len(rows) != len(problems):
                    raise ValueError(f"{len(rows)} rows of texts for {len(problems)} problems")
                return Texts(run, step, agent, phase, tuple(problems), tuple(map(_row_of_texts, rows)))
            case _:
                raise ValueError(
                    "not the texts of an interaction, which `interaction` sets for all agents alike"
                )


def _row_of_texts(row: object) -> tuple[str, ...]:
    if not isinstance(row, list) or not all(isinstance(text, str) for text in row):
        raise ValueError("not a row of texts")
    if longest := max((len(text) for text in row if len(text) > LONGEST_TEXT), default=0):
        raise ValueError(f"a text of {longest} characters, more than {LONGEST_TEXT}")
    return tuple(row)


def problem_hash(problem_id: str) -> str:
    """A short hash of a problem's id: 16 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(problem_id.encode()).hexdigest()[:16]


def problems_digest(problems: Sequence[Problem]) -> str:
    """A digest of ids, questions, options and inputs of programs in their order; images are left out, which would have to be read."""
    digest = hashlib.sha256()
    for problem in problems:
        facts = [problem.id, problem.question, problem.choices, problem.kind, repr(problem.program)]
        digest.update(json.dumps(facts).encode())
    return digest.hexdigest()[:16]


def require_same_start(greetings: Sequence[Greeting]) -> None:
    """Raise CohortMismatch unless all agents start the same run of the same cohort on the same problems."""
    first, *others = greetings
    for other in others:
        pair = f"agents {first.agent} and {other.agent}"
        if first.run != other.run:
            raise CohortMismatch(
                f"{pair} disagree on the run: {first.run} and {other.run}; set run.name alike"
            )
        if first.cohort != other.cohort:
            raise CohortMismatch(
                f"{pair} disagree on the cohort: {', '.join(first.cohort)} and {', '.join(other.cohort)}; "
                "list the same agents in the same order"
            )
        if first.problems != other.problems:
            raise CohortMismatch(
                f"{pair} train on different problems, though the ids may be the same; give data.train.path the same "
                "data on every machine"
            )


def require_same_step(messages: Sequence[Message] | Sequence[Texts]) -> None:
    """Raise CohortMismatch unless all messages are of the same run and step and of the same problems in order."""
    first, *others = messages
    for other in others:
        pair = f"agents {first.agent} and {other.agent}"
        if first.run != other.run:
            raise CohortMismatch(f"{pair} disagree on the run: {first.run} and {other.run}")
        if first.step != other.step:
            raise CohortMismatch(
                f"{pair} disagree on the step: {first.step} and {other.step}; resume them from the same step"
            )
        step, sizes = first.step, (len(first.problems), len(other.problems))
        if sizes[0] != sizes[1]:
            raise CohortMismatch(
                f"{pair} disagree on the number of problems of step {step}: {sizes[0]} and {sizes[1]}; "
                "set rollouts.problems_per_step alike"
            )
        for place, (mine, theirs) in enumerate(zip(first.problems, other.problems, strict=True), start=1):
            if mine != theirs:
                raise CohortMismatch(
                    f"{pair} disagree on problem {place} of step {step}; "
                    "give all agents the same data.train in the same order and the same run.seed"
                )


def require_same_phase(said: Sequence[Texts]) -> None:
    """Raise CohortMismatch unless all texts are of the same phase of a step, and as many a problem."""
    require_same_step(said)
    first, *others = said
    for other in others:
        pair, step = f"agents {first.agent} and {other.agent}", first.step
        if first.phase != other.phase:
            raise CohortMismatch(
                f"{pair} disagree on the phase of step {step}: {first.phase} and {other.phase}; "
                "set `interaction` alike"
            )
        widths = [sorted({len(row) for row in texts.texts}) for texts in (first, other)]
        if widths[0] != widths[1] or len(widths[0]) > 1:
            raise CohortMismatch(
                f"{pair} disagree on the number of texts a problem at step {step}: {widths[0]} and {widths[1]}; "
                "set rollouts.per_problem alike"
            )


def _loads(text: bytes | str) -> object:
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None
