"""The contract that every backbone keeps. `mmcorl-check` runs it on any model; a test runs it on tiny ones."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from mmcorl.agents.agent import Agent
from mmcorl.agents.backbones import Backbone
from mmcorl.agents.contract.inputs import (
    every_image_reaches_its_own_prompt,
    every_part_has_parameters,
    lengths_are_known_without_pixels,
    long_prompt_is_refused,
    placeholders_equal_features,
)
from mmcorl.agents.contract.learning import (
    every_part_learns_under_checkpointing,
    reload_keeps_logits,
    shared_prefix_equals_plain,
)
from mmcorl.agents.contract.sampling import (
    batching_changes_nothing,
    greedy_equals_generate,
    placeholders_are_never_sampled,
    sampler_equals_policy,
    stop_tokens_are_honoured,
)
from mmcorl.agents.contract.trial import BrokenContract, Point, Skipped, Trial, prepare, sample_problems

__all__ = [
    "POINTS",
    "BrokenContract",
    "Outcome",
    "Point",
    "Trial",
    "backbone_file",
    "batching_changes_nothing",
    "check",
    "every_image_reaches_its_own_prompt",
    "every_part_has_parameters",
    "every_part_learns_under_checkpointing",
    "greedy_equals_generate",
    "lengths_are_known_without_pixels",
    "long_prompt_is_refused",
    "placeholders_are_never_sampled",
    "placeholders_equal_features",
    "prepare",
    "reload_keeps_logits",
    "sample_problems",
    "sampler_equals_policy",
    "shared_prefix_equals_plain",
    "stop_tokens_are_honoured",
]

_PARTS = Point(
    every_part_has_parameters,
    "their names stand at the beginning of the parameters' own, such as `model.vision_tower.`",
    ("vision_names", "projector_names"),
)
_PROMPTS = Point(
    lambda trial: f"{len([trial.agent.encode(p) for p in trial.problems])} prompts",
    "the error is the processor's own, or feature rows are miscounted (it may cut images into tiles, or keep a class "
    "token that the model drops)",
    ("feature_rows", "placeholder_ids", "processor_options", "token_inputs", "positions"),
)
_COMPLETIONS = Point(
    lambda trial: f"{len(prepare(trial.agent).groups)} prompts",
    "the model lacks an input that the processor gives, or images of several prompts are joined along the wrong axis",
    ("vision_inputs", "vision_axes", "token_inputs", "positions"),
)

POINTS: tuple[Point, ...] = (
    _PARTS,
    Point(
        placeholders_equal_features,
        "the processor cuts images into tiles, merges patches, or keeps a class token that the model drops",
        ("feature_rows", "placeholder_ids", "processor_options"),
    ),
    Point(
        lengths_are_known_without_pixels,
        "the processor rounds sizes first, or puts other tokens around an image",
        ("image_tokens", "image_frame", "processor_options"),
    ),
    Point(
        long_prompt_is_refused,
        "load_processor gives a processor that cuts; prompts are never cut",
        ("load_processor",),
    ),
    Point(
        every_image_reaches_its_own_prompt,
        "the model reads only the first of the images it is given, or takes them in another order",
        ("vision_inputs", "vision_axes"),
    ),
    Point(
        placeholders_are_never_sampled,
        "image tokens have another name in the configuration than image_token_id",
        ("placeholder_ids",),
    ),
    Point(
        stop_tokens_are_honoured,
        "eos_token_id in the model's generation_config.json lacks one, or names one that no template writes",
    ),
    Point(
        shared_prefix_equals_plain,
        "positions of prompts are not those that the model gives them itself, or tokens of an image see each other",
        ("positions", "bidirectional_images", "token_inputs"),
    ),
    Point(
        every_part_learns_under_checkpointing,
        "the vision part is not used (its inputs are missing) or runs without gradients",
        ("vision_inputs", "vision_names", "projector_names"),
    ),
    Point(
        sampler_equals_policy,
        "positions after a prompt do not go on from its largest, or a token input is not zero on completions",
        ("positions", "token_inputs"),
    ),
    Point(
        greedy_equals_generate,
        "`generate` gives the prompt other positions or inputs than the backbone does",
        ("positions", "vision_inputs", "token_inputs"),
    ),
    Point(
        batching_changes_nothing,
        "images of several prompts are joined along the wrong axis, or padding on the left is seen",
        ("vision_axes", "positions"),
    ),
    Point(
        reload_keeps_logits,
        "weights are tied that the configuration does not call so, or the processor's files say less than it does",
        ("load_model", "load_processor"),
    ),
)


@dataclass(frozen=True)
class Outcome:
    """One point of the contract: what it asks, whether it holds, what was measured, and where to mend it if not."""

    point: str
    state: Literal["holds", "skipped", "broken"]
    detail: str
    mend: str | None = None
    hint: str | None = None

    @property
    def holds(self) -> bool:
        return self.state != "broken"


# What models raise that do not take what they are given.
_FAILURES = (
    BrokenContract,
    ValueError,
    RuntimeError,
    LookupError,
    TypeError,
    AttributeError,
    NotImplementedError,
)


def check(agent: Agent) -> Iterator[Outcome]:
    """Run every point on a model; a point that raises is one that does not hold.

    Where no problem becomes a prompt with completions, that is the outcome, and only the parts are looked at beside it.
    """
    try:
        trial = prepare(agent)
    except _FAILURES:
        bare = Trial(agent, sample_problems(agent.backbone.sees_images), [], [], torch.tensor([]))
        yield _outcome(_PARTS, bare)
        prompts = _outcome(_PROMPTS, bare, "Problems become prompts")
        yield _outcome(_COMPLETIONS, bare, "Prompts become completions") if prompts.holds else prompts
        return
    for point in POINTS:
        yield _outcome(point, trial)


def _outcome(point: Point, trial: Trial, title: str | None = None) -> Outcome:
    title = title or point.title
    try:
        detail = point(trial)
    except _FAILURES as error:
        said = str(error) if isinstance(error, BrokenContract) else f"{type(error).__name__}: {error}"
        return Outcome(title, "broken", said, _names(point.mend), _hint(point, trial.agent.backbone))
    return Outcome(title, "skipped" if isinstance(detail, Skipped) else "holds", detail)


def _names(names: tuple[str, ...]) -> str | None:
    return " or ".join(filter(None, (", ".join(names[:-1]), *names[-1:]))) or None


def _hint(point: Point, backbone: Backbone) -> str:
    """Where to mend it, and what is typically wrong."""
    if not point.mend:
        return f"typically {point.cause}"
    where = f"{type(backbone).__name__} in {backbone_file(backbone)}"
    return f"mend {_names(point.mend)} of {where}; typically {point.cause}"


def backbone_file(backbone: Backbone) -> Path:
    """The file that defines a backbone's class, from the folder at hand where it is below it."""
    file, here = Path(inspect.getfile(type(backbone))), Path.cwd()
    return file.relative_to(here) if file.is_relative_to(here) else file
