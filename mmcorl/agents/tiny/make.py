"""Writing one tiny model to disk."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import GenerationConfig

from mmcorl.agents.tiny.families import FAMILIES
from mmcorl.agents.tiny.recipe import TinySizes
from mmcorl.errors import MmcorlError


def make_tiny(family: str, folder: Path, *, seed: int = 0, sizes: TinySizes | None = None) -> Path:
    """Write a tiny model of `family` with random weights to `folder`, ready for `from_pretrained`, and return it.

    The folder holds the float32 model, its processor (or tokenizer, for a text-only family) and a generation config
    with the family's stop tokens. The same `family`, `seed` and `sizes` give the same weights; the caller's random
    state is left as it was. Raises MmcorlError for a family that is not in `FAMILIES`.
    """
    if family not in FAMILIES:
        raise MmcorlError(f"no tiny model of family {family!r}; known are {', '.join(FAMILIES)}")
    recipe = FAMILIES[family]
    sizes = sizes or TinySizes()
    tokenizer = recipe.chat.tokenizer()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = recipe.model(sizes, tokenizer).float()
    model.generation_config = GenerationConfig(
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.convert_tokens_to_ids(list(recipe.chat.stops)),
        pad_token_id=tokenizer.pad_token_id,
    )
    model.save_pretrained(folder)
    (recipe.processor(sizes, tokenizer) if recipe.processor else tokenizer).save_pretrained(folder)
    return folder
