"""Agent: one model behind one interface. A text LLM and a VLM look the same from outside."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch.nn import Dropout
from transformers import AutoConfig, PreTrainedModel

from mmcorl.agents import adapters
from mmcorl.agents.adapter_files import base_of
from mmcorl.agents.backbones import Backbone, backbone_for
from mmcorl.agents.engines import Engine, Sampled
from mmcorl.agents.engines.choice import open_engine
from mmcorl.agents.policy import Policy
from mmcorl.agents.processors import Prompt, PromptBuilder
from mmcorl.agents.quantization import keep_trainable, loading_options
from mmcorl.agents.whole import in_host_memory
from mmcorl.config import AgentConfig, ImagesConfig, PromptConfig, RolloutsConfig
from mmcorl.errors import MmcorlError
from mmcorl.problems import Completion, Problem, RolloutGroup

# Pixels of a large image can take 25 MB, so a whole evaluation set is not held at once.
_PROMPTS_HELD = 64


@dataclass(frozen=True)
class Agent:
    """A model with its prompts, its policy and its rollout engine, which always samples with the policy's weights."""

    name: str
    backbone: Backbone
    model: PreTrainedModel
    processor: Any
    prompts: PromptBuilder
    policy: Policy
    engine: Engine

    @staticmethod
    def load(
        name: str,
        agent: AgentConfig,
        prompt: PromptConfig = PromptConfig(),
        images: ImagesConfig = ImagesConfig(),
        rollouts: RolloutsConfig = RolloutsConfig(),
        device: torch.device | str = "cpu",
        seed: int = 0,
    ) -> Agent:
        """Load a model from a folder or the hub, in float32, with the parts named in `freeze` frozen.

        A folder of adapters brings the model that they belong to: with `lora` they go on learning beside it, otherwise
        they are added to its weights. New adapters begin as `seed` and the agent's name say. Raises MmcorlError where
        the model is missing or its family is not known.
        """
        base = base_of(agent.model)
        source = base or agent.model
        with _named(source):
            backbone = backbone_for(AutoConfig.from_pretrained(source))
            processor = backbone.load_processor(agent.model)
            options = loading_options(name, agent, backbone, torch.device(device))
            model = backbone.load_model(source, agent.attention, **options)
        _without_dropout(model)
        if agent.quantize is None:
            model.to(torch.device(device))  # pyright: ignore[reportArgumentType]
        else:  # bitsandbytes has put the weights there as it loaded them
            keep_trainable(model)
        if base is not None and agent.lora is None:
            model = adapters.merge_adapters(model, Path(agent.model))
        parts = {parameter: backbone.part_of(parameter) for parameter, _ in model.named_parameters()}
        if absent := set(agent.freeze) - set(parts.values()):
            raise MmcorlError(
                f"agents.{name}.freeze names {', '.join(sorted(absent))}, and {agent.model} has no such parameters; "
                "leave it out, or mend vision_names and projector_names of the model's backbone"
            )
        if agent.lora is None:
            for parameter_name, parameter in model.named_parameters():
                parameter.requires_grad_(parts[parameter_name] not in agent.freeze)
        else:
            first = noise_seed(("adapters", seed, name))
            adapters.add_adapters(name, model, backbone.part_of, agent.lora, source, first)
            if base is not None:
                adapters.load_adapters(name, model, Path(agent.model))
        if agent.gradient_checkpointing:
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        model.train()
        autocast = torch.bfloat16 if agent.dtype == "bfloat16" else None
        banned = sorted(backbone.placeholder_ids())
        return Agent(
            name=name,
            backbone=backbone,
            model=model,
            processor=processor,
            prompts=PromptBuilder(model, processor, backbone, prompt, images, rollouts.max_prompt_tokens),
            policy=Policy(
                model,
                backbone,
                temperature=rollouts.temperature,
                banned=banned,
                shared_prefix=agent.shared_prefix == "auto",
                autocast=autocast,
            ),
            engine=open_engine(
                name,
                agent.model_copy(update={"model": source}),
                rollouts,
                model,
                backbone,
                images,
                stop_ids(model, backbone.tokenizer(processor)),
            ),
        )

    def encode(self, problem: Problem) -> Prompt:
        """The problem as this model takes it."""
        return self.prompts.build(problem)

    def rollout(
        self,
        problems: Sequence[Problem],
        *,
        samples: int,
        max_tokens: int,
        noise_key: tuple[int | str, ...] | None,
        temperature: float = 1.0,
        top_p: float = 1.0,
    ) -> list[RolloutGroup]:
        """`samples` completions of each problem; with `noise_key` None, one greedy completion.

        The sampling noise of a problem depends on `noise_key` and its id alone, so a problem's completions do not
        depend on the ranks or batches that problems are spread over. Raises MmcorlError, which names the problem, for
        log-probabilities that are not numbers.
        """
        groups: list[RolloutGroup] = []
        with self.engine.awake():
            for start in range(0, len(problems), _PROMPTS_HELD):
                part = problems[start : start + _PROMPTS_HELD]
                seeds = None
                if noise_key is not None:
                    seeds = [noise_seed((*noise_key, problem.id)) for problem in part]
                prompts = [self.encode(problem) for problem in part]
                sampled = self.engine.sample(prompts, seeds, samples, max_tokens, temperature, top_p)
                groups += [
                    RolloutGroup(problem, tuple(self._completion(problem, s) for s in row))
                    for problem, row in zip(part, sampled, strict=True)
                ]
        return groups

    def snapshot(self, keep: bool = True) -> Callable[[Path], None]:
        """Copy the weights into host memory. What is returned writes the copy, at any time and from any thread.

        Where weights lie over ranks all ranks call this, and those that do not `keep` copy nothing.

        It writes a folder that `from_pretrained` reads: weights, configuration and processor. Of a model with adapters
        it writes these, and the name of the model that they belong to.
        """
        write_weights = (
            adapters.snapshot_adapters(self.model, keep)
            if adapters.has_adapters(self.model)
            else _snapshot_weights(self.model, keep)
        )

        def write(folder: Path) -> None:
            write_weights(folder)
            self.processor.save_pretrained(folder)

        return write

    def _completion(self, problem: Problem, sampled: Sampled) -> Completion:
        if sampled.logprobs.isnan().any():
            raise MmcorlError(
                f"agent {self.name} gives log-probabilities that are not numbers on problem {problem.id!r}; lower "
                f"optimizer.lr, or set agents.{self.name}.dtype=float32"
            )
        ids = sampled.token_ids.tolist()
        text = self.prompts.tokenizer.decode(ids, skip_special_tokens=True)
        return Completion(text, tuple(ids), tuple(sampled.logprobs.tolist()), sampled.finished)


def _snapshot_weights(model: PreTrainedModel, keep: bool) -> Callable[[Path], None]:
    copies: dict[int, torch.Tensor] = {}
    weights = {}
    for name, weight in model.state_dict(keep_vars=True).items():
        # Tied weights stay tied, by which save_pretrained knows to store them once.
        if id(weight) not in copies:
            copies[id(weight)] = in_host_memory(weight, keep)
        weights[name] = copies[id(weight)]
    return lambda folder: model.save_pretrained(folder, state_dict=dict(weights))


@contextmanager
def _named(model: str) -> Iterator[None]:
    """What transformers says of a model that it cannot load, as an MmcorlError that names the model."""
    try:
        yield
    except MmcorlError:
        raise
    except (OSError, ValueError, SafetensorError) as error:
        first_line = str(error).strip().partition("\n")[0]
        raise MmcorlError(f"cannot read a model from agents.*.model={model!r}: {first_line}") from error


def _without_dropout(model: PreTrainedModel) -> None:
    """Sampler, policy and reference are to be one distribution, and checkpointing needs the training mode."""
    for module in model.modules():
        if isinstance(module, Dropout):
            module.p = 0.0
        for name, value in vars(module).items():
            if "drop" in name and isinstance(value, float):
                setattr(module, name, 0.0)


def stop_ids(model: PreTrainedModel, tokenizer: Any) -> list[int]:
    """Every stop token of the generation config; the tokenizer's end of sequence where that names none.

    Raises MmcorlError where neither does.
    """
    declared = model.generation_config.eos_token_id if model.generation_config else None
    if declared is None:
        declared = tokenizer.eos_token_id
    if declared is None:
        raise MmcorlError(
            f"{model.name_or_path} names no stop token, so no completion would end; set eos_token_id in its "
            "generation_config.json"
        )
    return [declared] if isinstance(declared, int) else list(declared)


def noise_seed(key: tuple[int | str, ...]) -> int:
    """64 bits, as a signed number, that depend on the key alone."""
    digest = hashlib.blake2b(json.dumps(key).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
