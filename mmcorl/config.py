"""The whole run as one typed, documented, validated tree.

The docstring under each field is its documentation, also in `docs/configuration.md`. `config_loading` reads YAML
into it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

_AGENT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")  # names files, keys and command-line overrides
_AGENT_NAME_RULE = "an agent's name is letters, digits, `_` and `-`, and starts with a letter"


class Section(BaseModel):
    """A part of the tree. Unknown keys and values of the wrong type are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)


class RunConfig(Section):
    name: str = "run"
    """Name of the run; its folder is `dir/name`."""
    dir: Path = Path("runs")
    """Folder that holds the folders of runs."""
    seed: int = 0
    """Seeds the order of the problems and the sampling noise of every agent."""
    steps: int = Field(default=100, ge=1)
    """Optimiser steps of each agent."""
    threads: int | None = Field(default=None, ge=1)
    """CPU threads shared by all agents on this machine; null takes every core."""

    @field_validator("name")
    @classmethod
    def _names_a_folder(cls, name: str) -> str:
        if name in ("", "..") or Path(name).name != name or not name.isprintable():
            raise ValueError(f"{name!r} cannot be the name of a folder; other folders belong into run.dir")
        return name


class ColumnsConfig(Section):
    id: str | None = "id"
    """Column with the problem's id; where the file has none, or with null, rows are numbered from 0."""
    question: str = "question"
    """Column with the question text; every `<image>` in it marks the place of an image."""
    images: str | None = "images"
    """Column with one image or a list: paths (relative to the file), encoded bytes or images. May be absent; null
    leaves images out."""
    choices: str | None = "choices"
    """Column with the list of option texts. May be absent, and is empty for open questions; null asks all as open."""
    answer: str | None = "answer"
    """Column with the gold answer. May be absent or null; without it there is no `reward.rule=gold` and no diagnostic of the votes."""
    kind: str | None = "kind"
    """Column with the answer kind. Where the file has none: `choice` for rows with choices, else `math`."""


class ScenesConfig(Section):
    tasks: tuple[Literal["count", "compare", "add", "chart"], ...] = ("count",)
    """What the rendered problems ask; they take turns."""
    size: int = Field(default=720, ge=1)
    """Number of problems."""
    seed: int = 0
    """Seed of the images and questions; use different seeds for training and evaluation."""
    choice_share: float = Field(default=0.0, ge=0, le=1)
    """Share of problems asked as multiple choice."""
    image_size: int = Field(default=84, ge=28)
    """Width and height of the images in pixels."""


class DataConfig(Section):
    source: str | None = None
    """A public data set by name, such as `open-r1`; it is streamed from the hub, or read from the copy that `path` names."""
    path: str | None = None
    """A prepared folder, a JSONL, JSON or Parquet file, a `save_to_disk` folder, a folder of images with
    metadata.jsonl, or a data set downloaded from the hub."""
    split: str | None = None
    """Split of a data set that has several; null takes that of the source, or the only one."""
    scenes: ScenesConfig | None = None
    """Instead of a source or a path: the built-in rendered scenes."""
    columns: ColumnsConfig = ColumnsConfig()
    """Names of the columns of a local file. A source knows its own."""
    limit: int | None = Field(default=None, ge=1)
    """Use only the first so many problems."""
    fetch_urls: bool = False
    """Fetch images that are given as http or https URLs; otherwise their rows are refused."""

    @model_validator(mode="after")
    def _one_source(self) -> DataConfig:
        named = self.path is not None or self.source is not None
        if named == (self.scenes is not None):
            raise ValueError(
                "set `path`, `source` or `scenes`, and nothing beside `scenes`; leave the others out or make them null"
            )
        if self.source is not None and self.columns != ColumnsConfig():
            raise ValueError(
                f"source={self.source} knows its columns; leave `columns` out, or name a file by `path` alone"
            )
        return self


class PromptConfig(Section):
    system: str | None = None
    """System message; null for none. Models whose template has no system turn get it before the question."""
    instruction: str = "Think step by step, then put your final answer in \\boxed{}."
    """Added after the question and its options."""
    option_format: str = "{letter}. {text}"
    """How one option of a multiple-choice problem is written, a line each."""

    @field_validator("option_format")
    @classmethod
    def _shows_letter_and_text(cls, form: str) -> str:
        try:
            shown = form.format(letter="<L>", text="<T>")
        except (KeyError, IndexError, ValueError):
            shown = ""
        if "<L>" not in shown or "<T>" not in shown:
            raise ValueError(f"{form!r} must hold {{letter}} and {{text}}")
        return form


class ImagesConfig(Section):
    min_pixels: int = Field(default=56 * 56, ge=1)
    """Images with fewer pixels are enlarged to this, keeping their shape."""
    max_pixels: int = Field(default=1024 * 1024, ge=1)
    """Images with more pixels are reduced to this, keeping their shape. Applied once, before any model's processor."""
    max_long_side: int | None = Field(default=None, ge=1)
    """Images whose longer side has more pixels are reduced to this, keeping their shape; null sets no limit."""
    tiling: bool = False
    """Let InternVL cut an image into tiles: finer detail, up to 13 times the image tokens."""

    @model_validator(mode="after")
    def _room_between(self) -> ImagesConfig:
        if self.min_pixels > self.max_pixels:
            raise ValueError(f"min_pixels={self.min_pixels} is above max_pixels={self.max_pixels}")
        return self


class VLLMConfig(Section):
    memory_share: float = Field(default=0.4, gt=0, le=1)
    """Share of the device's memory for vLLM's weights and key-value cache. On a CPU the cache has 1 GiB."""
    sleep: Literal[0, 1, 2] = 2
    """What vLLM gives back while the agent learns: nothing (0), its cache and, to the host's memory, its weights (1), or
    both for good, as new weights come anyway (2). A CPU build, and a server, always keep both."""
    tensor_parallel: int = Field(default=1, ge=1)
    """Devices over which a server splits the model. In the agent's own processes every rank holds a whole model."""
    eager: bool = False
    """Start without compiling anything: faster to start, slower to sample."""
    check_every: int = Field(default=50, ge=1)
    """Compare vLLM's log-probabilities with the policy's before the first step and every so many steps."""
    gap_limit: float | None = Field(default=None, gt=0)
    """Largest difference in nats, on any token of that check, with which a run goes on; null is 0.001 in float32 and 1
    in bfloat16, where the two round differently."""
    sync_dir: Path | None = None
    """Folder through which a server gets new weights, seen under this path by both; null makes one on this machine."""


class RolloutsConfig(Section):
    engine: Literal["transformers", "vllm"] = "transformers"
    """What samples: the model being trained itself, or vLLM with a second copy of the weights, much faster on a GPU."""
    problems_per_step: int = Field(default=16, ge=1)
    """Problems that every agent answers in one step (the whole agent, over all its ranks)."""
    per_problem: int = Field(default=8, ge=1)
    """Completions an agent learns from for each problem (K)."""
    votes: int | None = Field(default=None, ge=1)
    """Completions an agent samples for each problem and puts to the vote (M); the first `per_problem` of them are
    learned from. Null samples `per_problem`."""
    max_tokens: int = Field(default=1024, ge=1)
    """Longest completion, in tokens."""
    max_prompt_tokens: int = Field(default=4096, ge=1)
    """Longest prompt, image tokens included. A longer one is refused with its id; prompts are never cut."""
    temperature: float = Field(default=1.0, gt=0)
    """Sampling temperature in training; log-probabilities are taken at the same one."""
    batch_tokens: int = Field(default=65536, ge=1)
    """Most tokens (prompt once, plus K completions of `max_tokens`) the transformers engine holds in one batch."""
    vllm: VLLMConfig = VLLMConfig()
    """Settings of `engine=vllm`."""


class AgentConfig(Section):
    model: str
    """A local folder or a hub id, loaded with `from_pretrained`; with `endpoint`, the model's name there."""
    frozen: bool = False
    """Let the agent answer and vote, and never train it."""
    endpoint: str | None = None
    """Base URL of an OpenAI-compatible server (`https://host/v1`) that answers for this agent, which must be frozen."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the endpoint's key; null sends none."""
    wording: Literal["original", "twin"] = "original"
    """Which wording of the problems the agent reads, when it trains and when it votes: `twin` is that of `data.twin`."""
    ranks: int = Field(default=1, ge=1)
    """Data-parallel processes of this agent."""
    devices: tuple[int, ...] | None = None
    """GPU index of each rank; null lets agents share the first GPU, or the CPU where there is none."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Type of the forward pass; weights and optimiser state stay float32."""
    freeze: tuple[Literal["vision", "projector", "text"], ...] = ()
    """Parts of the model that are not trained."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass: less memory, about a third more time."""
    attention: Literal["sdpa", "eager"] = "sdpa"
    """Attention implementation of transformers."""
    shared_prefix: Literal["auto", "off"] = "auto"
    """Compute each prompt with its image once per group (auto), or repeat it for every completion (off)."""
    batch_tokens: int = Field(default=16384, ge=1)
    """Most tokens in one micro-batch of the update; a group is never split, a larger one goes alone."""
    server: str | None = None
    """Where vLLM samples for this agent (`rollouts.engine=vllm`): null in its own processes, `start` in a server that it
    starts on this machine, or the URL (`http://host:port`) of a server that runs already and serves no other agent."""
    server_devices: tuple[int, ...] | None = None
    """GPU indices for `server=start`, as many as `rollouts.vllm.tensor_parallel`; null leaves it the agent's own."""

    @field_validator("shared_prefix", mode="before")
    @classmethod
    def _yaml_reads_off_as_false(cls, value: Any) -> Any:
        return "off" if value is False else value

    @model_validator(mode="after")
    def _a_device_for_each_rank(self) -> AgentConfig:
        if self.devices is not None and len(self.devices) != self.ranks:
            raise ValueError(
                f"devices={list(self.devices)} names {len(self.devices)} GPUs for ranks={self.ranks}; "
                "give one for each rank, or null"
            )
        return self


class CohortConfig(Section):
    topology: Literal["ring", "self", "peers", "all"] = "ring"
    """Who supervises whom: each agent its successor (ring), itself (self), or the majority of the others or of all."""
    threshold: float = Field(default=0.0, ge=0, le=1)
    """A vote whose share of the parsed answers is below this elects nothing."""
    ties: Literal["first", "abstain"] = "first"
    """A tie elects the answer met first (as in the paper's release) or nothing."""
    weigh: Literal["votes", "share", "pooled"] = "votes"
    """What counts under `peers` and `all`: each agent's vote once, each by its share, or all their completions as one
    ballot, to which `threshold` and `ties` then apply. Under votes and share a tie elects nothing."""
    store: str = "tcp://127.0.0.1:0"
    """Where ballots meet: `tcp://host:port` (port 0 picks a free one) or `file:///path` on a shared file system."""
    dead_after: float = Field(default=20.0, gt=0)
    """Seconds without a sign of life after which a peer is reported lost."""


class RewardConfig(Section):
    rule: Literal[
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
    ] = "peer_vote"
    """What a completion is rewarded for, such as the peer's vote (Co-RL), the agent's own (TTRL) or the labelled answer;
    docs/methods.md has them all."""
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
    kind: Literal["grpo", "bnpo", "dr_grpo", "dapo"] = "dapo"
    """How token losses become one number; all but bnpo are independent of how the batch is cut."""
    scale: Literal["group", "batch", "none"] = "group"
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
    sampler_correction: Literal[
        "none", "token_truncate", "token_mask", "sequence_truncate", "sequence_mask"
    ] = "token_truncate"
    """Importance weight between the sampler and the policy."""
    sampler_cap: float = Field(default=3.0, gt=0)
    """Largest importance weight; larger ones are cut to it (truncate) or to zero (mask)."""
    mask_truncated: bool = False
    """Leave completions that never stopped out of the loss."""


class OptimizerConfig(Section):
    lr: float = Field(default=1e-6, gt=0)
    """Peak learning rate."""
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


class EvaluationConfig(Section):
    every: int = Field(default=50, ge=0)
    """Evaluate on `data.eval` before the first step, every so many steps and after the last; 0 never does, and is
    the default of a run without `data.eval`."""
    samples: int = Field(default=8, ge=0)
    """Sampled answers a problem for avg@k, beside the greedy one; 0 takes the greedy one only."""
    temperature: float = Field(default=1.0, gt=0)
    """Temperature of those samples."""


class CheckpointsConfig(Section):
    every: int = Field(default=50, ge=1)
    """Save every so many steps, and after the last."""
    keep: int = Field(default=2, ge=2)
    """Checkpoints kept of each agent, the best one not counted."""
    best_by: Literal["accuracy", "agreement", "vote_share", "last"] = "accuracy"
    """Best checkpoint: highest held-out greedy accuracy; without labels, highest agreement with the supervising vote or
    share of the leading answer; or the last. Without evaluation the default is agreement, or vote_share under
    `cohort.topology=self`."""


class MonitorsConfig(Section):
    stop_on_collapse: bool = False
    """End the run, saved, when an alarm says that training collapses: few answers, answers cut off, or always the same."""
    patience: int = Field(default=10, ge=1)
    """Steps running in which something must be wrong before an alarm says so."""
    parsed_min: float = Field(default=0.5, ge=0, le=1)
    """Least share of completions that hold an answer."""
    truncated_max: float = Field(default=0.1, ge=0, le=1)
    """Share of completions cut off at `rollouts.max_tokens` from which a doubling within 50 steps is an alarm."""
    live_min: float = Field(default=0.2, ge=0, le=1)
    """Least share of groups whose rewards differ."""
    reward_std_min: float = Field(default=0.1, ge=0, le=1)
    """Least standard deviation of rewards within a group, as a share of that of the first steps."""
    constant_max: float = Field(default=0.3, ge=0, le=1)
    """Largest share of one answer among the labels of a step, where it also grew by half since the start."""
    length_factor: float = Field(default=3.0, gt=1)
    """Most by which completions may grow or shrink since the first steps."""
    agreement_min: float = Field(default=0.05, ge=0, le=1)
    """Least agreement of an agent's votes with the supervising ones."""
    agreement_max: float = Field(default=0.98, ge=0, le=1)
    """Most agreement with the supervising votes of another agent."""
    masked_max: float = Field(default=0.1, ge=0, le=1)
    """Largest share of tokens whose importance weight is cut or masked."""


class LoggingConfig(Section):
    trackers: tuple[Literal["tensorboard", "wandb", "trackio"], ...] = ()
    """Experiment trackers that get the metrics beside the run's own JSONL."""
    completions: bool = True
    """Write every completion with its answer, votes and reward to the run's folder."""


class DataSplits(Section):
    train: DataConfig
    """Problems to train on; their gold answers serve `reward.rule=gold` and the diagnostic `vote_accuracy`, nothing else."""
    eval: DataConfig | None = None
    """Held-out problems with gold answers."""
    twin: str | None = None
    """A file with another wording of every problem of `train`, aligned by id; for `reward.rule=twin_vote` and
    `agents.*.wording=twin`."""


class Config(Section):
    """One run of one cohort."""

    run: RunConfig = RunConfig()
    """Its name, folder and length."""
    agents: dict[str, AgentConfig]
    """The models of the cohort by name, in ring order; null takes out an agent that a `base` file names."""
    data: DataSplits
    """What they train on and are evaluated on."""
    prompt: PromptConfig = PromptConfig()
    """What is said around each question."""
    images: ImagesConfig = ImagesConfig()
    """Sizes of images."""
    rollouts: RolloutsConfig = RolloutsConfig()
    """How completions are sampled."""
    cohort: CohortConfig = CohortConfig()
    """Who supervises whom, how votes are counted and where agents meet."""
    reward: RewardConfig = RewardConfig()
    """What completions are rewarded for."""
    interaction: InteractionConfig | None = None
    """Instead of answers of each agent alone and a reward rule: agents that read each other's texts."""
    loss: LossConfig = LossConfig()
    """From rewards to the loss."""
    optimizer: OptimizerConfig = OptimizerConfig()
    """AdamW and its schedule."""
    evaluation: EvaluationConfig = EvaluationConfig()
    """Held-out evaluation while training."""
    checkpoints: CheckpointsConfig = CheckpointsConfig()
    """What is saved, and what counts as best."""
    monitors: MonitorsConfig = MonitorsConfig()
    """What counts as going wrong."""
    logging: LoggingConfig = LoggingConfig()
    """Where metrics and completions go."""

    @model_validator(mode="after")
    def _defaults_without_evaluation(self) -> Config:
        """A run without held-out problems asks for no evaluation, and cannot choose its best by it."""
        if self.data.eval is None:
            self._default("evaluation", every=0)
        if self.evaluation.every == 0:
            alone = self.cohort.topology == "self"
            self._default("checkpoints", best_by="vote_share" if alone else "agreement")
        return self

    def _default(self, name: str, **values: Any) -> None:
        section: Section = getattr(self, name)
        unset = {key: value for key, value in values.items() if key not in section.model_fields_set}
        object.__setattr__(self, name, section.model_copy(update=unset))

    @model_validator(mode="after")
    def _consistent(self) -> Config:
        if problems := [
            *self._agent_problems(),
            *self._reward_problems(),
            *self._interaction_problems(),
            *self._evaluation_problems(),
        ]:
            raise ValueError("\n".join(problems))
        return self

    def _agent_problems(self) -> list[str]:
        problems = []
        if not self.agents:
            problems.append("agents is empty; name at least one, as in agents.first.model=PATH")
        if len(self.agents) == 1 and self.cohort.topology != "self":
            problems.append(
                f"cohort.topology={self.cohort.topology} needs two agents and there is one ({next(iter(self.agents))}); "
                "set cohort.topology=self or add an agent"
            )
        rollouts, updates = self.rollouts.problems_per_step, self.loss.updates_per_rollout
        for name, agent in self.agents.items():
            if not _AGENT_NAME.fullmatch(name):
                problems.append(f"agents.{name}: {_AGENT_NAME_RULE}")
            if rollouts % (agent.ranks * updates):
                problems.append(
                    f"rollouts.problems_per_step={rollouts} does not divide evenly into agents.{name}.ranks={agent.ranks} "
                    f"x loss.updates_per_rollout={updates}; make it a multiple of {agent.ranks * updates}"
                )
            if agent.endpoint is not None and not (agent.frozen and agent.ranks == 1):
                problems.append(
                    f"agents.{name}.endpoint={agent.endpoint} cannot be trained and is asked by one process; "
                    f"set agents.{name}.frozen=true and agents.{name}.ranks=1"
                )
            if agent.server is not None and self.rollouts.engine != "vllm":
                problems.append(
                    f"agents.{name}.server={agent.server} is a vLLM server, and rollouts.engine={self.rollouts.engine}; "
                    "set rollouts.engine=vllm"
                )
            split = self.rollouts.vllm.tensor_parallel
            if self.rollouts.engine == "vllm" and split > 1 and agent.server is None and not agent.endpoint:
                problems.append(
                    f"rollouts.vllm.tensor_parallel={split} splits a server's model, and agents.{name} has none; set "
                    f"agents.{name}.server=start and agents.{name}.server_devices"
                )
            if agent.server_devices is not None and len(agent.server_devices) != split:
                problems.append(
                    f"agents.{name}.server_devices names {len(agent.server_devices)} GPUs for "
                    f"rollouts.vllm.tensor_parallel={split}; make them equal"
                )
            if agent.api_key_env is not None and agent.endpoint is None:
                problems.append(
                    f"agents.{name}.api_key_env is for an endpoint; set agents.{name}.endpoint=URL"
                )
            if agent.wording == "twin" and self.reward.rule == "twin_vote":
                problems.append(
                    f"reward.rule=twin_vote asks every problem in both wordings; leave agents.{name}.wording=original"
                )
        frozen = [name for name, agent in self.agents.items() if agent.frozen]
        if frozen and len(frozen) == len(self.agents):
            problems.append(
                f"every agent is frozen; set agents.{frozen[0]}.frozen=false or add one that learns"
            )
        if frozen and self.cohort.topology == "self":
            problems.append(
                f"cohort.topology=self asks no other agent, so that the frozen {frozen[0]} would vote for nobody; "
                "set cohort.topology=peers"
            )
        return problems

    def _reward_problems(self) -> list[str]:
        problems = []
        votes, learned = self.rollouts.votes, self.rollouts.per_problem
        if votes is not None and votes < learned:
            problems.append(
                f"rollouts.votes={votes} is below rollouts.per_problem={learned}, and what is learned from votes too; "
                f"set rollouts.votes to {learned} or more"
            )
        if self.data.twin is None:
            asking = [
                f"agents.{n}.wording=twin" for n, agent in self.agents.items() if agent.wording == "twin"
            ]
            asking += ["reward.rule=twin_vote"] if self.reward.rule == "twin_vote" else []
            problems += [f"{setting} needs data.twin, the other wording of data.train" for setting in asking]
        if self.reward.unparsed is not None and self.reward.rule not in ("entropy", "self_certainty"):
            problems.append(
                f"reward.unparsed is for the rules entropy and self_certainty, and reward.rule={self.reward.rule}; "
                "make it null"
            )
        return problems

    def _interaction_problems(self) -> list[str]:
        if self.interaction is None:
            return []
        kind, problems = self.interaction.kind, []
        if self.reward != RewardConfig():
            problems.append(f"interaction.kind={kind} has rewards of its own; leave `reward` out")
        if self.rollouts.votes is not None:
            problems.append(f"interaction.kind={kind} learns from all it samples; make rollouts.votes null")
        if self.loss.updates_per_rollout > 1:
            problems.append(
                f"interaction.kind={kind} makes one update a step; set loss.updates_per_rollout=1"
            )
        if kind == "maporl" and self.loss.scale == "batch":
            problems.append("interaction.kind=maporl scales turn by turn; set loss.scale to group or none")
        if len(self.agents) == 1 and (kind == "maporl" or not self.interaction.comas.self_evaluation):
            problems.append(
                f"interaction.kind={kind} needs a second agent; add one"
                + (", or set interaction.comas.self_evaluation=true" if kind == "comas" else "")
            )
        return problems

    def _evaluation_problems(self) -> list[str]:
        problems = []
        if self.evaluation.every and self.data.eval is None:
            problems.append(
                f"evaluation.every={self.evaluation.every} needs held-out problems; set data.eval or evaluation.every=0"
            )
        if self.checkpoints.best_by == "agreement" and self.cohort.topology == "self":
            problems.append(
                "checkpoints.best_by=agreement compares with another agent's votes, and cohort.topology=self has none; "
                "set checkpoints.best_by=vote_share"
            )
        if self.checkpoints.best_by == "accuracy" and not self.evaluation.every:
            problems.append(
                "checkpoints.best_by=accuracy needs evaluation; set evaluation.every or checkpoints.best_by=agreement"
            )
        return problems
