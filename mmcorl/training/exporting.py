"""Export: a trained agent as a folder in the hub's format, with a card that says what it is and how well it does."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from mmcorl.agents.adapter_files import base_of
from mmcorl.config_loading import load_config
from mmcorl.errors import MmcorlError
from mmcorl.files import replacing, writing
from mmcorl.training import checkpoints
from mmcorl.training.folders import RunFolder
from mmcorl.training.metrics import read_metrics
from mmcorl.training.model_card import model_card

DType = Literal["float32", "bfloat16", "float16"]

_NOT_EXPORTED = (checkpoints.TRAINING, checkpoints.MANIFEST, "best.json", "README.md")


class Hub(Protocol):
    """What of `huggingface_hub.HfApi` an upload takes."""

    def create_repo(self, repo_id: str, *, exist_ok: bool) -> Any: ...

    def upload_folder(self, *, repo_id: str, folder_path: Path, commit_message: str) -> Any: ...


@dataclass(frozen=True)
class Source:
    """A checkpoint of an agent, whole, and what is known of it."""

    folder: Path
    step: int
    best: dict[str, Any] | None
    """What `best.json` says, where it is the best."""


def export(
    run: Path,
    agent: str,
    to: Path,
    *,
    step: int | None = None,
    adapter: bool = False,
    dtype: DType | None = None,
    evaluations: Sequence[Path] = (),
) -> Source:
    """Write a checkpoint of `agent` to the new folder `to`, as `from_pretrained` reads it, with a README.

    Without `step` it is the best checkpoint. Adapters are added to the weights of their model unless `adapter` asks for
    them alone. `dtype` None keeps that of the checkpoint. `evaluations` are folders of `mmcorl-eval`, whose scores the
    README lists. Raises MmcorlError, before anything is written, for what is not there, is damaged or is in the way.
    """
    folder = RunFolder(run)
    if not folder.config.is_file():
        raise MmcorlError(f"{run} is not the folder of a run: there is no config.yaml in it")
    config = load_config(folder.config)
    if agent not in config.agents:
        raise MmcorlError(f"--agent {agent}: the run's agents are {', '.join(config.agents)}")
    if config.agents[agent].frozen:
        raise MmcorlError(f"{agent} is frozen: it has learned nothing that could be exported")
    if to.exists():
        raise MmcorlError(f"{to} exists; choose another folder with --to, or remove it")
    source = find(folder, agent, step)
    adapted = base_of(str(source.folder)) is not None
    merges = adapted and not adapter
    if adapter and not adapted:
        raise MmcorlError(f"--adapter: {agent} was trained without agents.{agent}.lora")
    if adapter and dtype is not None:
        raise MmcorlError("--adapter keeps adapters as they are; leave --dtype out")
    scores = [row for path in evaluations for row in score_rows(path)]
    tables = [heldout_table(folder, agent, source.step), scores_table(scores)]
    card = model_card(config, agent, source.best, merged=merges, evaluation=[t for t in tables if t])
    loaded = (
        _load(source.folder, config.agents[agent].attention, dtype) if merges or dtype is not None else ()
    )
    with writing(to, "--to"):
        to.parent.mkdir(parents=True, exist_ok=True)
        with replacing(to) as new:
            try:
                for part in loaded:
                    part.save_pretrained(new)
                if not loaded:
                    ignore = shutil.ignore_patterns(*_NOT_EXPORTED)
                    shutil.copytree(source.folder, new, ignore=ignore)
                (new / "README.md").write_text(card, encoding="utf-8")
            except BaseException:
                shutil.rmtree(new, ignore_errors=True)
                raise
    return source


def find(folder: RunFolder, agent: str, step: int | None) -> Source:
    """The checkpoint of `step`, or the best. Raises MmcorlError where it is not there, or damaged."""
    best = checkpoints.read_best(folder.agent(agent))
    kept = checkpoints.steps(folder.checkpoints(agent))
    if step is None:
        if best is None:
            raise MmcorlError(f"{agent} has no best checkpoint yet; name one of --step {_listed(kept)}")
        source = Source(folder.agent(agent) / "best", best["step"], best)
    elif step in kept:
        source = Source(checkpoints.step_folder(folder.checkpoints(agent), step), step, None)
    else:
        raise MmcorlError(f"{agent} has no checkpoint of step {step}; kept are {_listed(kept)}")
    damage = checkpoints.damage(source.folder)
    if damage is not None:
        others = [other for other in kept if other != step]
        raise MmcorlError(f"{damage}; export another with --step, of {_listed(others)}")
    return source


def push(folder: Path, repo: str, hub: Hub) -> None:
    """Upload a folder as a repository of models. Raises MmcorlError where the hub refuses; the folder stays."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        hub.create_repo(repo, exist_ok=True)
        hub.upload_folder(repo_id=repo, folder_path=folder, commit_message="Trained with mmcorl")
    except (HfHubHTTPError, HFValidationError, OSError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise MmcorlError(
            f"{folder} is written but was not uploaded to {repo} ({reason}); see `hf auth login`, then "
            f"`hf upload {repo} {folder}`"
        ) from error


def heldout_table(folder: RunFolder, agent: str, step: int) -> str:
    """The run's own held-out results before training and at `step`, as a table in Markdown; empty without any."""
    lines = [line for line in read_metrics(folder.metrics(agent), "eval") if line["step"] in (0, step)]
    if not lines:
        return ""
    rows = ["| held-out | step | problems | result | 95 % interval |", "| --- | --- | --- | --- | --- |"]
    for key in ("accuracy", "avg"):
        for line in lines:
            if line.get(key) is not None:
                name = "greedy accuracy" if key == "accuracy" else f"avg@{line['samples']}"
                low, high = line[f"{key}_low"], line[f"{key}_high"]
                rows.append(
                    f"| {name} | {line['step']} | {line['problems']} | {line[key]:.3f} | {low:.3f} to {high:.3f} |"
                )
    return "\n".join(rows) + "\n"


def score_rows(folder: Path) -> list[dict[str, Any]]:
    """The scores that `mmcorl-eval` wrote into a folder. Raises MmcorlError where there are none."""
    path = folder / "summary.json"
    try:
        return list(json.loads(path.read_text(encoding="utf-8"))["scores"])
    except (OSError, ValueError, KeyError) as error:
        raise MmcorlError(f"--evaluation {folder} holds no results of mmcorl-eval ({error})") from None


def scores_table(scores: Sequence[dict[str, Any]]) -> str:
    """Scores of `mmcorl-eval` as a table in Markdown; empty without any."""
    if not scores:
        return ""
    rows = ["| benchmark | model | problems | samples | accuracy | 95 % interval |", "| --- " * 6 + "|"]
    for score in scores:
        accuracy = score["accuracy"]
        rows.append(
            f"| {score['benchmark']} | {score['model']} | {accuracy['problems']} | {score['samples']} | "
            f"{accuracy['value']:.3f} | {accuracy['low']:.3f} to {accuracy['high']:.3f} |"
        )
    return "\n".join(rows) + "\n"


class _Saved(Protocol):
    """A model or its processor."""

    def save_pretrained(self, save_directory: Path) -> Any: ...


def _load(source: Path, attention: str, dtype: DType | None) -> tuple[_Saved, _Saved]:
    """The model in `dtype`, with its adapters added to its weights, and its processor."""
    import torch
    from transformers import AutoConfig

    from mmcorl.agents.adapters import merge_adapters
    from mmcorl.agents.backbones import backbone_for

    base = base_of(str(source))
    try:
        backbone = backbone_for(AutoConfig.from_pretrained(base or source))
        model = backbone.load_model(base or source, attention)
        processor = backbone.load_processor(str(source))
    except OSError as error:
        reason = str(error).strip().partition("\n")[0]
        raise MmcorlError(
            f"{base or source} cannot be loaded ({reason}); adapters are added to the model they were trained on, and "
            "--adapter exports them alone"
        ) from error
    if base is not None:
        model = merge_adapters(model, source)
    if dtype is not None:
        model.to(getattr(torch, dtype))
    return model, processor


def _listed(steps: Sequence[int]) -> str:
    return ", ".join(map(str, steps)) or "none"
