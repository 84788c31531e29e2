"""Settings of the agents and of how they sample."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from mmcorl.config.section import Section

Part = Literal["vision", "projector", "text"]
Dtype = Literal["float32", "bfloat16"]
Attention = Literal["sdpa", "eager"]
Sharding = Literal["none", "zero2", "zero3", "fsdp2"]
Offload = Literal["optimizer", "parameters"]


class LoraConfig(Section):
    rank: int = Field(default=32, ge=1)
    """Rank of each adapter."""
    alpha: float = Field(default=64.0, gt=0)
    """An adapter's output is scaled by `alpha / rank`."""
    targets: tuple[str, ...] | None = None
    """Names of the linear layers that get an adapter, as in `[q_proj, v_proj]`; null takes all but the output head."""
    parts: tuple[Part, ...] = ("text",)
    """Parts of the model whose layers get adapters."""


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
    dtype: Dtype = "float32"
    """Type of the forward pass; weights and optimiser state stay float32. With `lora` the model's own weights have this
    type too, and the adapters stay float32."""
    freeze: tuple[Part, ...] = ()
    """Parts of the model that are not trained."""
    lora: LoraConfig | None = None
    """Train low-rank adapters and leave the model's own weights as they are; null trains the weights."""
    quantize: Literal["4bit", "8bit"] | None = None
    """Hold the weights that are not trained in 4 or 8 bits (bitsandbytes); needs `lora`."""
    sharding: Sharding = "none"
    """How weights, gradients and optimiser state lie over the agent's ranks: whole on each (none), the last two in parts
    (zero2), or all three in parts (zero3, fsdp2). zero2 and zero3 are DeepSpeed's; see docs/scale.md."""
    offload: tuple[Offload, ...] = ()
    """What a sharded agent keeps in the host's memory instead of the GPU's."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass: less memory, about a third more time."""
    attention: Attention = "sdpa"
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
    def _adapters_beside_weights_at_rest(self) -> AgentConfig:
        if self.quantize is not None and self.lora is None:
            raise ValueError(
                f"quantize={self.quantize} holds weights that are not trained in few bits, and without lora they are; "
                "set lora.rank, or quantize=null"
            )
        if self.lora is None:
            return self
        if self.frozen:
            raise ValueError("lora trains adapters, and frozen=true trains nothing; make lora null")
        if frozen := [part for part in self.lora.parts if part in self.freeze]:
            raise ValueError(
                f"lora.parts gives {', '.join(frozen)} adapters, and freeze keeps it from learning; name it in one of them"
            )
        return self

    @model_validator(mode="after")
    def _a_device_for_each_rank(self) -> AgentConfig:
        if self.devices is not None and len(self.devices) != self.ranks:
            raise ValueError(
                f"devices={list(self.devices)} names {len(self.devices)} GPUs for ranks={self.ranks}; "
                "give one for each rank, or null"
            )
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
    adapters: Literal["merged", "apart"] = "merged"
    """How vLLM gets what an agent with `lora` has learnt: added to the model's weights, all of which are handed over
    (merged), or as adapters beside the model (apart), which takes adapters of the text part only."""
    sync_dir: Path | None = None
    """Folder through which a server gets new weights, seen under this path by both; null makes one on this machine."""


class RolloutsConfig(Section):
    engine: Literal["transformers", "vllm"] = "transformers"
    """What samples: the model being trained itself, or vLLM with a second copy of the weights; see docs/vllm.md."""
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
    """Most tokens that the transformers engine holds in one batch, each completion with its prompt and `max_tokens`."""
    vllm: VLLMConfig = VLLMConfig()
    """Settings of `engine=vllm`."""
