"""InternVL, with either of two text parts."""

from __future__ import annotations

from collections.abc import Callable

from transformers import (
    GotOcr2ImageProcessor,
    InternVLConfig,
    InternVLForConditionalGeneration,
    InternVLProcessor,
    InternVLVideoProcessor,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    ProcessorMixin,
)

from mmcorl.agents.tiny import chat
from mmcorl.agents.tiny.recipe import INITIALIZER_RANGE, PIXELS, Family, TinySizes, text_settings, token_id


def _internvl(text_type: str) -> Callable[[TinySizes, PreTrainedTokenizerFast], PreTrainedModel]:
    def build(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
        config = InternVLConfig(
            text_config={"model_type": text_type, **text_settings(sizes, tokenizer)},
            vision_config={
                "hidden_size": sizes.vision_hidden,
                "num_hidden_layers": sizes.vision_layers,
                "num_attention_heads": sizes.vision_heads,
                "intermediate_size": 2 * sizes.vision_hidden,
                "image_size": [sizes.image_size] * 2,
                "norm_type": "rms_norm",
                "use_qk_norm": True,
                "layer_scale_init_value": 0.5,
                "initializer_range": INITIALIZER_RANGE,
            },
            image_token_id=token_id(tokenizer, "<IMG_CONTEXT>"),
            image_seq_length=sizes.image_tokens,
            tie_word_embeddings=True,
        )
        return InternVLForConditionalGeneration(config)

    return build


def _internvl_processor(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> ProcessorMixin:
    size = {"height": sizes.image_size, "width": sizes.image_size}
    images = GotOcr2ImageProcessor(size=size, crop_to_patches=False, min_patches=1, max_patches=12, **PIXELS)
    return InternVLProcessor(
        images,
        tokenizer,
        InternVLVideoProcessor(size=size, **PIXELS),
        image_seq_length=sizes.image_tokens,
        chat_template=tokenizer.chat_template,
    )


INTERNVL = Family(chat.INTERNVL, _internvl("llama"), _internvl_processor)
INTERNVL_QWEN2 = Family(chat.INTERNVL, _internvl("qwen2"), _internvl_processor)
