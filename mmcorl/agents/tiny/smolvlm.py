"""SmolVLM, and Idefics3 from which it comes."""

from __future__ import annotations

from typing import Any

from transformers import (
    Idefics3Config,
    Idefics3ForConditionalGeneration,
    Idefics3ImageProcessor,
    Idefics3Processor,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    ProcessorMixin,
    SmolVLMConfig,
    SmolVLMForConditionalGeneration,
    SmolVLMImageProcessor,
    SmolVLMProcessor,
    SmolVLMVideoProcessor,
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


def _settings(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> dict[str, Any]:
    return {
        "text_config": {"model_type": "llama", **text_settings(sizes, tokenizer)},
        "vision_config": vision_settings(sizes, 14),
        "image_token_id": token_id(tokenizer, "<image>"),
        "scale_factor": 2,
        "tie_word_embeddings": True,
    }


def _smolvlm(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    return SmolVLMForConditionalGeneration(SmolVLMConfig(**_settings(sizes, tokenizer)))


def _idefics3(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    return Idefics3ForConditionalGeneration(Idefics3Config(**_settings(sizes, tokenizer)))


def _pixels(sizes: TinySizes) -> dict[str, Any]:
    """Images are enlarged to three squares along their longer side, and then cut."""
    sides = {
        "size": {"longest_edge": 3 * sizes.image_size},
        "max_image_size": {"longest_edge": sizes.image_size},
    }
    return {**sides, **PIXELS}


def _smolvlm_processor(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> ProcessorMixin:
    return SmolVLMProcessor(
        SmolVLMImageProcessor(**_pixels(sizes)),
        tokenizer,
        SmolVLMVideoProcessor(**_pixels(sizes)),
        image_seq_len=sizes.image_tokens,
        chat_template=chat.SMOLVLM.template,
    )


def _idefics3_processor(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> ProcessorMixin:
    return Idefics3Processor(
        Idefics3ImageProcessor(**_pixels(sizes)),
        tokenizer,
        image_seq_len=sizes.image_tokens,
        chat_template=chat.SMOLVLM.template,
    )


SMOLVLM = Family(chat.SMOLVLM, _smolvlm, _smolvlm_processor)
IDEFICS3 = Family(chat.SMOLVLM, _idefics3, _idefics3_processor)
