"""GLM-4.1V."""

from __future__ import annotations

from transformers import (
    Glm4vConfig,
    Glm4vForConditionalGeneration,
    Glm4vImageProcessor,
    Glm4vProcessor,
    Glm4vVideoProcessor,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    ProcessorMixin,
)

from mmcorl.agents.tiny import chat
from mmcorl.agents.tiny.recipe import (
    INITIALIZER_RANGE,
    PIXELS,
    Family,
    TinySizes,
    rope_on_three_axes,
    text_settings,
    token_id,
)


def _glm4v(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    config = Glm4vConfig(
        text_config={
            **text_settings(sizes, tokenizer),
            "rope_parameters": rope_on_three_axes(sizes, 1e4),
        },
        vision_config={
            "depth": sizes.vision_layers,
            "hidden_size": sizes.vision_hidden,
            "intermediate_size": 2 * sizes.vision_hidden,
            "num_heads": sizes.vision_heads,
            "out_hidden_size": sizes.hidden,
            "image_size": sizes.image_size,
            "initializer_range": INITIALIZER_RANGE,
        },
        image_token_id=token_id(tokenizer, "<|image|>"),
        video_token_id=token_id(tokenizer, "<|video|>"),
        image_start_token_id=token_id(tokenizer, "<|begin_of_image|>"),
        image_end_token_id=token_id(tokenizer, "<|end_of_image|>"),
        video_start_token_id=token_id(tokenizer, "<|begin_of_video|>"),
        video_end_token_id=token_id(tokenizer, "<|end_of_video|>"),
        tie_word_embeddings=True,
    )
    return Glm4vForConditionalGeneration(config)


def _glm4v_processor(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> ProcessorMixin:
    return Glm4vProcessor(
        Glm4vImageProcessor(**PIXELS),
        tokenizer,
        Glm4vVideoProcessor(**PIXELS),
        chat_template=tokenizer.chat_template,
    )


GLM4V = Family(chat.GLM4V, _glm4v, _glm4v_processor)
