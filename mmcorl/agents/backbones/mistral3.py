"""Mistral Small 3.1 and 3.2, Ministral 3: images at their own size, patches merged two by two, a mark after each row."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from mmcorl.agents.backbones.base import Backbone
from mmcorl.config import ImagesConfig


class Mistral3(Backbone):
    """The marks after rows are tokens of their own in the prompt, without a feature row."""

    vision_inputs = ("pixel_values", "image_sizes")

    def feature_rows(self, vision: Mapping[str, Tensor]) -> int:
        side = self.config.vision_config.patch_size * self.config.spatial_merge_size
        return int((vision["image_sizes"] // side).prod(dim=-1).sum())

    def image_tokens(self, processor: Any, width: int, height: int, images: ImagesConfig, count: int) -> int:
        """Sides are rounded up to whole tokens, after the processor's own cap of the longer one."""
        side = processor.patch_size * processor.spatial_merge_size
        shrunk = max(1.0, max(width, height) / processor.image_processor.size["longest_edge"])
        rows, columns = (math.ceil(math.floor(length / shrunk) / side) for length in (height, width))
        return rows * (columns + 1)
