"""The README of a saved model: what it was trained from, with whom, by which method, and how it was chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from mmcorl.config import Config, DataConfig
from mmcorl.config_loading import to_yaml
from mmcorl.rewards.words import method_name, method_setting, uses_labels, what_is_rewarded


def model_card(
    config: Config,
    name: str,
    best: Mapping[str, Any] | None,
    *,
    merged: bool = False,
    evaluation: Sequence[str] = (),
) -> str:
    """The card of agent `name`, in Markdown with the hub's YAML header.

    `best` is what `best.json` says, `merged` whether adapters were added to the model's own weights, and `evaluation`
    tables of results.
    """
    agent = config.agents[name]
    key, method = method_setting(config)
    header = {
        "library_name": "transformers" if agent.lora is None or merged else "peft",
        "base_model": agent.model,
        "tags": ["mmcorl", method],
    }
    peers = [f"`{other}` ({settings.model})" for other, settings in config.agents.items() if other != name]
    facts = [
        f"- Trained from: `{agent.model}`",
        f"- Method: {method_name(config)}. {what_is_rewarded(config)} (`{key}={method}`)",
        f"- Cohort: agent `{name}`" + (f" with {', '.join(peers)}; " if peers else ", alone; ")
        + f"`cohort.topology={config.cohort.topology}`",
        f"- Labels: {'used as rewards' if uses_labels(config) else 'none in training'}",
        f"- Problems: {_data(config.data.train)}",
        f"- Steps: {config.run.steps} of {config.rollouts.problems_per_step} problems x "
        f"{config.rollouts.per_problem} completions; seed {config.run.seed}",
    ]  # fmt: skip
    if agent.lora is not None:
        held = f", beside weights in {agent.quantize.replace('bit', ' bits')}" if agent.quantize else ""
        facts.append(
            f"- Adapters: LoRA of rank {agent.lora.rank} and alpha {agent.lora.alpha:g} on {', '.join(agent.lora.parts)}"
            + held
            + (", here added to the model's weights" if merged else "")
        )
    if best is not None:
        facts.append(
            f"- This checkpoint: step {best['step']}, chosen by {best['rule']} ({best['score']:.4f})"
        )
    return (
        f"---\n{yaml.safe_dump(header, sort_keys=False)}---\n\n# {config.run.name}: {name}\n\n"
        + "\n".join(facts)
        + ("\n\n## Evaluation\n\n" + "\n".join(evaluation).rstrip("\n") if evaluation else "")
        + "\n\n## Configuration\n\n```yaml\n"
        + to_yaml(config)
        + "```\n"
    )


def _data(data: DataConfig) -> str:
    if data.scenes is not None:
        return f"built-in scenes ({data.scenes.size} of {', '.join(data.scenes.tasks)})"
    return " ".join(f"`{part}`" for part in (data.source, data.path) if part)
