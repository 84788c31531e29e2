"""Backbone: what one model family needs beyond the common path."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor
from transformers import (
    AutoModelForImageTextToText,
    AutoProcessor,
    PreTrainedConfig,
    PreTrainedModel,
    ProcessorMixin,
)

from mmcorl.config import ImagesConfig, Part


class Backbone:
    """The defaults suit a vision-language model with one position per token and causal attention.

    A family overrides what differs. Everything here is small data or a pure function; no state is kept.
    """

    auto_model: ClassVar[Any] = AutoModelForImageTextToText
    sees_images: ClassVar[bool] = True
    token_inputs: ClassVar[tuple[str, ...]] = ()
    """Inputs of the model with one value a token, beside the ids; 0 on every completion token."""
    vision_inputs: ClassVar[tuple[str, ...]] = ("pixel_values",)
    """Inputs of the model that hold images; those of several prompts are joined, ..."""
    vision_axes: ClassVar[Mapping[str, int]] = {}
    """... along the first axis, or the one named here. Where other axes differ, zeros fill up to the longest."""
    vision_names: ClassVar[tuple[str, ...]] = ("vision_tower.",)
    """Parameters with one of these in their name belong to the vision part, ..."""
    projector_names: ClassVar[tuple[str, ...]] = ("multi_modal_projector.",)
    """... unless one of these is in it: then to the projector. All others are the text part."""
    bidirectional_images: ClassVar[bool] = False
    """Whether the tokens of one image attend to each other in both directions."""

    def __init__(self, config: PreTrainedConfig) -> None:
        self.config = config

    def load_processor(self, model: str | Path) -> Any:
        """The processor (or tokenizer) that turns chat text and images into the model's inputs."""
        return AutoProcessor.from_pretrained(model)

    def load_model(
        self, model: str | Path, attention: str, dtype: torch.dtype = torch.float32, **options: Any
    ) -> PreTrainedModel:
        """The weights, in `dtype`; `options` are those of `from_pretrained`."""
        return self.auto_model.from_pretrained(model, dtype=dtype, attn_implementation=attention, **options)

    def processor_options(self, images: ImagesConfig) -> dict[str, Any]:
        """Options for every call of the processor."""
        return {}

    def placeholder_ids(self) -> frozenset[int]:
        """Tokens that stand for image features; sampling one would ask for features that do not exist."""
        names = ("image_token_id", "video_token_id")
        return frozenset(i for name in names if (i := getattr(self.config, name, None)) is not None)

    def feature_rows(self, vision: Mapping[str, Tensor]) -> int:
        """How many feature rows the vision part makes of these inputs: one for every image placeholder token."""
        raise NotImplementedError

    def image_tokens(self, processor: Any, width: int, height: int, images: ImagesConfig, count: int) -> int:
        """Tokens of one image of that size in a prompt of `count` images, without weights or pixels.

        They take the place of the one placeholder in `image_frame`. The size is within the caps already.
        """
        raise NotImplementedError

    def image_frame(self, processor: Any) -> tuple[str, str]:
        """What stands for an image in chat text, and what the processor makes of it, with a single placeholder."""
        return processor.image_token, processor.image_token

    def positions(self, model: PreTrainedModel, inputs: Mapping[str, Tensor]) -> Tensor:
        """Positions of one unpadded prompt, (P,), or (3, P) for families with three axes. Completions go on from the largest."""
        return torch.arange(inputs["input_ids"].shape[-1])

    def part_of(self, parameter: str) -> Part:
        """The part of the model that a parameter belongs to, by its name."""
        if any(name in parameter for name in self.projector_names):
            return "projector"
        return "vision" if any(name in parameter for name in self.vision_names) else "text"

    def tokenizer(self, processor: Any) -> Any:
        """The tokenizer inside a processor; a text model's processor is one already."""
        return processor.tokenizer if isinstance(processor, ProcessorMixin) else processor
