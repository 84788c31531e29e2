"""What can be known to be wrong before a run begins, so that a mistake costs seconds and leaves nothing behind."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import islice
from pathlib import Path

from mmcorl.agents.adapter_files import base_of
from mmcorl.agents.extras import require_installed
from mmcorl.config import Config, DataConfig
from mmcorl.data.images import shown_image
from mmcorl.data.loading import load_problems
from mmcorl.data.twin import load_twin
from mmcorl.errors import MmcorlError
from mmcorl.graders.code import limits_of
from mmcorl.rewards import rule_of
from mmcorl.sandbox import Sandbox
from mmcorl.training.trackers import require_trackers

_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
_DECODED = 256
"""Images decoded of each data set: enough to find a wrong folder or format. `mmcorl-data` checks them all."""


def require_ready(config: Config, agents: Collection[str] | None = None) -> None:
    """Raise MmcorlError for a model, a data set, a rule or a tracker that cannot be used. Loads no model.

    `agents` are those that run here (all by default); models of the others may lie on their own machines only.
    """
    for name in agents or config.agents:
        agent = config.agents[name]
        if agent.endpoint is None:
            require_model(agent.model, f"agents.{name}.model")
            _require_extras(config, name)
        else:
            from mmcorl.agents.endpoint import Endpoint  # brings transformers, which takes seconds

            Endpoint.load(name, agent)
    require_trackers(config)
    rule_of(config.reward, {})
    n_train = _require_problems(config, config.data.train, "data.train", config.reward.rule == "gold")
    if n_train < config.rollouts.problems_per_step:
        raise MmcorlError(
            f"data.train has {n_train} problems and rollouts.problems_per_step={config.rollouts.problems_per_step}; "
            f"set it to {n_train} or less"
        )
    if config.data.twin is not None:
        load_twin(load_problems(config.data.train).problems, config.data.twin)
    if config.data.eval is not None and config.evaluation.every:
        _require_problems(config, config.data.eval, "data.eval", True)


def require_model(model: str, setting: str) -> None:
    """Raise MmcorlError when `model` is a path without a model. Hub ids are left to the hub."""
    path = Path(model).expanduser()
    if path.is_dir():
        if base_of(model) is None and not (path / "config.json").is_file():
            raise MmcorlError(
                f"{setting}={model} has no config.json; give a `save_pretrained` folder or a hub id"
            )
    elif path.exists():
        raise MmcorlError(f"{setting}={model} is a file; give the folder that holds the model, or a hub id")
    elif looks_like_a_path(model):
        raise MmcorlError(f"{setting}={model} does not exist below {Path.cwd()}; give a folder or a hub id")


def _require_extras(config: Config, name: str) -> None:
    """Raise MmcorlError where a package that this agent's settings need is not installed."""
    agent = config.agents[name]
    needed = {
        f"agents.{name}.lora": ("peft", agent.lora is not None),
        f"agents.{name}.quantize={agent.quantize}": ("bitsandbytes", agent.quantize is not None),
        f"optimizer.kind={config.optimizer.kind}": (
            "bitsandbytes",
            config.optimizer.kind == "adamw_8bit" and not agent.frozen,
        ),
    }
    for setting, (package, asked) in needed.items():
        if asked:
            require_installed(package, setting, "lora")
    if config.rollouts.engine == "vllm" and agent.server is None:
        require_installed("vllm", "rollouts.engine=vllm", "vllm")
    if agent.sharding.startswith("zero"):
        require_installed("deepspeed", f"agents.{name}.sharding={agent.sharding}", "scale")


def looks_like_a_path(model: str) -> bool:
    """Whether a name that does not exist was meant as a path: no `owner/name`, or one whose owner is a folder here."""
    return (
        not _HUB_ID.fullmatch(model)
        or model.startswith(".")
        or ("/" in model and Path(model).parts[0] in _here())
    )


def _here() -> set[str]:
    return {path.name for path in Path.cwd().iterdir() if path.is_dir()}


def _require_problems(config: Config, data: DataConfig, setting: str, gold: bool) -> int:
    """The number of problems. Built-in scenes are not drawn: nothing can be wrong with them."""
    if data.scenes is not None:
        return min(data.scenes.size, data.limit or data.scenes.size)
    problems = load_problems(data, setting, require_gold=gold).problems
    if any(problem.program for problem in problems):
        with Sandbox(limits_of(config.code), workers=1) as sandbox:
            sandbox.warm()
    images = ((problem.id, image) for problem in problems for image in problem.images)
    for problem_id, image in islice(images, _DECODED):
        shown_image(image, config.images, f"{setting}: image of {problem_id}")
    return len(problems)
