"""Text models."""

from __future__ import annotations

from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from mmcorl.agents.tiny import chat
from mmcorl.agents.tiny.recipe import Family, TinySizes, text_settings


def _qwen2(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    return Qwen2ForCausalLM(Qwen2Config(**text_settings(sizes, tokenizer)))


def _qwen3(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    return Qwen3ForCausalLM(Qwen3Config(head_dim=sizes.head_size, **text_settings(sizes, tokenizer)))


def _llama(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    return LlamaForCausalLM(LlamaConfig(**text_settings(sizes, tokenizer)))


QWEN2 = Family(chat.QWEN2, _qwen2)
QWEN3 = Family(chat.QWEN3, _qwen3)
LLAMA = Family(chat.LLAMA, _llama)
