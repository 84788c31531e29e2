"""The README of a saved model: what it was trained from, with whom, by which method, and how it was chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from mmcorl.config import Config, DataConfig
from mmcorl.config_loading import to_yaml

_METHODS = {
    "peer_vote": "Co-RL: each agent is rewarded for agreeing with the vote of its supervisor",
    "self_vote": "TTRL: the agent is rewarded for agreeing with its own majority vote",
    "twin_vote": "Co-rewarding-I: answers to one wording are rewarded by the vote on the other",
    "teacher_vote": "Co-rewarding-II: rewarded by the vote of a slow copy of itself",
    "cluster_share": "EMPO: rewarded by the share of its own answers that agree",
    "entropy": "RENT: rewarded for low entropy",
    "self_certainty": "Intuitor: rewarded for its own certainty",
    "gold": "reinforcement learning with the labelled answers",
    "random": "a control: random rewards",
    "format_only": "a control: rewarded for giving any answer",
    "incorrect": "a control: rewarded for the runner-up of its own vote",
    "comas": "CoMAS: agents solve, evaluate and score each other's solutions",
    "maporl": "MAPoRL: agents debate, scored by the labelled answers",
}
_WITH_LABELS = {"gold", "maporl"}


def model_card(config: Config, name: str, best: Mapping[str, Any] | None) -> str:
    """The card of agent `name`, in Markdown with the hub's YAML header. `best` is what `best.json` says."""
    agent = config.agents[name]
    key, method = (
        ("interaction.kind", config.interaction.kind)
        if config.interaction
        else ("reward.rule", config.reward.rule)
    )
    header = {
        "library_name": "transformers",
        "base_model": agent.model,
        "tags": ["mmcorl", method],
    }
    peers = [f"`{other}` ({settings.model})" for other, settings in config.agents.items() if other != name]
    facts = [
        f"- Trained from: `{agent.model}`",
        f"- Method: {_METHODS[method]} (`{key}={method}`)",
        f"- Cohort: agent `{name}`" + (f" with {', '.join(peers)}; " if peers else ", alone; ")
        + f"`cohort.topology={config.cohort.topology}`",
        f"- Labels: {'used as rewards' if method in _WITH_LABELS else 'none in training'}",
        f"- Problems: {_data(config.data.train)}",
        f"- Steps: {config.run.steps} of {config.rollouts.problems_per_step} problems x "
        f"{config.rollouts.per_problem} completions; seed {config.run.seed}",
    ]  # fmt: skip
    if best is not None:
        facts.append(
            f"- This checkpoint: step {best['step']}, chosen by {best['rule']} ({best['score']:.4f})"
        )
    return (
        f"---\n{yaml.safe_dump(header, sort_keys=False)}---\n\n# {config.run.name}: {name}\n\n"
        + "\n".join(facts)
        + "\n\n## Configuration\n\n```yaml\n"
        + to_yaml(config)
        + "```\n"
    )


def _data(data: DataConfig) -> str:
    if data.scenes is not None:
        return f"built-in scenes ({data.scenes.size} of {', '.join(data.scenes.tasks)})"
    return " ".join(f"`{part}`" for part in (data.source, data.path) if part)
