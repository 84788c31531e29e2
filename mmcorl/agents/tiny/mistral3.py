"""Mistral Small 3.1: the Pixtral tower at an image's own size, two by two patches merged, a mark after each row."""

from __future__ import annotations

from transformers import (
    Mistral3Config,
    Mistral3ForConditionalGeneration,
    PixtralImageProcessor,
    PixtralProcessor,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    ProcessorMixin,
)

from mmcorl.agents.tiny import chat
from mmcorl.agents.tiny.recipe import (
    PIXELS,
    Family,
    TinySizes,
    text_settings,
    token_id,
    vision_settings,
)

_PATCH = 14
_MERGE = 2
_LONGEST = 20 * _PATCH * _MERGE


def _model(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    config = Mistral3Config(
        text_config={
            "model_type": "mistral",
            "head_dim": sizes.head_size,
            "sliding_window": None,
            **text_settings(sizes, tokenizer),
        },
        vision_config={
            "model_type": "pixtral",
            **vision_settings(sizes, _PATCH),
            "image_size": _LONGEST,
        },
        image_token_index=token_id(tokenizer, "[IMG]"),
        spatial_merge_size=_MERGE,
        tie_word_embeddings=True,
    )
    return Mistral3ForConditionalGeneration(config)


def _processor(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> ProcessorMixin:
    images = PixtralImageProcessor(
        size={"longest_edge": _LONGEST}, patch_size={"height": _PATCH, "width": _PATCH}, **PIXELS
    )
    return PixtralProcessor(
        images, tokenizer, patch_size=_PATCH, spatial_merge_size=_MERGE, chat_template=tokenizer.chat_template
    )


MISTRAL3 = Family(chat.MISTRAL3, _model, _processor)
