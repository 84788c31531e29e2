"""Settings that contradict each other, over all sections: what each section alone cannot see."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mmcorl.config.learning import RewardConfig

if TYPE_CHECKING:
    from mmcorl.config.tree import Config

_AGENT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")  # names files, keys and command-line overrides
_AGENT_NAME_RULE = "an agent's name is letters, digits, `_` and `-`, and starts with a letter"


def contradictions(config: Config) -> list[str]:
    """A sentence for every contradiction, that names the settings and what to change."""
    return [
        *_agent_problems(config),
        *_reward_problems(config),
        *_interaction_problems(config),
        *_staleness_problems(config),
        *_evaluation_problems(config),
    ]


def _agent_problems(config: Config) -> list[str]:
    problems = _cohort_problems(config)
    for name in config.agents:
        problems += _name_problems(name)
        problems += _share_problems(config, name)
        problems += _endpoint_problems(config, name)
        problems += _server_problems(config, name)
        problems += _adapter_problems(config, name)
        problems += _wording_problems(config, name)
        problems += _sharding_problems(config, name)
    return problems


def _cohort_problems(config: Config) -> list[str]:
    """Whether there are enough agents that learn, and that are asked."""
    if not config.agents:
        return ["agents is empty; name at least one, as in agents.first.model=PATH"]
    problems = []
    if len(config.agents) == 1 and config.cohort.topology != "self":
        problems.append(
            f"cohort.topology={config.cohort.topology} needs two agents and there is one ({next(iter(config.agents))}); "
            "set cohort.topology=self or add an agent"
        )
    frozen = [name for name, agent in config.agents.items() if agent.frozen]
    if frozen and len(frozen) == len(config.agents):
        problems.append(f"every agent is frozen; set agents.{frozen[0]}.frozen=false or add one that learns")
    if frozen and config.cohort.topology == "self":
        problems.append(
            f"cohort.topology=self asks no other agent, so that the frozen {frozen[0]} would vote for nobody; "
            "set cohort.topology=peers"
        )
    return problems


def _name_problems(name: str) -> list[str]:
    return [] if _AGENT_NAME.fullmatch(name) else [f"agents.{name}: {_AGENT_NAME_RULE}"]


def _share_problems(config: Config, name: str) -> list[str]:
    """Whether a step's problems divide into the ranks and updates of an agent."""
    rollouts, updates = config.rollouts.problems_per_step, config.loss.updates_per_rollout
    ranks = config.agents[name].ranks
    if rollouts % (ranks * updates) == 0:
        return []
    return [
        f"rollouts.problems_per_step={rollouts} does not divide evenly into agents.{name}.ranks={ranks} "
        f"x loss.updates_per_rollout={updates}; make it a multiple of {ranks * updates}"
    ]


def _endpoint_problems(config: Config, name: str) -> list[str]:
    agent, problems = config.agents[name], []
    if agent.endpoint is not None and not (agent.frozen and agent.ranks == 1):
        problems.append(
            f"agents.{name}.endpoint={agent.endpoint} cannot be trained and is asked by one process; "
            f"set agents.{name}.frozen=true and agents.{name}.ranks=1"
        )
    if agent.api_key_env is not None and agent.endpoint is None:
        problems.append(f"agents.{name}.api_key_env is for an endpoint; set agents.{name}.endpoint=URL")
    return problems


def _server_problems(config: Config, name: str) -> list[str]:
    """Whether an agent's vLLM server goes with the engine, and its GPUs with how the model is split."""
    agent, problems = config.agents[name], []
    engine, split = config.rollouts.engine, config.rollouts.vllm.tensor_parallel
    if agent.server is not None and engine != "vllm":
        problems.append(
            f"agents.{name}.server={agent.server} is a vLLM server, and rollouts.engine={engine}; "
            "set rollouts.engine=vllm"
        )
    if engine == "vllm" and split > 1 and agent.server is None and not agent.endpoint:
        problems.append(
            f"rollouts.vllm.tensor_parallel={split} splits a server's model, and agents.{name} has none; set "
            f"agents.{name}.server=start and agents.{name}.server_devices"
        )
    if agent.server_devices is not None and len(agent.server_devices) != split:
        problems.append(
            f"agents.{name}.server_devices names {len(agent.server_devices)} GPUs for "
            f"rollouts.vllm.tensor_parallel={split}; make them equal"
        )
    return problems


def _sharding_problems(config: Config, name: str) -> list[str]:
    """Whether an agent's weights can lie over its ranks as asked, and elsewhere than on its GPUs."""
    agent, problems = config.agents[name], []
    asked, offload = f"agents.{name}.sharding={agent.sharding}", set(agent.offload)
    if agent.sharding == "none":
        if offload:
            problems.append(
                f"agents.{name}.offload is for a sharded agent; set agents.{name}.sharding=fsdp2, or leave it empty"
            )
        return problems
    if agent.frozen:
        problems.append(f"{asked} is for an agent that learns; set agents.{name}.sharding=none")
    if agent.sharding == "zero2" and "parameters" in offload:
        problems.append(
            f"{asked} keeps weights whole on every GPU; set agents.{name}.sharding=zero3, or take parameters out of "
            f"agents.{name}.offload"
        )
    if agent.sharding == "fsdp2" and len(offload) == 1:
        problems.append(
            f"{asked} offloads weights and optimiser state together; set agents.{name}.offload=[optimizer,parameters]"
        )
    if agent.quantize is not None:
        problems.append(
            f"{asked} cannot divide weights in {agent.quantize}; set agents.{name}.sharding=none, as adapters need little "
            f"memory for their training, or agents.{name}.quantize=null"
        )
    if agent.lora is not None and config.rollouts.engine == "vllm":
        problems.append(
            f"{asked} cannot hand adapters over to vLLM; set agents.{name}.sharding=none or rollouts.engine=transformers"
        )
    if config.optimizer.kind == "adamw_8bit":
        problems.append(
            f"optimizer.kind=adamw_8bit has a scale for every 256 numbers, which {asked} would cut; set "
            f"optimizer.kind=adamw or agents.{name}.sharding=none"
        )
    return problems


def _adapter_problems(config: Config, name: str) -> list[str]:
    """Whether vLLM can apply an agent's adapters itself."""
    agent, rollouts = config.agents[name], config.rollouts
    if agent.lora is None or rollouts.engine != "vllm" or rollouts.vllm.adapters == "merged":
        return []
    if others := [part for part in agent.lora.parts if part != "text"]:
        return [
            f"rollouts.vllm.adapters=apart is for adapters of the text part, and agents.{name}.lora.parts names "
            f"{', '.join(others)} too; set rollouts.vllm.adapters=merged"
        ]
    return []


def _wording_problems(config: Config, name: str) -> list[str]:
    if config.agents[name].wording == "twin" and config.reward.rule == "twin_vote":
        return [
            f"reward.rule=twin_vote asks every problem in both wordings; leave agents.{name}.wording=original"
        ]
    return []


def _reward_problems(config: Config) -> list[str]:
    problems = []
    votes, learned = config.rollouts.votes, config.rollouts.per_problem
    if votes is not None and votes < learned:
        problems.append(
            f"rollouts.votes={votes} is below rollouts.per_problem={learned}, and what is learned from votes too; "
            f"set rollouts.votes to {learned} or more"
        )
    if config.data.twin is None:
        asking = [f"agents.{n}.wording=twin" for n, agent in config.agents.items() if agent.wording == "twin"]
        asking += ["reward.rule=twin_vote"] if config.reward.rule == "twin_vote" else []
        problems += [f"{setting} needs data.twin, the other wording of data.train" for setting in asking]
    if config.reward.unparsed is not None and config.reward.rule not in ("entropy", "self_certainty"):
        problems.append(
            f"reward.unparsed is for the rules entropy and self_certainty, and reward.rule={config.reward.rule}; "
            "make it null"
        )
    return problems


def _staleness_problems(config: Config) -> list[str]:
    if not config.cohort.max_staleness:
        return []
    problems = []
    if config.loss.sampler_correction == "none":
        problems.append(
            "cohort.max_staleness=1 learns from completions of older weights, and loss.sampler_correction=none takes "
            "them for its own; set loss.sampler_correction=token_truncate"
        )
    if config.interaction is not None:
        problems.append(
            f"interaction.kind={config.interaction.kind} samples what depends on the peers' texts; set "
            "cohort.max_staleness=0"
        )
    return problems


def _interaction_problems(config: Config) -> list[str]:
    if config.interaction is None:
        return []
    kind, problems = config.interaction.kind, []
    if config.reward != RewardConfig():
        problems.append(f"interaction.kind={kind} has rewards of its own; leave `reward` out")
    if config.rollouts.votes is not None:
        problems.append(f"interaction.kind={kind} learns from all it samples; make rollouts.votes null")
    if config.loss.updates_per_rollout > 1:
        problems.append(f"interaction.kind={kind} makes one update a step; set loss.updates_per_rollout=1")
    if kind == "maporl" and config.loss.scale == "batch":
        problems.append("interaction.kind=maporl scales turn by turn; set loss.scale to group or none")
    if len(config.agents) == 1 and (kind == "maporl" or not config.interaction.comas.self_evaluation):
        problems.append(
            f"interaction.kind={kind} needs a second agent; add one"
            + (", or set interaction.comas.self_evaluation=true" if kind == "comas" else "")
        )
    return problems


def _evaluation_problems(config: Config) -> list[str]:
    problems = []
    if config.evaluation.every and config.data.eval is None:
        problems.append(
            f"evaluation.every={config.evaluation.every} needs held-out problems; set data.eval or evaluation.every=0"
        )
    if config.checkpoints.best_by == "agreement" and config.cohort.topology == "self":
        problems.append(
            "checkpoints.best_by=agreement compares with another agent's votes, and cohort.topology=self has none; "
            "set checkpoints.best_by=vote_share"
        )
    if config.checkpoints.best_by == "accuracy" and not config.evaluation.every:
        problems.append(
            "checkpoints.best_by=accuracy needs evaluation; set evaluation.every or checkpoints.best_by=agreement"
        )
    return problems
