"""Which settings to change where a run does not fit, in order of least harm, and what each of them gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from mmcorl.config import AgentConfig, Config, LoraConfig
from mmcorl.config.consistency import contradictions

_WORTH = 0.01
"""A change that saves less than this share is left out."""


@dataclass(frozen=True)
class Change:
    """Settings, as on the command line, and what they cost beside memory."""

    settings: str
    cost: str
    config: Config


def cheapest_changes(
    config: Config, name: str, peak: Callable[[Config], int], limit: int
) -> list[tuple[Change, int]]:
    """Changes for agent `name`, one on top of the other, with the peak in bytes after each.

    They end where the peak is within `limit`, or none is left. Those that hardly save, or contradict other settings,
    are left out.
    """
    taken: list[tuple[Change, int]] = []
    now = peak(config)
    for changes in _CHANGES:
        for change in changes(config, name):
            if now <= limit:
                return taken
            then = peak(change.config)
            if then < now * (1 - _WORTH) and not contradictions(change.config):
                taken.append((change, then))
                config, now = change.config, then
    return taken


def _agent_change(config: Config, name: str, cost: str, **values: Any) -> Change:
    agent = AgentConfig.model_validate(config.agents[name].model_dump() | values)
    shown = " ".join(f"agents.{name}.{key}={_shown(value)}" for key, value in values.items())
    return Change(shown, cost, config.model_copy(update={"agents": {**config.agents, name: agent}}))


def _section_change(config: Config, cost: str, section: str, key: str, value: Any) -> Change:
    changed = getattr(config, section).model_copy(update={key: value})
    return Change(f"{section}.{key}={_shown(value)}", cost, config.model_copy(update={section: changed}))


def _vllm_change(config: Config, cost: str, key: str, value: Any) -> Change:
    vllm = config.rollouts.vllm.model_copy(update={key: value})
    change = _section_change(config, cost, "rollouts", "vllm", vllm)
    return replace(change, settings=f"rollouts.vllm.{key}={_shown(value)}")


def _shown(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case tuple():
            return f"[{','.join(value)}]"
        case LoraConfig():
            return f"{{rank:{value.rank}}}"
        case _:
            return str(value)


def _checkpointing(config: Config, name: str) -> Iterator[Change]:
    if not config.agents[name].gradient_checkpointing:
        yield _agent_change(config, name, "a third more time in the update", gradient_checkpointing=True)


def _smaller_batches(config: Config, name: str) -> Iterator[Change]:
    """Half, a quarter, ... down to one group in a micro-batch."""
    rollouts, tokens = config.rollouts, config.agents[name].batch_tokens
    row = rollouts.max_prompt_tokens + rollouts.per_problem * rollouts.max_tokens
    while tokens > row:
        tokens = max(row, tokens // 2)
        change = _agent_change(config, name, "more micro-batches, the same update", batch_tokens=tokens)
        yield change
        config = change.config


def _smaller_rollouts(config: Config, name: str) -> Iterator[Change]:
    rollouts, tokens = config.rollouts, config.rollouts.batch_tokens
    row = (rollouts.votes or rollouts.per_problem) * (rollouts.max_prompt_tokens + rollouts.max_tokens)
    while rollouts.engine == "transformers" and tokens > row:
        tokens = max(row, tokens // 2)
        yield _section_change(config, "slower sampling", "rollouts", "batch_tokens", tokens)


def _less_for_vllm(config: Config, name: str) -> Iterator[Change]:
    if config.rollouts.engine != "vllm":
        return
    if config.rollouts.vllm.sleep == 0:
        change = _vllm_change(config, "vLLM wakes once a step", "sleep", 2)
        yield change
        config = change.config
    for share in (0.35, 0.3, 0.25):
        if share < config.rollouts.vllm.memory_share:
            yield _vllm_change(config, "fewer completions sampled at once", "memory_share", share)


def _turns(config: Config, name: str) -> Iterator[Change]:
    if not config.cohort.take_turns and len(config.agents) > 1:
        yield _section_change(
            config, "agents that share a device wait for each other", "cohort", "take_turns", True
        )


def _bfloat16(config: Config, name: str) -> Iterator[Change]:
    if config.agents[name].dtype == "float32":
        yield _agent_change(config, name, "log-probabilities are rounded", dtype="bfloat16")


def _sharding(config: Config, name: str) -> Iterator[Change]:
    if config.agents[name].ranks > 1 and config.agents[name].sharding in ("none", "zero2"):
        yield _agent_change(config, name, "ranks exchange weights at every layer", sharding="fsdp2")


def _offloading(config: Config, name: str) -> Iterator[Change]:
    agent = config.agents[name]
    if agent.sharding != "none" and not agent.offload:
        yield _agent_change(config, name, "the optimiser waits for the host's memory", offload=("optimizer",))


def _eight_bits(config: Config, name: str) -> Iterator[Change]:
    if config.optimizer.kind == "adamw":
        yield _section_change(config, "moments are rounded", "optimizer", "kind", "adamw_8bit")


def _freezing(config: Config, name: str) -> Iterator[Change]:
    agent = config.agents[name]
    if agent.lora is None and "vision" not in agent.freeze:
        yield _agent_change(config, name, "the vision tower learns nothing", freeze=(*agent.freeze, "vision"))


def _smaller_images(config: Config, name: str) -> Iterator[Change]:
    pixels = config.images.max_pixels // 2
    if pixels >= config.images.min_pixels:
        yield _section_change(config, "all agents see less detail", "images", "max_pixels", pixels)


def _adapters(config: Config, name: str) -> Iterator[Change]:
    if config.agents[name].lora is None and not config.agents[name].frozen:
        yield _agent_change(
            config, name, "adapters learn instead of the weights", lora=LoraConfig(), freeze=()
        )


def _quantised(config: Config, name: str) -> Iterator[Change]:
    if config.agents[name].lora is not None and config.agents[name].quantize is None:
        yield _agent_change(config, name, "weights are rounded to 4 bits", quantize="4bit")


_CHANGES: tuple[Callable[[Config, str], Iterator[Change]], ...] = (
    _checkpointing,
    _smaller_batches,
    _smaller_rollouts,
    _turns,
    _sharding,
    _less_for_vllm,
    _bfloat16,
    _eight_bits,
    _offloading,
    _freezing,
    _smaller_images,
    _adapters,
    _quantised,
)
