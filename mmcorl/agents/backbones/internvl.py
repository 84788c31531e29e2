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

    def image_tokens(self, processor: Any, width: int, height: int, images: ImagesConfig, count: int) -> int:
        """A fixed number for each tile, the thumbnail beside several tiles included."""
        options = self.processor_options(images)["images_kwargs"]
        tiles = processor.image_processor.get_number_of_image_patches(height, width, options)
        return tiles * processor.image_seq_length

    def image_frame(self, processor: Any) -> tuple[str, str]:
        placeholder = processor.image_token
        return placeholder, f"{processor.start_image_token}{placeholder}{processor.end_image_token}"
