"""What all recipes of tiny models share: their sizes, the settings of a text part, and what a recipe is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerFast, ProcessorMixin

from mmcorl.agents.tiny.chat import ChatFormat

# A grey background becomes zero and full colours about one. With the real families' constants and a white
# background models of this size do not learn to see: the constant offset swamps the patch embedding.
PIXELS: dict[str, Any] = {"image_mean": [0.5] * 3, "image_std": [0.25] * 3}
INITIALIZER_RANGE = 0.05
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


def text_settings(sizes: TinySizes, tokenizer: PreTrainedTokenizerFast) -> dict[str, Any]:
    """The settings that every text part shares. Embeddings are padded to a round number, as in the real families."""
    return {
        "vocab_size": -(-len(tokenizer) // _VOCABULARY_MULTIPLE) * _VOCABULARY_MULTIPLE,
        "hidden_size": sizes.hidden,
        "intermediate_size": sizes.feed_forward,
        "num_hidden_layers": sizes.layers,
        "num_attention_heads": sizes.heads,
        "num_key_value_heads": sizes.kv_heads,
        "max_position_embeddings": 32768,
        "initializer_range": INITIALIZER_RANGE,
        "tie_word_embeddings": True,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }


def vision_settings(sizes: TinySizes, patch: int) -> dict[str, Any]:
    """The settings that towers of the CLIP kind share; `patch` is in pixels."""
    return {
        "hidden_size": sizes.vision_hidden,
        "intermediate_size": 2 * sizes.vision_hidden,
        "num_hidden_layers": sizes.vision_layers,
        "num_attention_heads": sizes.vision_heads,
        "image_size": sizes.image_size,
        "patch_size": patch,
        "initializer_range": INITIALIZER_RANGE,
    }


def rope_on_three_axes(sizes: TinySizes, theta: float) -> dict[str, Any]:
    """Positions of time, height and width, whose frequencies sum to half the head size, time taking the rest."""
    side = sizes.head_size // 6
    section = [sizes.head_size // 2 - 2 * side, side, side]
    return {"rope_type": "default", "rope_theta": theta, "mrope_section": section}


def token_id(tokenizer: PreTrainedTokenizerFast, token: str) -> int:
    """The id of a special token."""
    found = tokenizer.convert_tokens_to_ids(token)
    assert isinstance(found, int)
    return found
