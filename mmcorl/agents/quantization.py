"""Weights that are not trained, in 4 or 8 bits (bitsandbytes).

The linear layers of the text part are quantised. The output head, the vision tower and the projector stay in the
agent's `dtype`: they are a small share of the memory, and rounding them costs accuracy out of proportion.
"""

from __future__ import annotations

import logging
from typing import Any

import torch
from torch import Tensor
from torch.nn import Linear, Module
from transformers import BitsAndBytesConfig

from mmcorl.agents.backbones import Backbone
from mmcorl.agents.extras import require_extra
from mmcorl.agents.whole import whole
from mmcorl.config import AgentConfig


def loading_options(
    name: str, agent: AgentConfig, backbone: Backbone, device: torch.device
) -> dict[str, Any]:
    """How the weights of agent `name` are to be loaded, as `from_pretrained` takes it.

    Weights that are trained are in float32; those that adapters leave as they are in the agent's `dtype`, or quantised.
    Raises MmcorlError where bitsandbytes is missing.
    """
    dtype = getattr(torch, agent.dtype) if agent.lora is not None else torch.float32
    if agent.quantize is None:
        return {"dtype": dtype}
    require_extra("bitsandbytes", f"agents.{name}.quantize={agent.quantize}", "lora")
    # In 8 bits every layer would say at every forward, that is at every token, that it casts what it reads.
    logging.getLogger("bitsandbytes.autograd").setLevel(logging.ERROR)
    quantization = BitsAndBytesConfig(
        load_in_4bit=agent.quantize == "4bit",
        load_in_8bit=agent.quantize == "8bit",
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=dtype,
        llm_int8_skip_modules=_kept_whole(backbone),
    )
    return {"dtype": dtype, "quantization_config": quantization, "device_map": {"": device}}


def keep_trainable(model: Module) -> None:
    """On CPUs with AVX-512 bitsandbytes packs 4-bit weights when they first sample, and packed ones give no gradient."""
    for module in model.modules():
        if hasattr(module, "support_avx512bf16_for_cpu"):
            module.support_avx512bf16_for_cpu = False  # pyright: ignore[reportArgumentType]


def is_quantized(module: Module) -> bool:
    """Whether a layer holds its weight in 4 or 8 bits."""
    return type(module).__module__.startswith("bitsandbytes.")  # without importing it where it is not used


def whole_weight(module: Module) -> Tensor:
    """A layer's weight, out of its 4 or 8 bits where it is in them, and whole where it lies over ranks."""
    if not is_quantized(module):
        return whole(module.weight)  # pyright: ignore[reportArgumentType]
    from peft.utils.integrations import dequantize_module_weight

    return dequantize_module_weight(module)


def _kept_whole(backbone: Backbone) -> list[str]:
    """Names of the linear layers that are not quantised, from a model without memory."""
    with torch.device("meta"):
        model = backbone.auto_model.from_config(backbone.config)
    head = model.get_output_embeddings()
    return [
        name
        for name, module in model.named_modules()
        if isinstance(module, Linear) and (module is head or backbone.part_of(f"{name}.weight") != "text")
    ]
