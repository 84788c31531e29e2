"""MiniCPM-V 4.6: patches of all images in one long row; its text part is that of Qwen3.5, most layers of which carry state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import transformers
from packaging.version import Version
from torch import Tensor
from transformers import PreTrainedConfig

from mmcorl.agents.backbones.base import Backbone
from mmcorl.config import ImagesConfig
from mmcorl.errors import MmcorlError

_SINCE = "5.24"
"""The release of transformers whose processor tells how it cuts an image."""


class MiniCPMV4_6(Backbone):
    """The projector is the `merger`, and the one within the vision tower."""

    vision_inputs = ("pixel_values", "target_sizes")
    vision_axes: ClassVar = {"pixel_values": -1}
    projector_names = ("merger.",)

    def __init__(self, config: PreTrainedConfig) -> None:
        super().__init__(config)
        if Version(transformers.__version__) < Version(_SINCE):
            raise MmcorlError(
                f"{config.model_type} needs transformers {_SINCE}, and {transformers.__version__} is installed: "
                f"pip install 'transformers>={_SINCE}'"
            )

    def processor_options(self, images: ImagesConfig) -> dict[str, Any]:
        return {"images_kwargs": {"slice_mode": images.tiling}}

    def feature_rows(self, vision: Mapping[str, Tensor]) -> int:
        return int(vision["target_sizes"].prod(-1).sum()) // self._patches_a_row()

    def image_tokens(self, processor: Any, width: int, height: int, images: ImagesConfig, count: int) -> int:
        """Those of the frame's placeholder: of an image in slices with the marks of every slice as well."""
        cut, size = processor.image_processor, (height, width)
        sides = {"scale_resolution": cut.scale_resolution, "patch_size": cut.patch_size}
        grid = cut.get_sliced_grid(size, cut.max_slice_nums, cut.scale_resolution) if images.tiling else None
        resize = {"downsample_mode": cut.downsample_mode, **sides}
        shown = [cut.find_best_resize(size, allow_upscale=grid is None, **resize)]
        if grid is not None:
            high, wide = cut.get_refine_size(size, grid, allow_upscale=True, **resize)
            shown += [(high // grid[0], wide // grid[1])] * (grid[0] * grid[1])
        inputs = {
            "grids": [grid or [0, 0]],
            "num_patches_per_image": [len(shown)],
            "target_sizes": torch.tensor(shown) // cut.patch_size,
        }
        text = processor.replace_image_token(inputs, 0, image_token_divisor=self._patches_a_row())
        return len(processor.tokenizer(text, add_special_tokens=False)["input_ids"]) - 2  # start and end

    def image_frame(self, processor: Any) -> tuple[str, str]:
        placeholder = processor.image_token
        frame = f"{processor.image_start_token}{placeholder}{processor.image_end_token}"
        if processor.default_use_image_id:
            frame = f"{processor.image_id_start_token}0{processor.image_id_end_token}{frame}"
        return placeholder, frame

    def _patches_a_row(self) -> int:
        high, wide = self.config.merge_kernel_size
        within = 1 if self.config.downsample_mode == "4x" else 4
        return within * (high * wide) ** self.config.merger_times
