"""Which engine samples for an agent."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import PreTrainedModel

from mmcorl.agents.backbones import Backbone
from mmcorl.agents.engines import Engine
from mmcorl.agents.engines.transformers import TransformersEngine
from mmcorl.config import AgentConfig, ImagesConfig, RolloutsConfig


def open_engine(
    name: str,
    agent: AgentConfig,
    rollouts: RolloutsConfig,
    model: PreTrainedModel,
    backbone: Backbone,
    images: ImagesConfig,
    stop_ids: Sequence[int],
) -> Engine:
    """The engine that the configuration asks for. Nothing is started before it is used."""
    banned = sorted(backbone.placeholder_ids())
    if rollouts.engine == "transformers":
        return TransformersEngine(
            model,
            stop_ids=stop_ids,
            banned=banned,
            batch_tokens=rollouts.batch_tokens,
            autocast=torch.bfloat16 if agent.dtype == "bfloat16" else None,
        )
    from mmcorl.agents.engines.vllm import VLLMEngine, VLLMModel
    from mmcorl.agents.engines.vllm_server import VLLMServerEngine

    served = VLLMModel(
        source=agent.model,
        model=model,
        trained=not agent.frozen,
        sees_images=backbone.sees_images,
        stop_ids=stop_ids,
        banned=banned,
        dtype=agent.dtype,
        max_length=rollouts.max_prompt_tokens + rollouts.max_tokens,
        image_options=backbone.processor_options(images).get("images_kwargs", {}),
        settings=rollouts.vllm,
        rank=agent.lora.rank if agent.lora is not None and rollouts.vllm.adapters == "apart" else None,
    )
    if agent.server is None:
        return VLLMEngine(served)
    return VLLMServerEngine(name, served, agent.server, agent.server_devices)
