"""The whole run of one agent: load, train, evaluate, save, leave."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from types import FrameType

from transformers.utils.logging import disable_progress_bar

from mmcorl.agents.agent import Agent
from mmcorl.cohort.ballots import Vote
from mmcorl.cohort.exchange import Exchange
from mmcorl.cohort.messages import problems_digest
from mmcorl.cohort.store import open_store
from mmcorl.config import Config
from mmcorl.data.loading import LoadedData, load_problems
from mmcorl.graders import Answer, Grader
from mmcorl.graders.code import limits_of
from mmcorl.training import checkpoints, selection
from mmcorl.training.building import load_trainer, twin_id
from mmcorl.training.completions import CompletionRecord, CompletionsLog
from mmcorl.training.folders import RunFolder
from mmcorl.training.heldout import evaluate
from mmcorl.training.interaction import InteractionStep, interacting
from mmcorl.training.loop import Trainer
from mmcorl.training.metrics import Line, MetricsLog, read_metrics
from mmcorl.training.model_card import model_card
from mmcorl.training.monitors import Monitor
from mmcorl.training.saving import Saver
from mmcorl.training.step import Step
from mmcorl.training.step_metrics import step_metrics
from mmcorl.training.trackers import open_trackers
from mmcorl.training.world import World

log = logging.getLogger(__name__)


def run_agent(
    config: Config, name: str, *, store: str, attempt: str, secret: bytes, resume_step: int | None
) -> None:
    """Train agent `name` of a cohort to the last step, or until one of the cohort is asked to stop.

    `store` is where the cohort's ballots meet, `attempt` tells this start of the run from earlier ones, `secret` is
    what messages are sealed with, and `resume_step` the step to go on from, of which every agent has a checkpoint.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    disable_progress_bar()
    with ExitStack() as stack:
        world = World()
        stack.callback(world.close)
        train = load_problems(config.data.train)
        heldout = (
            load_problems(config.data.eval, "data.eval")
            if config.data.eval and config.evaluation.every
            else None
        )
        limits = limits_of(config.code)
        grader = stack.enter_context(Grader(program_limits=limits, program_workers=config.code.processes))
        grader.warm([*train.problems, *(heldout.problems if heldout else ())])
        golds = {
            p.id: grader.read(train.golds[p.id].answer, p) for p in train.problems if p.id in train.golds
        }
        if config.reward.rule == "twin_vote":
            golds |= {twin_id(problem_id): gold for problem_id, gold in golds.items()}
        exchange = None
        if world.is_first:
            opened, _ = open_store(store, is_host=False)
            exchange = Exchange(
                opened, list(config.agents), name,
                run=config.run.name, attempt=attempt, dead_after=config.cohort.dead_after, secret=secret,
            )  # fmt: skip
            stack.enter_context(exchange)
        trainer = interacting(
            load_trainer(config, name, world, train, golds, grader, exchange, resume_step), golds
        )
        gap = trainer.check_shared_prefix()
        if gap is not None:
            log.info("shared prefix: log-probabilities within %.1e nats of the full forward", gap)
        run = _Run(trainer, heldout, golds, resume_step)
        stack.callback(run.close)
        if exchange is not None:
            exchange.join(problems_digest(train.problems))
        run.train()


class _Run:
    """Steps, evaluations and checkpoints in their order, and the files they leave."""

    def __init__(
        self,
        trainer: Trainer,
        heldout: LoadedData | None,
        golds: Mapping[str, Answer | None],
        resume_step: int | None,
    ) -> None:
        self.trainer, self.config, self.name = trainer, trainer.config, trainer.agent.name
        self.heldout, self.golds, self.done = heldout, golds, resume_step or 0
        self.first_step = self.done + 1
        self.folder = RunFolder.of(self.config)
        first = trainer.world.is_first
        trackers = (
            open_trackers(self.config, self.name, self.folder.agent(self.name), resume_step) if first else []
        )
        self.metrics = MetricsLog(self.folder.metrics(self.name) if first else None, resume_step, trackers)
        self.completions = CompletionsLog(
            self.folder.completions(self.name) if first else None,
            resume_step,
            self.config.logging.completions_mib,
        )
        self.monitor = Monitor(self.config.monitors, alone=self.config.cohort.topology == "self")
        for line in self._steps_so_far():
            self.monitor.look(line["step"], line)
        self.saver = Saver(self.config.checkpoints.background)
        self.best_score = checkpoints.best_score(self.folder.agent(self.name)) if first else None
        self.stop = False
        if first:
            trainer.tell = self._tell
        signal.signal(signal.SIGTERM, self._request_stop)

    def train(self) -> None:
        """From the step after the last to the end. What a step writes is on disk before its checkpoint is."""
        if self.done == 0:
            self._evaluate(0)
        for number in range(self.first_step, self.config.run.steps + 1):
            self.saver.check()
            regular = self._due(self.config.checkpoints.every, number)
            if regular:
                # Peers that get this step's ballots may take it that the checkpoint before is saved: see `prune`.
                self.saver.wait()
            step = self.trainer.step(number, stop=self.stop)
            self._record(step)
            evaluated = self._due(self.config.evaluation.every, number)
            accuracy = self._evaluate(number) if evaluated else None
            self._save(number, accuracy, due=regular or step.stop, prune=regular)
            if step.stop:
                log.info("stopped after step %d, as asked", number)
                break
        self.saver.wait()

    def close(self) -> None:
        if self.trainer.world.is_first:
            self.folder.phase(self.name).unlink(missing_ok=True)
        self.saver.close()
        self.metrics.close()

    def _tell(self, number: int, phase: str) -> None:
        """For who watches the run; a disk that takes no word of it is told of where it matters."""
        with suppress(OSError):
            self.folder.phase(self.name).write_text(f"{number} {phase}", encoding="utf-8")

    def _record(self, step: Step) -> None:
        """The step's metrics, and every completion with what became of it."""
        extra = step.extra if isinstance(step, InteractionStep) else {}
        metrics = {**step_metrics(step, self.name, self.trainer.grader, self.golds), **extra}
        metrics["seconds_waiting"] = self.trainer.waited()
        self.metrics.write("train", step.number, **metrics)
        for alarm in self.monitor.look(step.number, metrics):
            log.warning("%s", alarm)
            self.metrics.write("alarm", step.number, **alarm.line())
            self.stop |= alarm.collapse and self.config.monitors.stop_on_collapse
        if step.number == self.first_step and step.rollouts:
            sample = step.rollouts[0]
            if isinstance(self.trainer.agent, Agent):
                prompt = self.trainer.agent.encode(sample.problem).text
                log.info("a prompt of step %d:\n%s", step.number, prompt)
            log.info("its first completion:\n%s", sample.completions[0].text)
        if not self.config.logging.completions:
            return
        if isinstance(step, InteractionStep):
            self.completions.write(step.number, step.records)
            return
        gather = self.trainer.world.gather
        texts = gather([[c.text for c in group.completions] for group in step.rollouts])
        ids = None
        if self.config.logging.token_ids:
            ids = gather([[c.token_ids for c in group.completions] for group in step.rollouts])
        own_votes = step.votes[self.name]
        records = [
            CompletionRecord(
                problem=problem.id,
                text=text,
                tokens=int(step.lengths[i, k]) or None,
                finished=bool(step.finished[i, k]),
                answer=answer and answer.value,
                reward=step.rewards.values[i][k] if step.rewards.labelled[i] else None,
                advantage=float(step.advantages[i, k]),
                vote=_value(step.supervising_votes[i]),
                own_vote=_value(own_votes[i]),
                token_ids=None if ids is None else tuple(ids[i][k]),
            )
            for i, problem in enumerate(step.problems)
            for k, (text, answer) in enumerate(zip(texts[i], step.answers[i], strict=True))
        ]
        self.completions.write(step.number, records)

    def _evaluate(self, number: int) -> float | None:
        """Held-out metrics, written down; the greedy accuracy. A frozen agent's stay what they were before step 1."""
        agent = self.trainer.agent
        if (
            self.heldout is None
            or not isinstance(agent, Agent)
            or (number > 0 and self.trainer.learner is None)
        ):
            return None
        self.trainer.tell(number, "evaluation")
        with self.trainer.turn():
            values = evaluate(
                agent,
                self.heldout.problems,
                self.heldout.golds,
                self.trainer.grader,
                self.trainer.world,
                self.config.evaluation,
                self.config.rollouts.max_tokens,
                self.config.run.seed,
            )
        self.metrics.write("eval", number, **values)
        log.info("step %d: held-out accuracy %.3f", number, values["accuracy"])
        return values["accuracy"]

    def _save(self, number: int, accuracy: float | None, *, due: bool, prune: bool) -> None:
        """A checkpoint where one is due or is the best so far; and the best one kept. All ranks decide the same."""
        best_by = self.config.checkpoints.best_by
        judged = self.trainer.learner is not None and (due or best_by == "accuracy")
        score, best = None, False
        if self.trainer.world.is_first and judged:
            recent = self._steps_so_far()[-self.config.checkpoints.every :]
            score = selection.score(best_by, number, accuracy, recent)
            # Of equals the earliest stays.
            best = score is not None and (self.best_score is None or score > self.best_score)
        best = self.trainer.world.broadcast(best)
        if not due and not best:
            return
        self.saver.wait()  # so that there is one copy in memory at a time
        write = self.trainer.snapshot()
        if write is None:
            return
        note = None
        if best:
            self.best_score = score
            note = {"step": number, "score": score, "rule": selection.RULES[best_by]}
        self.saver.start(partial(self._write, number, write, note, due=due, prune=prune))

    def _write(
        self, number: int, write: Callable[[Path], None], note: Line | None, *, due: bool, prune: bool
    ) -> None:
        """What `_save` decided, on the saver's thread."""
        agent_folder, folder = self.folder.agent(self.name), self.folder.checkpoints(self.name)
        checkpoint = checkpoints.save(folder, number, write)
        if note is not None:
            checkpoints.keep_best(agent_folder, checkpoint, note, model_card(self.config, self.name, note))
        if not due:
            # An extra checkpoint must not push out the step that the cohort would resume from.
            checkpoints.remove(checkpoint)
        if prune:
            peers = [self.folder.checkpoints(peer) for peer in self.config.agents if peer != self.name]
            checkpoints.prune(folder, self.config.checkpoints.keep, [p for p in peers if p.exists()])

    def _steps_so_far(self) -> list[Line]:
        """The metrics of every step that is done; on ranks other than the first, which write none, nothing."""
        return read_metrics(self.folder.metrics(self.name), "train") if self.trainer.world.is_first else []

    def _due(self, every: int, number: int) -> bool:
        return every > 0 and (number % every == 0 or number == self.config.run.steps)

    def _request_stop(self, number: int, frame: FrameType | None) -> None:
        self.stop = True


def _value(vote: Vote) -> str | None:
    return vote.answer and vote.answer.value
