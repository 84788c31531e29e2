"""SmolVLM and Idefics3: squares of a fixed number of tokens between marks; tiling adds a square for each tile."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor

from mmcorl.agents.backbones.base import Backbone
from mmcorl.config import ImagesConfig
from mmcorl.errors import MmcorlError


class SmolVLM(Backbone):
    """All images of a batch lie along the second axis, as if they were one prompt's."""

    vision_inputs = ("pixel_values", "pixel_attention_mask")
    vision_axes: ClassVar = {"pixel_values": 1, "pixel_attention_mask": 1}
    vision_names = ("vision_model.",)
    projector_names = ("connector.",)

    def load_processor(self, model: str | Path) -> Any:
        """Raises MmcorlError without num2words, which SmolVLM's processor asks for although only films need it."""
        try:
            return super().load_processor(model)
        except ImportError as error:
            if "num2words" not in str(error):
                raise
            raise MmcorlError(
                f"the processor of {model} needs num2words; pip install 'mmcorl[smolvlm]'"
            ) from error

    def processor_options(self, images: ImagesConfig) -> dict[str, Any]:
        return {"images_kwargs": {"do_image_splitting": images.tiling}}

    def feature_rows(self, vision: Mapping[str, Tensor]) -> int:
        sight = self.config.vision_config
        side = sight.image_size // sight.patch_size
        return vision["pixel_values"].shape[1] * (side // self.config.scale_factor) ** 2

    def image_tokens(self, processor: Any, width: int, height: int, images: ImagesConfig, count: int) -> int:
        """Those of the frame's placeholder: of an image in tiles with the marks of every tile as well."""
        options = self.processor_options(images)["images_kwargs"]
        _, rows, columns = processor.image_processor.get_number_of_image_patches(height, width, options)
        text = processor.replace_image_token({"rows": [[rows]], "cols": [[columns]]}, 0)
        _, frame = self.image_frame(processor)
        whole, framed = processor.tokenizer([text, frame], add_special_tokens=False)["input_ids"]
        return len(whole) - len(framed) + 1

    def image_frame(self, processor: Any) -> tuple[str, str]:
        mark, placeholder = processor.fake_image_token, processor.image_token
        return placeholder, f"{mark}<global-img>{placeholder}{mark}"
