"""LLaVA-NeXT (1.6): every image is seen whole and in tiles, whose padding is cut off and whose rows end in a newline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from transformers.models.llava_next.modeling_llava_next import get_anyres_image_grid_shape, unpad_image

from mmcorl.agents.backbones.base import Backbone
from mmcorl.config import ImagesConfig


class LlavaNext(Backbone):
    """Images have different numbers of tiles, filled up with zeros that the model cuts off by `image_sizes`."""

    vision_inputs = ("pixel_values", "image_sizes")
    projector_names = ("multi_modal_projector.", "image_newline")

    def feature_rows(self, vision: Mapping[str, Tensor]) -> int:
        return sum(self.rows_of(height, width) for height, width in vision["image_sizes"].tolist())

    def image_tokens(self, processor: Any, width: int, height: int, images: ImagesConfig, count: int) -> int:
        return self.rows_of(height, width)

    def rows_of(self, height: int, width: int) -> int:
        """Feature rows of one image of that size: the whole, and its tiles with a newline after each of their rows."""
        vision = self.config.vision_config
        side = vision.image_size // vision.patch_size
        tiles = get_anyres_image_grid_shape(
            (height, width), self.config.image_grid_pinpoints, vision.image_size
        )
        grid = torch.empty(1, tiles[0] * side, tiles[1] * side, device="meta")
        _, rows, columns = unpad_image(grid, (height, width)).shape
        rows, columns = self.shrunk(rows, columns, side)
        return side**2 + rows * (columns + 1)

    def shrunk(self, rows: int, columns: int, side: int) -> tuple[int, int]:
        """The grid of the tiles' features as it reaches the text, where a whole image has `side` rows and columns."""
        return rows, columns
