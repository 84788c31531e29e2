"""Settings of what agents learn from each other, and how: votes, rewards, interaction, loss, optimizer."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Literal, get_args

from pydantic import Field, field_validator

from mmcorl.config.section import Section

Topology = Literal["ring", "self", "peers", "all"]
Ties = Literal["first", "abstain"]
Weigh = Literal["votes", "share", "pooled"]
LossKind = Literal["grpo", "bnpo", "dr_grpo", "dapo"]
Scale = Literal["group", "batch", "none"]
RuleName = Literal[
    "peer_vote",
    "self_vote",
    "twin_vote",
    "teacher_vote",
    "cluster_share",
    "entropy",
    "self_certainty",
    "gold",
    "random",
    "format_only",
    "incorrect",
]
SamplerCorrection = Literal["none", "token_truncate", "token_mask", "sequence_truncate", "sequence_mask"]


class CohortConfig(Section):
    topology: Topology = "ring"
    """Who supervises whom: each agent its successor (ring), itself (self), or the majority of the others or of all."""
    threshold: float = Field(default=0.0, ge=0, le=1)
    """A vote whose share of the parsed answers is below this elects nothing."""
    ties: Ties = "first"
    """A tie elects the answer met first (as in the paper's release) or nothing."""
    weigh: Weigh = "votes"
    """What counts under `peers` and `all`: each agent's vote once, each by its share, or all their completions as one
    ballot, to which `threshold` and `ties` then apply. Under votes and share a tie elects nothing."""
    max_staleness: Literal[0, 1] = 0
    """1 samples the next step's completions while peers finish theirs, from weights one update old, which
    `loss.sampler_correction` makes up for; 0 waits."""
    take_turns: bool = False
    """Let agents that share a device compute one after the other, so that only one at a time holds activations and a
    key-value cache."""
    store: str = "tcp://127.0.0.1:0"
    """Where ballots meet: `tcp://host:port` (port 0 picks a free one) or `file:///path` on a shared file system."""
    secret_file: Path | None = None
    """File with the secret that messages are sealed with, the same for all agents and mode 600. Null makes one up for a
    cohort on one machine; a store that other machines reach needs it; see docs/cluster.md."""
    dead_after: float = Field(default=20.0, gt=0)
    """Seconds without a sign of life after which a peer is reported lost."""


class RewardConfig(Section):
    rule: RuleName | str = "peer_vote"
    """What a completion is rewarded for, such as the peer's vote (Co-RL), the agent's own (TTRL) or the labelled answer
    (docs/methods.md has them all); or `PATH.py:NAME`, a rule of one's own (docs/add_a_reward.md)."""
    unparsed: float | None = None
    """Reward of a completion that concluded nothing, under `entropy` and `self_certainty`; null rewards it as any
    other, -7.0 is the format variant of RENT."""
    teacher_start: float = Field(default=0.01, ge=0, le=1)
    """Share of the agent's weights that the teacher of `teacher_vote` takes over at the first step; it falls to
    `teacher_end` along half a cosine."""
    teacher_end: float = Field(default=1e-5, ge=0, le=1)
    """The same share at the end of the run."""
    chance: float = Field(default=0.5, gt=0, lt=1)
    """Probability of reward 1 under `random`."""

    @field_validator("rule")
    @classmethod
    def _named_or_own(cls, rule: str) -> str:
        file, _, name = rule.rpartition(":")
        known = get_args(RuleName)
        if rule not in known and not (file.endswith(".py") and name.isidentifier()):
            near = difflib.get_close_matches(rule, known, n=1, cutoff=0)[0]
            raise ValueError(
                f"{rule!r} is no rule; the nearest is {near}. There are {', '.join(known)}, and PATH.py:NAME for your own"
            )
        return rule


class ComasConfig(Section):
    rounds: int = Field(default=2, ge=1)
    """Rounds of solving, evaluating and scoring in one step."""
    references: int = Field(default=2, ge=0)
    """Most solutions of the round before that a solver is shown, each with its evaluation."""
    self_evaluation: bool = True
    """Whether an agent may evaluate its own solution, and score what it has solved or evaluated."""


class MaporlConfig(Section):
    turns: int = Field(default=3, ge=1)
    """Turns of a debate; in the first everybody answers alone."""
    discount: float = Field(default=0.3, ge=0, le=1)
    """Weight of the next turn's scores in the reward of a turn; those after it count its powers."""
    incentives: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    """Added for changes of mind: to the right answer with (0) or against (1) the others at the turn before, and for the
    others' next turn, against (2) or with (3) the own answer. Changes to a wrong answer cost the same."""
    stop_on_agreement: bool = False
    """End a debate after the turn in which all agents give the same answer."""


class InteractionConfig(Section):
    kind: Literal["comas", "maporl"]
    """Agents that read each other's texts: they solve, evaluate and score (CoMAS), or debate and are rewarded by the
    labelled answers (MAPoRL); see docs/interaction.md."""
    comas: ComasConfig = ComasConfig()
    """Settings of `kind=comas`."""
    maporl: MaporlConfig = MaporlConfig()
    """Settings of `kind=maporl`."""


class LossConfig(Section):
    kind: LossKind = "dapo"
    """How token losses become one number; all but bnpo are independent of how the batch is cut."""
    scale: Scale = "group"
    """Divide advantages by the group's standard deviation, the batch's, or not at all."""
    clip_low: float = Field(default=0.2, ge=0)
    """Probability ratios are clipped below 1 minus this."""
    clip_high: float = Field(default=0.2, ge=0)
    """Probability ratios are clipped above 1 plus this."""
    ratio_cap: float | None = Field(default=None, gt=1)
    """Largest probability ratio, clipped or not (dual clip); null sets none."""
    beta: float = Field(default=0.0, ge=0)
    """Weight of the KL divergence (k3) to the starting weights, or to the teacher under `reward.rule=teacher_vote`;
    0 loads no reference model."""
    updates_per_rollout: int = Field(default=1, ge=1)
    """Optimiser updates on each batch of rollouts, each on an equal share of its problems."""
    bnpo_completions: int = Field(default=1, ge=1)
    """Completions over which bnpo takes its token mean; the local batch size of the run to be reproduced."""
    sampler_correction: SamplerCorrection = "token_truncate"
    """Importance weight between the sampler and the policy."""
    sampler_cap: float = Field(default=3.0, gt=0)
    """Largest importance weight; larger ones are cut to it (truncate) or to zero (mask)."""
    mask_truncated: bool = False
    """Leave completions that never stopped out of the loss."""


class PartRates(Section):
    vision: float | None = Field(default=None, gt=0)
    """Peak learning rate of the vision tower; null is `optimizer.lr`."""
    projector: float | None = Field(default=None, gt=0)
    """Peak learning rate of what maps its features to the text model."""
    text: float | None = Field(default=None, gt=0)
    """Peak learning rate of the text model."""


class OptimizerConfig(Section):
    kind: Literal["adamw", "adamw_8bit"] = "adamw"
    """AdamW with its state in float32, or in 8 bits a number (bitsandbytes)."""
    lr: float = Field(default=1e-6, gt=0)
    """Peak learning rate."""
    lr_of: PartRates = PartRates()
    """Peak learning rates of parts of the model that learn at another one."""
    betas: tuple[float, float] = (0.9, 0.95)
    """AdamW's decay rates."""
    weight_decay: float = Field(default=0.0, ge=0)
    """AdamW's weight decay."""
    clip_norm: float = Field(default=1.0, gt=0)
    """Largest global gradient norm."""
    schedule: Literal["constant", "cosine", "linear"] = "cosine"
    """Shape of the learning rate after the warm-up."""
    warmup_share: float = Field(default=0.03, ge=0, lt=1)
    """Share of the steps in which the learning rate rises."""
    final_share: float = Field(default=0.1, ge=0, le=1)
    """Learning rate at the end of a cosine schedule, as a share of the peak."""
