"""Gemma 3."""

from __future__ import annotations

import torch
from transformers import (
    Gemma3Config,
    Gemma3ForConditionalGeneration,
    Gemma3ImageProcessor,
    Gemma3Processor,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    ProcessorMixin,
)

from mmcorl.agents.tiny import chat
from mmcorl.agents.tiny.recipe import INITIALIZER_RANGE, PIXELS, Family, TinySizes, text_settings, token_id


def _gemma3(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    config = Gemma3Config(
        text_config={
            **text_settings(sizes, tokenizer),
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
        boi_token_index=token_id(tokenizer, "<start_of_image>"),
        eoi_token_index=token_id(tokenizer, "<end_of_image>"),
        image_token_index=token_id(tokenizer, "<image_soft_token>"),
        initializer_range=INITIALIZER_RANGE,
        tie_word_embeddings=True,
    )
    model = Gemma3ForConditionalGeneration(config)
    # transformers starts this matrix at zero and expects a checkpoint to fill it; left so, images would be invisible
    # and the norm behind it would multiply gradients by a thousand.
    projection = model.model.multi_modal_projector.mm_input_projection_weight
    torch.nn.init.normal_(projection, std=sizes.vision_hidden**-0.5)
    return model


def _gemma3_processor(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> ProcessorMixin:
    images = Gemma3ImageProcessor(size={"height": sizes.image_size, "width": sizes.image_size}, **PIXELS)
    return Gemma3Processor(
        images, tokenizer, chat_template=tokenizer.chat_template, image_seq_length=sizes.image_tokens
    )


GEMMA3 = Family(chat.GEMMA3, _gemma3, _gemma3_processor)
