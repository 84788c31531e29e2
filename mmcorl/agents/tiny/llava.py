"""LLaVA 1.5, LLaVA-NeXT and LLaVA-OneVision. Their features are not merged, so patches here are of 28 pixels."""

from __future__ import annotations

from typing import Any

from transformers import (
    CLIPImageProcessor,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaNextConfig,
    LlavaNextForConditionalGeneration,
    LlavaNextImageProcessor,
    LlavaNextProcessor,
    LlavaOnevisionConfig,
    LlavaOnevisionForConditionalGeneration,
    LlavaOnevisionImageProcessor,
    LlavaOnevisionProcessor,
    LlavaOnevisionVideoProcessor,
    LlavaProcessor,
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

_PATCH = 28


def _vision(sizes: TinySizes, kind: str) -> dict[str, Any]:
    return {"model_type": kind, **vision_settings(sizes, _PATCH)}


def _square(sizes: TinySizes) -> dict[str, int]:
    return {"height": sizes.image_size, "width": sizes.image_size}


def _grids(sizes: TinySizes, most: int) -> list[list[int]]:
    """Sides of the tiled images: up to `most` squares along each."""
    side = sizes.image_size
    return [[high * side, wide * side] for high in range(1, most + 1) for wide in range(1, most + 1)]


def _llava(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    config = LlavaConfig(
        text_config={"model_type": "llama", **text_settings(sizes, tokenizer)},
        vision_config=_vision(sizes, "clip_vision_model"),
        image_token_index=token_id(tokenizer, "<image>"),
        image_seq_length=(sizes.image_size // _PATCH) ** 2,
        tie_word_embeddings=True,
    )
    return LlavaForConditionalGeneration(config)


def _llava_next(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    config = LlavaNextConfig(
        text_config={"model_type": "llama", **text_settings(sizes, tokenizer)},
        vision_config=_vision(sizes, "clip_vision_model"),
        image_token_index=token_id(tokenizer, "<image>"),
        image_grid_pinpoints=_grids(sizes, 2),
        tie_word_embeddings=True,
    )
    return LlavaNextForConditionalGeneration(config)


def _llava_onevision(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    config = LlavaOnevisionConfig(
        text_config={"model_type": "qwen2", **text_settings(sizes, tokenizer)},
        vision_config={**_vision(sizes, "siglip_vision_model"), "vision_use_head": False},
        image_token_index=token_id(tokenizer, "<image>"),
        video_token_index=token_id(tokenizer, "<video>"),
        image_grid_pinpoints=_grids(sizes, 3),
        vision_aspect_ratio="anyres_max_4",
        tie_word_embeddings=True,
    )
    return LlavaOnevisionForConditionalGeneration(config)


def _llava_processor(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> ProcessorMixin:
    images = CLIPImageProcessor(size={"shortest_edge": sizes.image_size}, crop_size=_square(sizes), **PIXELS)
    return LlavaProcessor(
        images,
        tokenizer,
        patch_size=_PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=tokenizer.chat_template,
    )


def _llava_next_processor(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> ProcessorMixin:
    images = LlavaNextImageProcessor(
        size={"shortest_edge": sizes.image_size},
        crop_size=_square(sizes),
        image_grid_pinpoints=_grids(sizes, 2),
        **PIXELS,
    )
    return LlavaNextProcessor(
        images,
        tokenizer,
        patch_size=_PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=tokenizer.chat_template,
    )


def _llava_onevision_processor(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> ProcessorMixin:
    size = _square(sizes)
    images = LlavaOnevisionImageProcessor(size=size, image_grid_pinpoints=_grids(sizes, 3), **PIXELS)
    return LlavaOnevisionProcessor(
        images,
        tokenizer,
        LlavaOnevisionVideoProcessor(size=size, **PIXELS),
        num_image_tokens=(sizes.image_size // _PATCH) ** 2,
        vision_feature_select_strategy="full",
        vision_aspect_ratio="anyres_max_4",
        chat_template=tokenizer.chat_template,
    )


LLAVA = Family(chat.LLAVA, _llava, _llava_processor)
LLAVA_NEXT = Family(chat.LLAVA, _llava_next, _llava_next_processor)
LLAVA_ONEVISION = Family(chat.LLAVA_ONEVISION, _llava_onevision, _llava_onevision_processor)
