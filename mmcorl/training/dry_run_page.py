"""What a dry run found, for a person: tables, samples, and what to change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table

from mmcorl.config import Config
from mmcorl.data.survey import percentile
from mmcorl.evaluation.settings import EvaluationSettings
from mmcorl.graders import Answer
from mmcorl.training.dry_run import DryRun, Look
from mmcorl.training.monitors import Monitor

_SAMPLES = 3
_NEARLY = 0.9
"""Of `rollouts.max_prompt_tokens`: a longer prompt of another step may well be refused."""


def print_dry_run(config: Config, found: DryRun, console: Console) -> None:
    """Print all of it."""
    console.print(_agents(config, found))
    console.print(_train_and_eval(config, found))
    for name, look in found.looks.items():
        _print_samples(console, config, name, look, found)
    advice = list(_advice(config, found))
    console.print("\n[b]To look into[/b]" if advice else "\nNothing to look into.")
    for line in advice:
        console.print(f"- {line}", highlight=False, markup=False, soft_wrap=True)


def _agents(config: Config, found: DryRun) -> Table:
    """A column an agent."""
    table = Table(title=f"{len(found.problems)} problems before the first update", title_justify="left")
    table.add_column("")
    for name in found.looks:
        table.add_column(name, justify="right")
    columns = [_column(config, name, look, found) for name, look in found.looks.items()]
    for label in columns[0]:
        table.add_row(label, *(column[label] for column in columns))
    return table


def _column(config: Config, name: str, look: Look, found: DryRun) -> dict[str, str]:
    metrics = found.metrics.get(name, {})
    tokens = sum(map(sum, look.lengths))
    images = [n for n in look.image_tokens if n]
    return {
        "model": f"{look.family} on {look.device}",
        "prompt tokens, median / 99 % / longest": _percentiles(look.prompt_tokens),
        "of them image tokens (all have their feature)": _range(images),
        "shared prefix differs by, nats": "-" if look.gap is None else f"{look.gap:.1e}",
        "completion tokens a second": f"{tokens / look.seconds:.0f}" if tokens else "-",
        "hold an answer": _share(1 - sum(a is None for row in look.answers for a in row) / _count(look)),
        "cut off at rollouts.max_tokens": _share(_cut_off(look)),
        "reward": _number(metrics.get("reward")),
        "groups whose rewards differ": _share(metrics.get("live_groups")),
        "agreement with the supervising vote": _share(metrics.get("agreement")),
        "share of the leading answer": _share(metrics.get("vote_share")),
        "supervising votes that are right": _share(metrics.get("vote_accuracy")),
        "labelled answers that can be read": f"{found.golds_read} of {found.golds}" if found.golds else "-",
    }


def _train_and_eval(config: Config, found: DryRun) -> Table:
    """What a model is asked with in training, in the run's own evaluation, and by mmcorl-eval as it comes."""
    plain, rollouts = EvaluationSettings(), config.rollouts
    table = Table(title="Asked with", title_justify="left")
    for head in ("", "training", "data.eval", "mmcorl-eval without --config"):
        table.add_column(head, overflow="fold")
    for name, look in found.looks.items():
        table.add_row(f"chat template of {name}", *[look.template or "-"] * 3)
        table.add_row(f"stop tokens of {name}", *[" ".join(look.stop_tokens) or "-"] * 3)
    table.add_row("instruction", *[repr(config.prompt.instruction)] * 2, _mark(
        repr(plain.prompt.instruction), repr(config.prompt.instruction)))  # fmt: skip
    table.add_row("system", *[repr(config.prompt.system)] * 2, _mark(
        repr(plain.prompt.system), repr(config.prompt.system)))  # fmt: skip
    caps = str(config.images.max_pixels)
    table.add_row("images.max_pixels", caps, caps, _mark(str(plain.images.max_pixels), caps))
    table.add_row(
        "temperature", f"{rollouts.temperature:g}", f"0, then {config.evaluation.temperature:g}", "0"
    )
    return table


def _print_samples(console: Console, config: Config, name: str, look: Look, found: DryRun) -> None:
    rewards, votes = found.rewards.get(name), found.votes.get(name)
    if look.first_prompt:
        console.print(f"\n[b]{name}: the prompt of {found.problems[0].id}[/b]")
        console.print(look.first_prompt, markup=False, highlight=False, soft_wrap=True)
    for place, k in _chosen(look, rewards):
        answer = look.answers[place][k]
        line = f"answer: {_said(answer)}"
        if rewards is not None and votes is not None:
            line += f"; supervising vote: {_said(votes[place].answer)}"
            line += f"; reward: {rewards[place][k]:g}"
        console.print(f"\n[b]{name}: a completion of {found.problems[place].id}[/b]")
        console.print(look.texts[place][k], markup=False, highlight=False, soft_wrap=True)
        console.print(line, markup=False, highlight=False, soft_wrap=True, style="dim")


def _chosen(look: Look, rewards: Sequence[Sequence[float]] | None) -> list[tuple[int, int]]:
    """Places of completions that show what there is: rewarded most and least, and one without an answer."""
    places = [(i, k) for i, row in enumerate(look.texts) for k in range(len(row))]
    if rewards is None:
        return places[:_SAMPLES]
    ranked = sorted(places, key=lambda place: -rewards[place[0]][place[1]])
    unread = [(i, k) for i, k in places if look.answers[i][k] is None]
    return list(dict.fromkeys([ranked[0], *unread[:1], ranked[-1], *places]))[:_SAMPLES]


def _advice(config: Config, found: DryRun) -> Iterator[str]:
    """What a monitor would say of such a step, and what only shows before a run."""
    limit = config.rollouts.max_prompt_tokens
    for name, look in found.looks.items():
        if look.prompt_tokens and max(look.prompt_tokens) > _NEARLY * limit:
            yield (
                f"{name}: a prompt has {max(look.prompt_tokens)} tokens of rollouts.max_prompt_tokens={limit}, and a "
                "longer one stops the run: `mmcorl-data check SOURCE --model MODEL` counts them all; raise the limit "
                "or lower images.max_pixels"
            )
        cut = _cut_off(look)
        if cut > config.monitors.truncated_max:
            yield (
                f"{name}: {cut:.0%} of completions are cut off; raise rollouts.max_tokens={config.rollouts.max_tokens}"
            )
        alone = config.cohort.topology == "self"
        monitor = Monitor(config.monitors.model_copy(update={"patience": 1}), alone)
        yield from (f"{name}: {alarm}" for alarm in monitor.look(1, found.metrics.get(name, {})))
    if found.golds_read < found.golds:
        yield (
            f"{found.golds - found.golds_read} of {found.golds} labelled answers cannot be read, so that no answer is "
            "right there; `mmcorl-data check SOURCE` names them"
        )
    if EvaluationSettings().prompt != config.prompt:
        yield "mmcorl-eval asks otherwise than this run unless it is given --config RUN/config.yaml"


def _percentiles(lengths: Sequence[int]) -> str:
    if not lengths:
        return "-"
    return " / ".join(str(percentile(lengths, percent)) for percent in (50, 99, 100))


def _range(numbers: Sequence[int]) -> str:
    return f"{min(numbers)} to {max(numbers)}" if numbers else "-"


def _count(look: Look) -> int:
    return sum(map(len, look.answers))


def _said(answer: Answer | None) -> str:
    return "none" if answer is None else answer.value


def _cut_off(look: Look) -> float:
    return 1 - sum(map(sum, look.finished)) / _count(look)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _mark(value: str, other: str) -> str:
    return value if value == other else f"{value}  (differs)"
