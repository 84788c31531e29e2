"""One row a vision-language family; text models share one backbone. `docs/add_a_backbone.md` walks through adding one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mmcorl.agents.backbones.base import Backbone
from mmcorl.agents.backbones.gemma3 import Gemma3
from mmcorl.agents.backbones.glm4v import Glm4V
from mmcorl.agents.backbones.internvl import InternVL
from mmcorl.agents.backbones.llava import Llava
from mmcorl.agents.backbones.llava_next import LlavaNext
from mmcorl.agents.backbones.llava_onevision import LlavaOneVision
from mmcorl.agents.backbones.minicpmv4_6 import MiniCPMV4_6
from mmcorl.agents.backbones.minicpmv4_7 import MiniCPMV4_7
from mmcorl.agents.backbones.mistral3 import Mistral3
from mmcorl.agents.backbones.qwen2_5_vl import Qwen2_5_VL
from mmcorl.agents.backbones.qwen3_vl import Qwen3_VL
from mmcorl.agents.backbones.smolvlm import SmolVLM
from mmcorl.agents.backbones.text import Text
from mmcorl.errors import MmcorlError

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

BACKBONES: dict[str, type[Backbone]] = {
    "qwen2_vl": Qwen2_5_VL,
    "qwen2_5_vl": Qwen2_5_VL,
    "qwen3_vl": Qwen3_VL,
    "internvl": InternVL,
    "gemma3": Gemma3,
    "llava": Llava,
    "llava_next": LlavaNext,
    "llava_onevision": LlavaOneVision,
    "smolvlm": SmolVLM,
    "idefics3": SmolVLM,
    "glm4v": Glm4V,
    "minicpmv4_6": MiniCPMV4_6,
    "minicpmv4_7": MiniCPMV4_7,
    "mistral3": Mistral3,
}


def find_backbone(config: PreTrainedConfig) -> Backbone | None:
    """The backbone of a model's configuration, by its `model_type`; a causal language model gets the text backbone."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    if config.model_type in BACKBONES:
        return BACKBONES[config.model_type](config)
    if config.model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and not hasattr(config, "vision_config"):
        return Text(config)
    return None


def backbone_for(config: PreTrainedConfig) -> Backbone:
    """As `find_backbone`. Raises MmcorlError for a model without one."""
    if backbone := find_backbone(config):
        return backbone
    raise MmcorlError(
        f"model type {config.model_type!r} has no backbone; known: {', '.join(BACKBONES)} and every causal text "
        "model. Set agents.*.model to one of these, or add a file and a row in mmcorl/agents/backbones: mmcorl-check "
        "MODEL says what to begin with"
    )
