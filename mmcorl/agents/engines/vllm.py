"""Sampling with vLLM inside the agent's own process, on the device that also trains."""

from __future__ import annotations

import importlib
import math
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from mmcorl.agents.adapters import base_weights, snapshot_adapters
from mmcorl.agents.engines import Sampled
from mmcorl.agents.engines.weights import named_weights
from mmcorl.agents.processors import Prompt
from mmcorl.config import VLLMConfig
from mmcorl.errors import MmcorlError

ADAPTERS = "adapters"
"""The name under which vLLM holds the agent's adapters."""

CPU_CACHE_BYTES = 1 << 30
"""Of vLLM's key-value cache where there is no GPU."""

_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)


@dataclass(frozen=True)
class VLLMModel:
    """What vLLM has to know of a model, wherever it runs.

    `source` is the folder or hub id that vLLM reads once, at its start; `max_length` bounds prompt and completion
    together; `image_options` go to the model's image processor and have to be those that the prompts are made with;
    `rank` is that of the adapters which vLLM is to apply itself, None where it is handed whole weights.
    """

    source: str
    model: PreTrainedModel
    trained: bool
    sees_images: bool
    stop_ids: Sequence[int]
    banned: Sequence[int]
    dtype: str
    max_length: int
    image_options: dict[str, Any]
    settings: VLLMConfig
    rank: int | None = None

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """What vLLM is to hold as the model's weights, by the names of the checkpoint."""
        return named_weights(self.model) if self.rank is None else base_weights(self.model)

    def options(self) -> dict[str, Any]:
        """The engine's arguments, by their names in Python."""
        settings = self.settings
        options: dict[str, Any] = {
            "model": self.source,
            "dtype": self.dtype,
            "max_model_len": self.max_length,
            "tensor_parallel_size": settings.tensor_parallel,
            "gpu_memory_utilization": settings.memory_share,
            "enforce_eager": settings.eager,
            "logprobs_mode": "processed_logprobs",  # those of the distribution that is sampled from
            "seed": 0,  # of no effect, every request has its own, but vLLM wants to seed the process
        }
        if self.sees_images:
            options["limit_mm_per_prompt"] = {"video": 0}
            options["mm_processor_kwargs"] = self.image_options
        if self.rank is not None:
            options |= {"enable_lora": True, "max_loras": 1, "max_lora_rank": _room_for(self.rank)}
        if not torch.cuda.is_available():
            options["kv_cache_memory_bytes"] = CPU_CACHE_BYTES
            options["enable_chunked_prefill"] = False  # a half-read prompt would rewind its noise: CUDA only
            options["hf_overrides"] = self._untied()
        return options

    def sampling(self, temperature: float, max_tokens: int, top_p: float = 1.0) -> dict[str, Any]:
        """The distribution to sample from: the policy's own, unless `top_p` is below 1. Temperature 0 is greedy."""
        return {
            "temperature": temperature,
            "max_tokens": max_tokens,
            "top_p": top_p,
            "top_k": 0,
            "min_p": 0.0,
            "repetition_penalty": 1.0,  # some generation configs ask for one, which no policy could learn from
            "stop_token_ids": list(self.stop_ids),
        }

    def check_prompt(self, prompt: Prompt, ids: Sequence[int]) -> None:
        """Raise MmcorlError unless vLLM made the same tokens of a prompt."""
        ours = prompt.ids.tolist()
        if ours == list(ids):
            return
        same = next((i for i, (a, b) in enumerate(zip(ours, ids, strict=False)) if a != b), 0)
        raise MmcorlError(
            f"vLLM reads problem {prompt.problem_id!r} as {len(ids)} tokens and the policy as {len(ours)}, the same up "
            f"to token {same}: its tokenizer or image processor has other files or settings. Set "
            "rollouts.engine=transformers, or start the server with the options in docs/vllm.md"
        )

    def _untied(self) -> dict[str, Any]:
        """On a CPU vLLM packs the output matrix, and a reload of tied embeddings would leave the packed copy behind."""
        untied: dict[str, Any] = {"tie_word_embeddings": False}
        config = self.model.config
        if config.get_text_config() is not config:
            untied["text_config"] = {"tie_word_embeddings": False}
        return untied


class VLLMEngine:
    """Holds a second copy of the weights, renewed whenever it wakes, and gives its memory back when it sleeps.

    vLLM is started when it is first needed. A completion depends on its seed, prompt and weights; the prompts beside
    it change it only where vLLM's kernels round differently for another batch size.
    """

    def __init__(self, served: VLLMModel) -> None:
        self.served = served
        self._llm: Any = None
        self._asleep = self._loaded = False
        self._adapters: Any = None

    @contextmanager
    def awake(self) -> Iterator[None]:
        """See `Engine.awake`. New weights are loaded before the cache gets its memory, to keep the peak low."""
        if self._llm is None:
            self._llm = start_vllm(self.served)
        level = self.served.settings.sleep
        if self._asleep:
            self._llm.wake_up(tags=["weights"])
        if self.served.trained or not self._loaded or level == 2:
            self._load_weights()
            self._loaded = True
        if self._asleep:
            self._llm.wake_up(tags=["kv_cache"])
            self._asleep = False
        try:
            yield
        finally:
            if level and _can_sleep():
                self._llm.sleep(level=level)
                self._asleep = True

    def sample(
        self,
        prompts: Sequence[Prompt],
        seeds: Sequence[int] | None,
        samples: int,
        max_tokens: int,
        temperature: float,
        top_p: float = 1.0,
    ) -> list[list[Sampled]]:
        """See `Engine.sample`. Greedy log-probabilities are those at temperature 1."""
        vllm = require_vllm()
        common = self.served.sampling(temperature if seeds else 0.0, max_tokens, top_p)
        common |= {"logprobs": 0, "detokenize": False}
        common["logit_bias"] = dict.fromkeys(self.served.banned, -math.inf) or None
        parameters = [
            vllm.SamplingParams(
                **common, n=samples if seeds else 1, seed=request_seed(seeds[i]) if seeds else None
            )
            for i in range(len(prompts))
        ]
        outputs = self._llm.generate(
            [_request(p) for p in prompts], parameters, use_tqdm=False, lora_request=self._adapters
        )
        for prompt, output in zip(prompts, outputs, strict=True):
            self.served.check_prompt(prompt, output.prompt_token_ids)
        return [[_sampled(completion) for completion in output.outputs] for output in outputs]

    def _load_weights(self) -> None:
        """What the policy has learnt, and an empty cache of everything made with the old weights."""
        lost = self._asleep and self.served.settings.sleep == 2
        if self.served.rank is None or not self._loaded or lost:
            self._llm.collective_rpc("reload_weights", kwargs={"weights_iterator": self.served.weights()})
        if self.served.rank is not None:
            self._load_adapters()
        self._llm.reset_mm_cache()
        self._llm.llm_engine.reset_encoder_cache()
        if not self._llm.reset_prefix_cache():
            raise RuntimeError("vLLM kept its prefix cache although no request is running")

    def _load_adapters(self) -> None:
        """vLLM reads adapters from a folder only."""
        request = importlib.import_module("vllm.lora.request").LoRARequest
        with tempfile.TemporaryDirectory(
            prefix="mmcorl-adapters-", dir=self.served.settings.sync_dir
        ) as folder:
            snapshot_adapters(self.served.model)(Path(folder))
            self._llm.llm_engine.add_lora(request(ADAPTERS, 1, folder, load_inplace=True))
        self._adapters = request(ADAPTERS, 1, folder)


def start_vllm(served: VLLMModel) -> Any:
    """Start vLLM in this process.

    Raises MmcorlError where it is not installed or refuses the model.
    """
    # vLLM reads these when it is imported; in a process of its own the weights could not be handed over in memory.
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    os.environ["VLLM_NO_USAGE_STATS"] = "1"
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    vllm = require_vllm()
    options = served.options() | {"disable_log_stats": True}
    if served.settings.sleep and _can_sleep():
        options["enable_sleep_mode"] = True
    if torch.distributed.is_initialized() and torch.distributed.get_world_size() > 1:
        options["distributed_executor_backend"] = "external_launcher"
    # vLLM binds torch's thread setting to its own use and seeds the process; neither is to leak into training.
    threads, set_num_threads, state = torch.get_num_threads(), torch.set_num_threads, torch.get_rng_state()
    try:
        llm = vllm.LLM(**options)
    except (ValueError, NotImplementedError) as error:
        raise MmcorlError(
            f"vLLM refuses {served.source}: {error}. Set rollouts.engine=transformers"
        ) from error
    finally:
        torch.set_num_threads = set_num_threads
        torch.set_num_threads(threads)
        torch.set_rng_state(state)
    return llm


def require_vllm() -> Any:
    """vLLM, imported. Raises MmcorlError where it is not installed."""
    try:
        return importlib.import_module("vllm")
    except ImportError as error:
        raise MmcorlError(
            f"rollouts.engine=vllm needs vLLM, which is not installed ({error}): pip install 'mmcorl[vllm]', or set "
            "rollouts.engine=transformers"
        ) from error


def _room_for(rank: int) -> int:
    """The smallest of the ranks that vLLM makes room for which is enough."""
    if rank > _RANKS[-1]:
        raise MmcorlError(
            f"vLLM applies adapters of rank {_RANKS[-1]} at most, and lora.rank={rank}; set rollouts.vllm.adapters=merged"
        )
    return next(room for room in _RANKS if room >= rank)


def request_seed(seed: int) -> int:
    """A prompt's seed as vLLM takes it, with room for the K seeds that follow on it, one a completion."""
    return seed & ((1 << 62) - 1)


def _can_sleep() -> bool:
    return importlib.import_module("vllm.platforms").current_platform.is_sleep_mode_available()


def _request(prompt: Prompt) -> dict[str, Any]:
    if not prompt.images:
        return {"prompt_token_ids": prompt.ids.tolist()}
    return {"prompt": prompt.text, "multi_modal_data": {"image": list(prompt.images)}}


def _sampled(completion: Any) -> Sampled:
    ids = list(completion.token_ids)
    logprobs = [step[token].logprob for token, step in zip(ids, completion.logprobs, strict=True)]
    return Sampled(_ids(ids), torch.tensor(logprobs, dtype=torch.float32), completion.finish_reason == "stop")


def _ids(ids: Sequence[int]) -> Tensor:
    return torch.tensor(ids, dtype=torch.long)
