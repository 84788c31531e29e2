"""LLaVA-OneVision: as LLaVA-NeXT for an only image, in at most so many features; several images are one square each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from mmcorl.agents.backbones.llava_next import LlavaNext
from mmcorl.config import ImagesConfig


class LlavaOneVision(LlavaNext):
    """`batch_num_images` tells the model which images are the only one of their prompt, and therefore in tiles."""

    vision_inputs = ("pixel_values", "image_sizes", "batch_num_images")

    def feature_rows(self, vision: Mapping[str, Tensor]) -> int:
        sizes = vision["image_sizes"].tolist()
        return sum(self._rows(height, width, len(sizes)) for height, width in sizes)

    def image_tokens(self, processor: Any, width: int, height: int, images: ImagesConfig, count: int) -> int:
        return self._rows(height, width, count)

    def _rows(self, height: int, width: int, count: int) -> int:
        vision = self.config.vision_config
        return (
            self.rows_of(height, width) if count == 1 else (vision.image_size // vision.patch_size) ** 2 + 1
        )

    def shrunk(self, rows: int, columns: int, side: int) -> tuple[int, int]:
        """At most the features of so many squares, as `vision_aspect_ratio` says, such as `anyres_max_9`."""
        squares = int(self.config.vision_aspect_ratio.removeprefix("anyres_max_"))
        ratio = math.sqrt(rows * columns / (squares * side**2))
        return (int(rows // ratio), int(columns // ratio)) if ratio > 1.1 else (rows, columns)
