"""Qwen2-VL and Qwen2.5-VL: images of any size as a grid of merged patches, positions on three axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from mmcorl.agents.backbones.base import Backbone
from mmcorl.config import ImagesConfig


class Qwen2_5_VL(Backbone):
    """The projector is the vision tower's `merger`."""

    token_inputs = ("mm_token_type_ids",)
    vision_inputs = ("pixel_values", "image_grid_thw")
    vision_names = ("visual.",)
    projector_names = ("visual.merger.",)

    def processor_options(self, images: ImagesConfig) -> dict[str, Any]:
        """The run's own caps, so that the processor only rounds to whole patches and never resizes a second time."""
        return {
            "images_kwargs": {"size": {"shortest_edge": images.min_pixels, "longest_edge": images.max_pixels}}
        }

    def feature_rows(self, vision: Mapping[str, Tensor]) -> int:
        merged = self.config.vision_config.spatial_merge_size**2
        return int(vision["image_grid_thw"].prod(dim=-1).sum()) // merged

    def image_tokens(self, processor: Any, width: int, height: int, images: ImagesConfig, count: int) -> int:
        """One for each merged patch, after the processor has rounded the sides to whole ones."""
        caps = {"min_pixels": images.min_pixels, "max_pixels": images.max_pixels}
        patches = processor.image_processor.get_number_of_image_patches(height, width, caps)
        return patches // processor.image_processor.merge_size**2

    def positions(self, model: PreTrainedModel, inputs: Mapping[str, Tensor]) -> Tensor:
        """(3, P): time, height and width. Text tokens have the same position on each axis."""
        grid = inputs.get("image_grid_thw")
        if grid is None:
            return torch.arange(inputs["input_ids"].shape[-1]).expand(3, -1)
        positions, _ = model.model.get_rope_index(  # pyright: ignore[reportCallIssue]
            inputs["input_ids"][None],
            mm_token_type_ids=inputs["mm_token_type_ids"][None],
            image_grid_thw=grid,
        )
        return positions[:, 0]
