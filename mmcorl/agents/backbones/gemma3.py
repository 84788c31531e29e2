"""Gemma 3: every image is 256 tokens that see each other; most text layers look back over a sliding window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from mmcorl.agents.backbones.base import Backbone
from mmcorl.config import ImagesConfig


class Gemma3(Backbone):
    """Its stop token `<end_of_turn>` stands in the generation config, beside the tokenizer's end of sequence."""

    token_inputs = ("token_type_ids",)
    bidirectional_images = True

    def feature_rows(self, vision: Mapping[str, Tensor]) -> int:
        return vision["pixel_values"].shape[0] * self.config.mm_tokens_per_image

    def image_tokens(self, processor: Any, width: int, height: int, images: ImagesConfig, count: int) -> int:
        return processor.image_seq_length

    def image_frame(self, processor: Any) -> tuple[str, str]:
        placeholder = processor.tokenizer.image_token
        run = placeholder * processor.image_seq_length
        return processor.boi_token, processor.full_image_sequence.replace(run, placeholder)
