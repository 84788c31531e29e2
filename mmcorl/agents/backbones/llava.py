"""LLaVA 1.5: every image is one square of a fixed number of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from mmcorl.agents.backbones.base import Backbone
from mmcorl.config import ImagesConfig


class Llava(Backbone):
    """The vision tower is CLIP or SigLIP; Pixtral, which is also called `llava` by transformers, is another family."""

    def feature_rows(self, vision: Mapping[str, Tensor]) -> int:
        return vision["pixel_values"].shape[0] * self.config.image_seq_length

    def image_tokens(self, processor: Any, width: int, height: int, images: ImagesConfig, count: int) -> int:
        return self.config.image_seq_length
