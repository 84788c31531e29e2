"""MiniCPM-V 4.6 and 4.7. Their features are merged twice, so patches here are of 7 pixels."""

from __future__ import annotations

from typing import Any

from transformers import (
    MiniCPMV4_6Config,
    MiniCPMV4_6ForConditionalGeneration,
    MiniCPMV4_6ImageProcessor,
    MiniCPMV4_6Processor,
    MiniCPMV4_6VideoProcessor,
    MiniCPMV4_7Config,
    MiniCPMV4_7ForConditionalGeneration,
    MiniCPMV4_7Processor,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    ProcessorMixin,
)

from mmcorl.agents.tiny import chat
from mmcorl.agents.tiny.recipe import (
    PIXELS,
    Family,
    TinySizes,
    rope_on_three_axes,
    text_settings,
    token_id,
    vision_settings,
)

_PATCH = 7


def _settings(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> dict[str, Any]:
    return {
        "text_config": {
            "model_type": "qwen3_5_text",
            **text_settings(sizes, tokenizer),
            "head_dim": sizes.head_size,
            # As in the real model the last of a block has attention, those before it carry state.
            "layer_types": ["linear_attention"] * (sizes.layers - 1) + ["full_attention"],
            "linear_num_key_heads": sizes.kv_heads,
            "linear_num_value_heads": sizes.heads,
            "linear_key_head_dim": sizes.head_size,
            "linear_value_head_dim": sizes.head_size,
            "rope_parameters": {
                **rope_on_three_axes(sizes, 1e6),
                "partial_rotary_factor": 1.0,
                "mrope_interleaved": True,
            },
        },
        "vision_config": vision_settings(sizes, _PATCH),
        "insert_layer_id": 0,
        "image_size": sizes.image_size,
        "image_token_id": token_id(tokenizer, "<|image_pad|>"),
        "video_token_id": token_id(tokenizer, "<|video_pad|>"),
        "tie_word_embeddings": True,
    }


def _minicpmv4_6(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    return MiniCPMV4_6ForConditionalGeneration(MiniCPMV4_6Config(**_settings(sizes, tokenizer)))


def _minicpmv4_7(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    [newline] = tokenizer.encode("\n", add_special_tokens=False)
    config = MiniCPMV4_7Config(
        **_settings(sizes, tokenizer),
        image_start_id=token_id(tokenizer, "<image>"),
        image_end_id=token_id(tokenizer, "</image>"),
        slice_start_id=token_id(tokenizer, "<slice>"),
        slice_end_id=token_id(tokenizer, "</slice>"),
        newline_id=newline,
    )
    return MiniCPMV4_7ForConditionalGeneration(config)


def _parts(sizes: TinySizes) -> dict[str, Any]:
    pixels = {"scale_resolution": sizes.image_size, "patch_size": _PATCH, **PIXELS}
    return {
        "image_processor": MiniCPMV4_6ImageProcessor(**pixels),
        "video_processor": MiniCPMV4_6VideoProcessor(**pixels),
    }


def _minicpmv4_6_processor(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> ProcessorMixin:
    return MiniCPMV4_6Processor(tokenizer=tokenizer, chat_template=tokenizer.chat_template, **_parts(sizes))


def _minicpmv4_7_processor(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> ProcessorMixin:
    return MiniCPMV4_7Processor(tokenizer=tokenizer, chat_template=tokenizer.chat_template, **_parts(sizes))


MINICPMV4_6 = Family(chat.MINICPMV, _minicpmv4_6, _minicpmv4_6_processor)
MINICPMV4_7 = Family(chat.MINICPMV, _minicpmv4_7, _minicpmv4_7_processor)
