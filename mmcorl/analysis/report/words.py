"""A run in sentences: its cohort and method, how far it came, what it warned of."""

from __future__ import annotations

from mmcorl.analysis.report.runs import Run
from mmcorl.cohort.topology import supervisors
from mmcorl.config import Config
from mmcorl.rewards.words import method_name, what_is_rewarded
from mmcorl.training.metrics import Line

_BY_VOTES = ("peer_vote", "self_vote", "twin_vote", "teacher_vote", "incorrect")


def describe(config: Config) -> list[str]:
    """The cohort and its method, a sentence or two each."""
    return [_cohort(config), _answering(config), *_reward(config), _learning(config), _evaluation(config)]


def status(run: Run) -> str:
    """How far the run came and, as far as it is known, why not further."""
    steps = f"{run.steps_done} of {counted(run.config.run.steps, 'step')}"
    if run.complete:
        return f"Complete: {steps}."
    if not run.launches:
        return f"Unfinished: {steps}. It is still going on, or was killed."
    code = run.launches[-1]["code"]
    end = "stopped as asked" if code == 0 else f"ended with exit code {code}"
    return f"Unfinished: {steps}. The last launch that came to an end {end}; a later one may be going on."


def alarms(run: Run) -> list[str]:
    """What was warned of while the run went on, a sentence each, in the order of the steps."""
    found = [
        (line["step"], f"{name}, step {line['step']}: {alarm_text(line)}")
        for name, metrics in run.agents.items()
        for line in metrics.alarms
    ]
    return [text for _, text in sorted(found, key=lambda alarm: alarm[0])]


def alarm_text(line: Line) -> str:
    """What is wrong and what to change; for a line without these, all that it holds."""
    if isinstance(line.get("what"), str):
        return ": ".join(part for part in (line["what"], line.get("advice")) if part)
    return ", ".join(f"{key} {value}" for key, value in line.items() if key not in ("kind", "step"))


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(parts: list[str]) -> str:
    """`a, b and c`."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]


def _cohort(config: Config) -> str:
    agents = [
        f"{name} ({agent.model}{', frozen' if agent.frozen else ''})" for name, agent in config.agents.items()
    ]
    if len(agents) == 1:
        return f"One agent: {agents[0]}."
    return f"{len(agents)} agents: {listed(agents)}. They share neither parameters nor gradients."


def _answering(config: Config) -> str:
    rollouts = config.rollouts
    times = counted(rollouts.votes or rollouts.per_problem, "time")
    return (
        f"At every step each agent answers the same {counted(rollouts.problems_per_step, 'problem')}, each {times}, at "
        f"temperature {rollouts.temperature:g} and with at most {counted(rollouts.max_tokens, 'token')}."
    )


def _reward(config: Config) -> list[str]:
    sentences = [f"{method_name(config)}. {what_is_rewarded(config)}."]
    if config.interaction is not None:
        return sentences
    rule, cohort = config.reward.rule, config.cohort
    if rule == "peer_vote":
        sentences[0] += f" {_supervision(config)}"
    if rule in _BY_VOTES:
        enough = (
            f"needs {cohort.threshold:.0%} of the readable answers" if cohort.threshold else "is a plurality"
        )
        ties = "the answer met first" if cohort.ties == "first" else "nothing"
        sentences.append(f"A vote {enough}; a tie elects {ties}.")
    return sentences


def _supervision(config: Config) -> str:
    names, topology = list(config.agents), config.cohort.topology
    if topology == "self":
        return "Every agent supervises itself (TTRL)."
    pairs = [f"{listed(supervisors(names, topology, name))} for {name}" for name in names]
    return f"The supervising vote is that of {listed(pairs)} (topology {topology})."


def _learning(config: Config) -> str:
    loss, optimizer = config.loss, config.optimizer
    scaled = "" if loss.scale == "none" else f", divided by the {loss.scale}'s standard deviation"
    penalty = f", KL weight {loss.beta:g}" if loss.beta else ""
    return (
        f"A completion's advantage is its reward less the mean of its group{scaled}. Each agent learns by GRPO "
        f"({loss.kind} loss{penalty}, AdamW, learning rate {optimizer.lr:g}, {optimizer.schedule} schedule, "
        f"{counted(loss.updates_per_rollout, 'update')} a step), {counted(config.run.steps, 'step')} in all, "
        f"seed {config.run.seed}."
    )


def _evaluation(config: Config) -> str:
    evaluation = config.evaluation
    if config.data.eval is None or not evaluation.every:
        return "There is no held-out evaluation."
    sampled = f" and {counted(evaluation.samples, 'time')} sampled" if evaluation.samples else ""
    return (
        f"Held-out problems are answered greedily{sampled} before the first step, every "
        f"{counted(evaluation.every, 'step')} and at the end."
    )
