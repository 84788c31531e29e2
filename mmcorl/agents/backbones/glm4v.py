"""GLM-4.1V: as Qwen2.5-VL, with other caps and names."""

from __future__ import annotations

from typing import Any

from mmcorl.agents.backbones.qwen2_5_vl import Qwen2_5_VL
from mmcorl.config import ImagesConfig


class Glm4V(Qwen2_5_VL):
    """The features are made smaller by a convolution before the `merger`; both are the projector."""

    projector_names = ("visual.merger.", "visual.downsample.")

    def processor_options(self, images: ImagesConfig) -> dict[str, Any]:
        """Its caps count the pixels of the two frames that it makes of an image."""
        size = {"shortest_edge": 2 * images.min_pixels, "longest_edge": 2 * images.max_pixels}
        return {"images_kwargs": {"size": size}}

    def image_tokens(self, processor: Any, width: int, height: int, images: ImagesConfig, count: int) -> int:
        options = self.processor_options(images)["images_kwargs"]
        patches = processor.image_processor.get_number_of_image_patches(height, width, options)
        return patches // processor.image_processor.merge_size**2
