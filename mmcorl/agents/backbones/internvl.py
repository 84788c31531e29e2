"""InternVL in the transformers format: square tiles, a fixed number of tokens each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from mmcorl.agents.backbones.base import Backbone
from mmcorl.config import ImagesConfig


class InternVL(Backbone):
    """The processor's own default cuts images into tiles whatever its file says, so every call states the choice."""

    def processor_options(self, images: ImagesConfig) -> dict[str, Any]:
        return {"images_kwargs": {"crop_to_patches": images.tiling}}

    def feature_rows(self, vision: Mapping[str, Tensor]) -> int:
        return vision["pixel_values"].shape[0] * self.config.image_seq_length
