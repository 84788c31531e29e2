"""Text LLMs: Qwen2, Qwen2.5, Qwen3, Llama and any other causal language model of transformers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer

from mmcorl.agents.backbones.base import Backbone


class Text(Backbone):
    """No images: the processor is the tokenizer alone."""

    auto_model = AutoModelForCausalLM
    sees_images = False
    vision_inputs = ()
    vision_names = ()
    projector_names = ()

    def load_processor(self, model: str | Path) -> Any:
        return AutoTokenizer.from_pretrained(model)

    def placeholder_ids(self) -> frozenset[int]:
        return frozenset()

    def feature_rows(self, vision: Mapping[str, Tensor]) -> int:
        return 0
