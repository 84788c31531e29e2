"""Points about the policy as it learns: log-probabilities, gradients, and the weights that are kept."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch

from mmcorl.agents.agent import Agent
from mmcorl.agents.batches import TokenGroup
from mmcorl.agents.contract.trial import BrokenContract, Skipped, Trial, gradient_gap, weighted_gradient
from mmcorl.config import AgentConfig, RolloutsConfig


def shared_prefix_equals_plain(trial: Trial) -> str:
    """Log-probabilities and gradients with a shared prefix equal those of the full forward."""
    limit, gradient_limit = 1e-4, 1e-3
    policy = trial.agent.policy
    if not policy.shared_prefix:
        return Skipped("prompts are computed once a completion, as the log says why")
    shared, one = weighted_gradient(trial.agent, lambda: policy.shared_logprobs(trial.groups))
    plain, other = weighted_gradient(trial.agent, lambda: policy.plain_logprobs(trial.groups))
    gap, apart = float((shared - plain).abs().max()), gradient_gap(one, other)
    if not (gap <= limit and apart <= gradient_limit):
        raise BrokenContract(
            f"log-probs differ by {gap:.2g} nats (limit {limit:g}), gradients by {apart:.2g} of the largest "
            f"(limit {gradient_limit:g})"
        )
    return f"log-probs {gap:.1e} nats (limit {limit:g}), gradients {apart:.1e} of the largest (limit {gradient_limit:g})"


def every_part_learns_under_checkpointing(trial: Trial) -> str:
    """Every part gets a gradient, and gradient checkpointing does not change it."""
    limit, agent, model = 1e-4, trial.agent, trial.agent.model
    groups, checkpointing = trial.groups[-2:], model.is_gradient_checkpointing
    if not model.supports_gradient_checkpointing:
        return Skipped(f"{type(model).__name__} has none; leave agents.*.gradient_checkpointing at false")
    gradients = []
    for on in (True, False):
        _set_checkpointing(agent, on)
        gradients.append(weighted_gradient(agent, lambda: agent.policy.logprobs(groups))[1])
    _set_checkpointing(agent, checkpointing)
    parts = {agent.backbone.part_of(name) for name, values in gradients[1].items() if values.any()}
    if idle := {agent.backbone.part_of(name) for name, _ in model.named_parameters()} - parts:
        raise BrokenContract(f"no gradient reaches {', '.join(sorted(idle))}")
    if not (apart := gradient_gap(*gradients)) <= limit:
        raise BrokenContract(f"gradients differ by {apart:.2g} of the largest (limit {limit:g})")
    return f"{', '.join(sorted(parts))}; {apart:.1e} of the largest (limit {limit:g})"


def reload_keeps_logits(trial: Trial) -> str:
    """Saved and reloaded, the model gives the same log-probabilities."""
    limit = 1e-5
    with tempfile.TemporaryDirectory() as folder:
        trial.agent.snapshot()(Path(folder))
        again = Agent.load(
            "reloaded",
            AgentConfig.model_validate(
                {"model": folder, "attention": trial.agent.model.config._attn_implementation}
            ),
            trial.agent.prompts.prompt,
            trial.agent.prompts.images,
            RolloutsConfig(temperature=trial.agent.policy.temperature),
            trial.agent.policy.device,
        )
        prompts = [again.encode(problem) for problem in trial.problems]
        groups = [TokenGroup(p, g.completions) for p, g in zip(prompts, trial.groups, strict=True)]
        with torch.no_grad():
            gap = float(
                (again.policy.logprobs(groups) - trial.agent.policy.logprobs(trial.groups)).abs().max()
            )
    if not gap <= limit:
        raise BrokenContract(f"they differ by {gap:.2g} nats (limit {limit:g})")
    return f"{gap:.1e} nats (limit {limit:g})"


def _set_checkpointing(agent: Agent, on: bool) -> None:
    if on:
        agent.model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    else:
        agent.model.gradient_checkpointing_disable()
