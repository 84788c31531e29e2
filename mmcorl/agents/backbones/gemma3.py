"""Gemma 3: every image is 256 tokens that see each other; most text layers look back over a sliding window."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from mmcorl.agents.backbones.base import Backbone


class Gemma3(Backbone):
    """Its stop token `<end_of_turn>` stands in the generation config, beside the tokenizer's end of sequence."""

    token_inputs = ("token_type_ids",)
    bidirectional_images = True

    def feature_rows(self, vision: Mapping[str, Tensor]) -> int:
        return vision["pixel_values"].shape[0] * self.config.mm_tokens_per_image
