"""Updates of a tiny agent under some layout: a function for the tests, and a program that is one rank of several.

`python -m tests.training.sharding.updates FOLDER CASES`, with the ranks told by torchrun's variables, makes the updates
of each case of the JSON list.
"""

import json
import sys
from pathlib import Path

import torch

from mmcorl.agents import contract
from mmcorl.agents.adapters import BasePolicy
from mmcorl.agents.agent import Agent
from mmcorl.config import AgentConfig, LossConfig, OptimizerConfig
from mmcorl.problems import Completion, RolloutGroup
from mmcorl.training import grpo
from mmcorl.training.learner import Learner
from mmcorl.training.world import World

OPTIMIZER = {"lr": 1e-3, "schedule": "constant", "warmup_share": 0.0, "clip_norm": 1e6, "weight_decay": 0.1}
SAMPLES, MAX_TOKENS = 4, 6
# Of two ranks, the second has one live group without image in the first update, and none in the second.
ADVANTAGES = torch.tensor(
    [
        [[1.2, -0.4, -0.4, -0.4], [0.9, 0.0, -0.9, 0.0], [-1.0, 1.0, 1.0, -1.0], [0.0, 0.0, 0.0, 0.0]],
        [[0.5, -0.5, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [1.0, -1.0, 1.0, -1.0], [0.0, 0.0, 0.0, 0.0]],
    ]
)


def drawn(agent, problem, update):
    """Completions that were not sampled, for a model whose own would differ by rounding."""
    generator = torch.Generator().manual_seed(update)
    words = agent.encode(contract.sample_problems(images=False)[1]).ids
    rows = words[torch.randint(len(words), (SAMPLES, MAX_TOKENS), generator=generator)].tolist()
    return RolloutGroup(problem, tuple(Completion("", tuple(r), (-2.0,) * MAX_TOKENS, True) for r in rows))


def make_updates(
    out, world, model, sharding="none", offload=(), resume=None, updates=(0, 1), sampled=True, loss=None, optimizer=None,
    **settings,
):  # fmt: skip
    """Make `updates`, and leave a checkpoint and metrics in `out/N` after each. Returns the learner."""
    agent = Agent.load("tiny", AgentConfig.model_validate({"model": str(resume or model), **settings}))
    learner = Learner(
        agent,
        world,
        LossConfig.model_validate(loss or {}),
        OptimizerConfig.model_validate(OPTIMIZER | (optimizer or {})),
        total_updates=4,
        batch_tokens=1,
        reference=BasePolicy(agent.policy) if loss and "beta" in loss else None,
        sharding=sharding,
        offload=offload,
    )
    if resume is not None:
        learner.load(Path(resume))
    texts, pictures = contract.sample_problems(images=True)[:2], contract.sample_problems(images=True)[2:4]
    problems = [pictures[0], texts[0], texts[1], pictures[1]]
    if not agent.backbone.sees_images:
        problems = contract.sample_problems(images=False) * 2
    for update in updates:
        mine = world.share(problems)
        rollouts = [drawn(agent, problem, update) for problem in mine]
        if sampled:
            rollouts = agent.rollout(
                mine, samples=SAMPLES, max_tokens=MAX_TOKENS, noise_key=("sharding", update)
            )
        lengths = torch.tensor(world.gather([[len(c.token_ids) for c in r.completions] for r in rollouts]))
        weights = grpo.completion_weights(lengths.flatten(), "dapo", MAX_TOKENS).view_as(lengths)
        share = slice(world.rank, None, world.size)
        metrics = learner.learn(rollouts, ADVANTAGES[update][share], weights[share], updates_done=update)
        model_of, state_of = agent.snapshot(world.is_first), learner.snapshot()
        if world.is_first:
            folder = Path(out) / str(update)
            folder.mkdir(parents=True)
            model_of(folder)
            state_of(folder)
            (folder / "metrics.json").write_text(json.dumps(metrics))
    return learner


if __name__ == "__main__":
    torch.set_num_threads(1)
    here = World()
    for case in json.loads(sys.argv[2]):
        make_updates(Path(sys.argv[1]) / case.pop("name"), here, **case)
    here.close()
