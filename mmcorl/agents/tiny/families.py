"""The families that a tiny model can be made of, by name."""

from __future__ import annotations

from mmcorl.agents.tiny import gemma3, glm4v, internvl, llava, minicpmv, mistral3, qwen_vl, smolvlm, text
from mmcorl.agents.tiny.recipe import Family

FAMILIES: dict[str, Family] = {
    "qwen2_vl": qwen_vl.QWEN2_VL,
    "qwen2_5_vl": qwen_vl.QWEN2_5_VL,
    "qwen3_vl": qwen_vl.QWEN3_VL,
    "internvl": internvl.INTERNVL,
    "internvl_qwen2": internvl.INTERNVL_QWEN2,
    "gemma3": gemma3.GEMMA3,
    "llava": llava.LLAVA,
    "llava_next": llava.LLAVA_NEXT,
    "llava_onevision": llava.LLAVA_ONEVISION,
    "smolvlm": smolvlm.SMOLVLM,
    "idefics3": smolvlm.IDEFICS3,
    "glm4v": glm4v.GLM4V,
    "minicpmv4_6": minicpmv.MINICPMV4_6,
    "minicpmv4_7": minicpmv.MINICPMV4_7,
    "mistral3": mistral3.MISTRAL3,
    "qwen2": text.QWEN2,
    "qwen3": text.QWEN3,
    "llama": text.LLAMA,
}
"""Every family `make_tiny` can make. `internvl` has a Llama text part, `internvl_qwen2` a Qwen2 one."""
