"""What a process holds whether its batches are large or small: weights, optimiser state, second copies."""

from __future__ import annotations

from mmcorl.agents.adapter_files import base_of
from mmcorl.agents.engines.vllm import CPU_CACHE_BYTES
from mmcorl.config import AgentConfig, Config
from mmcorl.planning import memory
from mmcorl.planning.items import Item
from mmcorl.planning.memory import FLOAT32
from mmcorl.planning.shapes import ModelShape
from mmcorl.planning.sharded import Shares, shares_of

_CONTEXT = 640 << 20
"""What CUDA, its libraries and their workspaces take in every process."""


def held(config: Config, agent: AgentConfig, shape: ModelShape, device_bytes: int | None) -> list[Item]:
    """All but the gradients, which come and go with the batches."""
    lies = shares(config, agent, shape)
    # On a GPU AdamW takes all weights of a group at once, and holds the root of their second moments.
    together = device_bytes is not None and config.optimizer.kind == "adamw"
    stepping = lies.state + lies.stepping + (lies.state // 2 if together else 0)
    return [
        Item.always("CUDA and its libraries", 0 if device_bytes is None else _CONTEXT),
        Item.always("weights", lies.weights),
        Item.always("second copy of the weights", _second_copy(config, agent, shape)),
        _vllm(config, agent, shape, device_bytes),
        Item("optimiser state", lies.state, lies.state, lies.state, stepping),
    ]


def shares(config: Config, agent: AgentConfig, shape: ModelShape, *, whole: bool = False) -> Shares:
    """What one rank holds of weights, gradients and optimiser state; for `whole` see `shares_of`."""
    n_trained = trained(agent, shape)
    state = memory.adam_state(n_trained, eight_bit=config.optimizer.kind == "adamw_8bit")
    return shares_of(agent, shape, own_weights(agent, shape), n_trained, state, width_of(agent), whole)


def trained(agent: AgentConfig, shape: ModelShape) -> int:
    """Parameters that are trained."""
    if agent.frozen:
        return 0
    if agent.lora is not None:
        return _adapters(agent, shape)
    return sum(count for part, count in shape.parameters.items() if part not in agent.freeze)


def own_weights(agent: AgentConfig, shape: ModelShape) -> int:
    """Bytes of all weights: float32, but with adapters only these, and the model's own in `dtype` or quantised.

    Four bits a number come with a scale for every 64, itself stored in 8 bits: 0.127 bits a number (Dettmers et al.
    2023).
    """
    if agent.lora is None:
        return shape.total * FLOAT32
    matrices = sum(m.inputs * m.outputs for m in shape.matrices if m.part == "text")
    bits = {None: 8 * width_of(agent), "8bit": 8, "4bit": 4.127}[agent.quantize]
    rest = (shape.total - matrices) * width_of(agent)
    return round(matrices * bits / 8) + rest + _adapters(agent, shape) * FLOAT32


def width_of(agent: AgentConfig) -> int:
    """Bytes of a number in the forward pass."""
    return 2 if agent.dtype == "bfloat16" else FLOAT32


def _adapters(agent: AgentConfig, shape: ModelShape) -> int:
    """Parameters of the adapters: a matrix of `rank` columns and one of `rank` rows beside each (Hu et al. 2021)."""
    lora = agent.lora
    assert lora is not None
    chosen = (
        m for m in shape.matrices if m.part in lora.parts and (lora.targets is None or m.name in lora.targets)
    )
    return sum(lora.rank * (m.inputs + m.outputs) for m in chosen)


def _second_copy(config: Config, agent: AgentConfig, shape: ModelShape) -> int:
    """The teacher, which shares what is not trained, or the reference of the KL term: whole on every rank."""
    if agent.frozen:
        return 0
    if config.reward.rule == "teacher_vote":
        return trained(agent, shape) * FLOAT32
    # With new adapters the reference is the model without them.
    needed = config.loss.beta > 0 and (agent.lora is None or base_of(agent.model) is not None)
    return own_weights(agent, shape) if needed else 0


def _vllm(config: Config, agent: AgentConfig, shape: ModelShape, device_bytes: int | None) -> Item:
    """vLLM in the agent's own process: its share of the device, or on a CPU its weights and a cache."""
    name, settings = "vLLM: weights and cache", config.rollouts.vllm
    if config.rollouts.engine != "vllm" or agent.server is not None:
        return Item(name)
    weights = shape.total * width_of(agent)
    if device_bytes is None:
        return Item.always(name, weights + CPU_CACHE_BYTES)
    share = max(round(settings.memory_share * device_bytes), weights)  # below that it does not start
    return Item(name, share) if settings.sleep else Item.always(name, share)
