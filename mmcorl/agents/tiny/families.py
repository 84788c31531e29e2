"""The architectures: for each family its model at tiny size, its chat format and its image processor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from transformers import (
    Gemma3Config,
    Gemma3ForConditionalGeneration,
    Gemma3ImageProcessor,
    Gemma3Processor,
    GotOcr2ImageProcessor,
    InternVLConfig,
    InternVLForConditionalGeneration,
    InternVLProcessor,
    InternVLVideoProcessor,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    ProcessorMixin,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2_5_VLProcessor,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen2VLImageProcessor,
    Qwen2VLVideoProcessor,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
    Qwen3VLProcessor,
    Qwen3VLVideoProcessor,
)

from mmcorl.agents.tiny import chat
from mmcorl.agents.tiny.chat import ChatFormat

# A grey background becomes zero and full colours about one. With the real families' constants and a white
# background models of this size do not learn to see: the constant offset swamps the patch embedding.
_PIXELS: dict[str, Any] = {"image_mean": [0.5] * 3, "image_std": [0.25] * 3}
_INITIALIZER_RANGE = 0.05
_VOCABULARY_MULTIPLE = 64


@dataclass(frozen=True)
class TinySizes:
    """Sizes of a tiny model. `hidden / heads` is the head size; rollout engines on a CPU want at least 32.

    `image_size` is the side in pixels of the square that fixed-size image towers see; a multiple of 28.
    """

    hidden: int = 128
    layers: int = 2
    heads: int = 4
    kv_heads: int = 2
    feed_forward: int = 256
    vision_hidden: int = 48
    vision_layers: int = 2
    vision_heads: int = 4
    image_size: int = 84

    @property
    def head_size(self) -> int:
        return self.hidden // self.heads

    @property
    def image_tokens(self) -> int:
        """Tokens of an image of `image_size`: patches of 14 pixels, merged two by two."""
        return (self.image_size // 28) ** 2


@dataclass(frozen=True)
class Family:
    """How to make one family: its chat format, its model, and the processor around a tokenizer (None: text only)."""

    chat: ChatFormat
    model: Callable[[TinySizes, PreTrainedTokenizerFast], PreTrainedModel]
    processor: Callable[[TinySizes, PreTrainedTokenizerFast], ProcessorMixin] | None = None


def _text(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> dict[str, Any]:
    """The settings that every text part shares. Embeddings are padded to a round number, as in the real families."""
    return {
        "vocab_size": -(-len(tokenizer) // _VOCABULARY_MULTIPLE) * _VOCABULARY_MULTIPLE,
        "hidden_size": sizes.hidden,
        "intermediate_size": sizes.feed_forward,
        "num_hidden_layers": sizes.layers,
        "num_attention_heads": sizes.heads,
        "num_key_value_heads": sizes.kv_heads,
        "max_position_embeddings": 32768,
        "initializer_range": _INITIALIZER_RANGE,
        "tie_word_embeddings": True,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }


def _id(tokenizer: PreTrainedTokenizerFast, token: str) -> int:
    token_id = tokenizer.convert_tokens_to_ids(token)
    assert isinstance(token_id, int)
    return token_id


def _qwen2(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    return Qwen2ForCausalLM(Qwen2Config(**_text(sizes, tokenizer)))


def _qwen3(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    return Qwen3ForCausalLM(Qwen3Config(head_dim=sizes.head_size, **_text(sizes, tokenizer)))


def _llama(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    return LlamaForCausalLM(LlamaConfig(**_text(sizes, tokenizer)))


def _qwen_vl_ids(tokenizer: PreTrainedTokenizerFast) -> dict[str, Any]:
    return {
        "image_token_id": _id(tokenizer, "<|image_pad|>"),
        "video_token_id": _id(tokenizer, "<|video_pad|>"),
        "vision_start_token_id": _id(tokenizer, "<|vision_start|>"),
        "vision_end_token_id": _id(tokenizer, "<|vision_end|>"),
    }


def _mrope_section(sizes: TinySizes) -> list[int]:
    """Frequencies for time, height and width; they sum to half the head size, time taking the rest."""
    side = sizes.head_size // 6
    return [sizes.head_size // 2 - 2 * side, side, side]


def _qwen2_5_vl(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    config = Qwen2_5_VLConfig(
        text_config={
            **_text(sizes, tokenizer),
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 1e6,
                "mrope_section": _mrope_section(sizes),
            },
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
            "initializer_range": _INITIALIZER_RANGE,
        },
        tie_word_embeddings=True,
        **_qwen_vl_ids(tokenizer),
    )
    return Qwen2_5_VLForConditionalGeneration(config)


def _qwen3_vl(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    config = Qwen3VLConfig(
        text_config={
            **_text(sizes, tokenizer),
            "head_dim": sizes.head_size,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 5e6,
                "mrope_section": _mrope_section(sizes),
                "mrope_interleaved": True,
            },
        },
        vision_config={
            "depth": sizes.vision_layers,
            "hidden_size": sizes.vision_hidden,
            "intermediate_size": 2 * sizes.vision_hidden,
            "num_heads": sizes.vision_heads,
            "out_hidden_size": sizes.hidden,
            "num_position_embeddings": 144,
            "deepstack_visual_indexes": [0],
            "initializer_range": _INITIALIZER_RANGE,
        },
        tie_word_embeddings=True,
        **_qwen_vl_ids(tokenizer),
    )
    return Qwen3VLForConditionalGeneration(config)


def _internvl(text_type: str) -> Callable[[TinySizes, PreTrainedTokenizerFast], PreTrainedModel]:
    def build(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
        config = InternVLConfig(
            text_config={"model_type": text_type, **_text(sizes, tokenizer)},
            vision_config={
                "hidden_size": sizes.vision_hidden,
                "num_hidden_layers": sizes.vision_layers,
                "num_attention_heads": sizes.vision_heads,
                "intermediate_size": 2 * sizes.vision_hidden,
                "image_size": [sizes.image_size] * 2,
                "norm_type": "rms_norm",
                "use_qk_norm": True,
                "layer_scale_init_value": 0.5,
                "initializer_range": _INITIALIZER_RANGE,
            },
            image_token_id=_id(tokenizer, "<IMG_CONTEXT>"),
            image_seq_length=sizes.image_tokens,
            tie_word_embeddings=True,
        )
        return InternVLForConditionalGeneration(config)

    return build


def _gemma3(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    config = Gemma3Config(
        text_config={
            **_text(sizes, tokenizer),
            "head_dim": sizes.head_size,
            "query_pre_attn_scalar": sizes.head_size,
            "sliding_window": 512,
            # Every last one of a block sees everything, the others a window, as in the real pattern of six.
            "layer_types": ["sliding_attention"] * (sizes.layers - 1) + ["full_attention"],
        },
        vision_config={
            "model_type": "siglip_vision_model",
            "hidden_size": sizes.vision_hidden,
            "intermediate_size": 2 * sizes.vision_hidden,
            "num_hidden_layers": sizes.vision_layers,
            "num_attention_heads": sizes.vision_heads,
            "image_size": sizes.image_size,
            "patch_size": 14,
            "vision_use_head": False,
        },
        mm_tokens_per_image=sizes.image_tokens,
        boi_token_index=_id(tokenizer, "<start_of_image>"),
        eoi_token_index=_id(tokenizer, "<end_of_image>"),
        image_token_index=_id(tokenizer, "<image_soft_token>"),
        initializer_range=_INITIALIZER_RANGE,
        tie_word_embeddings=True,
    )
    model = Gemma3ForConditionalGeneration(config)
    # transformers starts this matrix at zero and expects a checkpoint to fill it; left so, images would be invisible
    # and the norm behind it would multiply gradients by a thousand.
    projection = model.model.multi_modal_projector.mm_input_projection_weight
    torch.nn.init.normal_(projection, std=sizes.vision_hidden**-0.5)
    return model


_QWEN_SIZE = {"shortest_edge": 56 * 56, "longest_edge": 16384 * 28 * 28}


def _qwen2_5_vl_processor(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> ProcessorMixin:
    images = Qwen2VLImageProcessor(size=_QWEN_SIZE, **_PIXELS)
    videos = Qwen2VLVideoProcessor(size=_QWEN_SIZE, **_PIXELS)
    return Qwen2_5_VLProcessor(images, tokenizer, videos, chat_template=tokenizer.chat_template)


def _qwen3_vl_processor(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> ProcessorMixin:
    images = Qwen2VLImageProcessor(size=_QWEN_SIZE, patch_size=16, **_PIXELS)
    videos = Qwen3VLVideoProcessor(size=_QWEN_SIZE, patch_size=16, **_PIXELS)
    return Qwen3VLProcessor(images, tokenizer, videos, chat_template=tokenizer.chat_template)


def _internvl_processor(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> ProcessorMixin:
    size = {"height": sizes.image_size, "width": sizes.image_size}
    images = GotOcr2ImageProcessor(size=size, crop_to_patches=False, min_patches=1, max_patches=12, **_PIXELS)
    return InternVLProcessor(
        images,
        tokenizer,
        InternVLVideoProcessor(size=size, **_PIXELS),
        image_seq_length=sizes.image_tokens,
        chat_template=tokenizer.chat_template,
    )


def _gemma3_processor(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> ProcessorMixin:
    images = Gemma3ImageProcessor(size={"height": sizes.image_size, "width": sizes.image_size}, **_PIXELS)
    return Gemma3Processor(
        images, tokenizer, chat_template=tokenizer.chat_template, image_seq_length=sizes.image_tokens
    )


FAMILIES: dict[str, Family] = {
    "qwen2_5_vl": Family(chat.QWEN2_5_VL, _qwen2_5_vl, _qwen2_5_vl_processor),
    "qwen3_vl": Family(chat.QWEN3_VL, _qwen3_vl, _qwen3_vl_processor),
    "internvl": Family(chat.INTERNVL, _internvl("llama"), _internvl_processor),
    "internvl_qwen2": Family(chat.INTERNVL, _internvl("qwen2"), _internvl_processor),
    "gemma3": Family(chat.GEMMA3, _gemma3, _gemma3_processor),
    "qwen2": Family(chat.QWEN2, _qwen2),
    "qwen3": Family(chat.QWEN3, _qwen3),
    "llama": Family(chat.LLAMA, _llama),
}
"""Every family `make_tiny` can make, by name. `internvl` has a Llama text part, `internvl_qwen2` a Qwen2 one."""
