"""The optimiser of an agent's weights: which one, and at which learning rate each part of the model learns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.nn import Parameter

from mmcorl.agents.agent import Agent
from mmcorl.agents.extras import require_extra
from mmcorl.config import OptimizerConfig, Part


def build_optimizer(
    parameters: Iterable[tuple[str, Parameter]], part_of: Callable[[str], Part], settings: OptimizerConfig
) -> torch.optim.Optimizer:
    """AdamW over the trained `parameters`, a group for each peak learning rate, which is the group's `peak`.

    `adamw_8bit` keeps the two averages in 8 bits with a scale for every 256 numbers; those of a weight with fewer than
    4,096 numbers stay in float32. Raises MmcorlError where bitsandbytes is missing.
    """
    by_peak: dict[float, list[Parameter]] = {}
    for name, parameter in parameters:
        peak = getattr(settings.lr_of, part_of(name)) or settings.lr
        by_peak.setdefault(peak, []).append(parameter)
    groups = [{"params": members, "peak": peak} for peak, members in by_peak.items()]
    adamw: Any = torch.optim.AdamW
    if settings.kind == "adamw_8bit":
        adamw = require_extra("bitsandbytes", "optimizer.kind=adamw_8bit", "lora").optim.AdamW8bit
    return adamw(groups, lr=settings.lr, betas=settings.betas, weight_decay=settings.weight_decay)


def optimizer_of(agent: Agent, settings: OptimizerConfig) -> torch.optim.Optimizer:
    """The optimiser of what an agent trains."""
    trained = ((name, p) for name, p in agent.model.named_parameters() if p.requires_grad)
    return build_optimizer(trained, agent.backbone.part_of, settings)


def set_learning_rates(optimizer: torch.optim.Optimizer, share: float) -> None:
    """Give every group `share` of its peak learning rate."""
    for group in optimizer.param_groups:
        group["lr"] = group["peak"] * share


def share_of_peak(config: OptimizerConfig, update: int, total_updates: int) -> float:
    """What of the peak learning rate update 0, 1, ... has: a function of its number, so that resuming needs no scheduler.

    It rises by equal parts, the first of them at update 0, and then keeps to `schedule`; `linear` falls to 0.
    """
    warmup = round(config.warmup_share * total_updates)
    if update < warmup:
        return (update + 1) / warmup
    progress = (update - warmup) / (total_updates - warmup)
    match config.schedule:
        case "constant":
            return 1.0
        case "linear":
            return 1 - progress
        case "cosine":
            half_wave = (1 + math.cos(math.pi * progress)) / 2
            return config.final_share + (1 - config.final_share) * half_wave
