"""What a run of benchmarks asks for: the settings shared with training, and how each benchmark is sampled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from pydantic import Field

from mmcorl.config import (
    AgentConfig,
    Attention,
    CodeConfig,
    Dtype,
    ImagesConfig,
    PromptConfig,
    RolloutsConfig,
    Section,
)
from mmcorl.config_loading import load_config, merge_overrides, validate
from mmcorl.errors import MmcorlError
from mmcorl.evaluation.declaration import Declaration
from mmcorl.evaluation.programs import CODE
from mmcorl.evaluation.records import Sampling

_MAX_PROMPT_TOKENS = 16_384


class EvaluationSettings(Section):
    """How models read and answer. The sections are those of a training run, with the same defaults."""

    prompt: PromptConfig = PromptConfig()
    """What is said around each question."""
    images: ImagesConfig = ImagesConfig()
    """Sizes of images."""
    code: CodeConfig = CODE
    """What a program may use, by default more than in training."""
    dtype: Dtype = "float32"
    """As `agents.*.dtype`."""
    attention: Attention = "sdpa"
    """As `agents.*.attention`."""
    max_prompt_tokens: int = Field(default=_MAX_PROMPT_TOKENS, ge=1)
    """As `rollouts.max_prompt_tokens`."""
    batch_tokens: int = Field(default=65_536, ge=1)
    """As `rollouts.batch_tokens`."""

    def agent(self, model: str) -> AgentConfig:
        return AgentConfig(model=model, dtype=self.dtype, attention=self.attention)

    def rollouts(self) -> RolloutsConfig:
        return RolloutsConfig(max_prompt_tokens=self.max_prompt_tokens, batch_tokens=self.batch_tokens)


@dataclass(frozen=True)
class Asked:
    """What was asked for on the command line; None leaves it to the benchmark's declaration."""

    settings: EvaluationSettings
    samples: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int = 3072
    seed: int = 0
    limit: int | None = None
    batch: int = 64
    """Problems that are answered before anything is written."""
    own_instruction: bool = False
    """Whether `prompt.instruction` was given, and so replaces the instruction that a benchmark has."""

    def sampling(self, declaration: Declaration) -> Sampling:
        """How a benchmark is sampled. Raises MmcorlError for several samples without a temperature."""
        samples = self.samples
        if samples is None:
            samples = 1 if self.temperature == 0 else declaration.samples
        temperature = self.temperature
        if temperature is None:
            temperature = declaration.temperature if samples > 1 else 0.0
        if samples > 1 and temperature == 0:
            raise MmcorlError(
                f"--samples={samples} of {declaration.name} would all be the same, decoded greedily; "
                "give a --temperature above 0, such as 0.6"
            )
        top_p = self.top_p or (declaration.top_p if temperature else 1.0)
        return Sampling(samples, temperature, top_p, self.max_tokens, self.seed)

    def prompt(self, declaration: Declaration) -> PromptConfig:
        if declaration.instruction is None or self.own_instruction:
            return self.settings.prompt
        return self.settings.prompt.model_copy(update={"instruction": declaration.instruction})


def read_settings(config: Path | None, overrides: Sequence[str]) -> EvaluationSettings:
    """`prompt` and `images` of a training run's configuration, if one is named, with `key=value` overrides on top."""
    tree: dict[str, Any] = {"code": CODE.model_dump(mode="json")}
    if config is not None:
        run = load_config(config)
        tree |= {"prompt": run.prompt.model_dump(mode="json"), "images": run.images.model_dump(mode="json")}
    merged = OmegaConf.to_container(merge_overrides(OmegaConf.create(tree), overrides), resolve=False)
    return validate(EvaluationSettings, merged, "mmcorl-eval")
