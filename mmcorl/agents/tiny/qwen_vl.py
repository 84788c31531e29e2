"""Qwen2-VL, Qwen2.5-VL and Qwen3-VL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from transformers import (
    PreTrainedModel,
    PreTrainedTokenizerFast,
    ProcessorMixin,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2_5_VLProcessor,
    Qwen2VLConfig,
    Qwen2VLForConditionalGeneration,
    Qwen2VLImageProcessor,
    Qwen2VLProcessor,
    Qwen2VLVideoProcessor,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
    Qwen3VLProcessor,
    Qwen3VLVideoProcessor,
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


def _qwen_vl_ids(tokenizer: PreTrainedTokenizerFast) -> dict[str, Any]:
    return {
        "image_token_id": token_id(tokenizer, "<|image_pad|>"),
        "video_token_id": token_id(tokenizer, "<|video_pad|>"),
        "vision_start_token_id": token_id(tokenizer, "<|vision_start|>"),
        "vision_end_token_id": token_id(tokenizer, "<|vision_end|>"),
    }


def _qwen2_vl(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    config = Qwen2VLConfig(
        text_config={
            **text_settings(sizes, tokenizer),
            "rope_parameters": rope_on_three_axes(sizes, 1e6),
        },
        vision_config={
            "depth": sizes.vision_layers,
            "embed_dim": sizes.vision_hidden,
            "hidden_size": sizes.hidden,
            "mlp_ratio": 2,
            "num_heads": sizes.vision_heads,
            "initializer_range": INITIALIZER_RANGE,
        },
        tie_word_embeddings=True,
        **_qwen_vl_ids(tokenizer),
    )
    return Qwen2VLForConditionalGeneration(config)


def _qwen2_5_vl(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    config = Qwen2_5_VLConfig(
        text_config={
            **text_settings(sizes, tokenizer),
            "rope_parameters": rope_on_three_axes(sizes, 1e6),
        },
        vision_config={
            "depth": sizes.vision_layers,
            "hidden_size": sizes.vision_hidden,
            "intermediate_size": 2 * sizes.vision_hidden,
            "num_heads": sizes.vision_heads,
            "out_hidden_size": sizes.hidden,
            # As in the real model all layers but some look at windows; here the last layer sees the whole image.
            "fullatt_block_indexes": [sizes.vision_layers - 1],
            "window_size": 112,
            "initializer_range": INITIALIZER_RANGE,
        },
        tie_word_embeddings=True,
        **_qwen_vl_ids(tokenizer),
    )
    return Qwen2_5_VLForConditionalGeneration(config)


def _qwen3_vl(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    config = Qwen3VLConfig(
        text_config={
            **text_settings(sizes, tokenizer),
            "head_dim": sizes.head_size,
            "rope_parameters": {**rope_on_three_axes(sizes, 5e6), "mrope_interleaved": True},
        },
        vision_config={
            "depth": sizes.vision_layers,
            "hidden_size": sizes.vision_hidden,
            "intermediate_size": 2 * sizes.vision_hidden,
            "num_heads": sizes.vision_heads,
            "out_hidden_size": sizes.hidden,
            "num_position_embeddings": 144,
            "deepstack_visual_indexes": [0],
            "initializer_range": INITIALIZER_RANGE,
        },
        tie_word_embeddings=True,
        **_qwen_vl_ids(tokenizer),
    )
    return Qwen3VLForConditionalGeneration(config)


_QWEN_SIZE = {"shortest_edge": 56 * 56, "longest_edge": 16384 * 28 * 28}


def _processor(
    kind: type[ProcessorMixin],
) -> Callable[[TinySizes, PreTrainedTokenizerFast], ProcessorMixin]:
    def build(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> ProcessorMixin:
        images = Qwen2VLImageProcessor(size=_QWEN_SIZE, **PIXELS)
        videos = Qwen2VLVideoProcessor(size=_QWEN_SIZE, **PIXELS)
        return kind(images, tokenizer, videos, chat_template=tokenizer.chat_template)

    return build


def _qwen3_vl_processor(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> ProcessorMixin:
    images = Qwen2VLImageProcessor(size=_QWEN_SIZE, patch_size=16, **PIXELS)
    videos = Qwen3VLVideoProcessor(size=_QWEN_SIZE, patch_size=16, **PIXELS)
    return Qwen3VLProcessor(images, tokenizer, videos, chat_template=tokenizer.chat_template)


QWEN2_VL = Family(chat.QWEN2_5_VL, _qwen2_vl, _processor(Qwen2VLProcessor))
QWEN2_5_VL = Family(chat.QWEN2_5_VL, _qwen2_5_vl, _processor(Qwen2_5_VLProcessor))
QWEN3_VL = Family(chat.QWEN3_VL, _qwen3_vl, _qwen3_vl_processor)
