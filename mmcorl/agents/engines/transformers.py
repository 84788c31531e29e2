"""Sampling with the policy's own model: each prompt once, then K completions from its key-value cache."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from mmcorl.agents.batches import PromptBatch, prompt_batch
from mmcorl.agents.engines import Sampled
from mmcorl.agents.head import last_logits
from mmcorl.agents.processors import Prompt
from mmcorl.agents.statistics import logprobs_of


class TransformersEngine:
    """Needs no second copy of the weights, so sampler and policy never differ by more than rounding."""

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        stop_ids: Sequence[int],
        banned: Sequence[int],
        batch_tokens: int,
        autocast: torch.dtype | None = None,
    ) -> None:
        self.model = model
        self.stop_ids = torch.tensor(list(stop_ids), device=model.device)
        self.banned = torch.tensor(list(banned), dtype=torch.long, device=model.device)
        self.batch_tokens, self.autocast = batch_tokens, autocast
        self.whole: Callable[[], AbstractContextManager[None]] = nullcontext
        """Open while sampling: where weights lie over ranks it makes them whole."""
        # transformers 5.24 renamed the argument.
        self.cache_name = (
            "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"
        )

    @contextmanager
    def awake(self) -> Iterator[None]:
        """See `Engine.awake`."""
        training = self.model.training
        self.model.eval()
        try:
            with self.whole():
                yield
        finally:
            self.model.train(training)

    @torch.no_grad()
    def sample(
        self,
        prompts: Sequence[Prompt],
        seeds: Sequence[int] | None,
        samples: int,
        max_tokens: int,
        temperature: float,
        top_p: float = 1.0,
    ) -> list[list[Sampled]]:
        """See `Engine.sample`. A prompt's completions do not depend on the prompts beside it."""
        results: dict[int, list[Sampled]] = {}
        with torch.autocast(self.model.device.type, dtype=self.autocast, enabled=self.autocast is not None):
            for indices in self._batches(prompts, samples, max_tokens):
                batch = prompt_batch([prompts[i] for i in indices])
                uniform = None
                if seeds is not None:
                    uniform = torch.stack([sampling_noise(seeds[i], samples, max_tokens) for i in indices])
                results |= zip(
                    indices,
                    self._sample_batch(batch, uniform, max_tokens, temperature, top_p),
                    strict=True,
                )
        return [results[i] for i in range(len(prompts))]

    def _batches(self, prompts: Sequence[Prompt], samples: int, max_tokens: int) -> list[list[int]]:
        """Indices of prompts that go together: of like length, within `batch_tokens`."""
        batches: list[list[int]] = []
        for i in sorted(range(len(prompts)), key=lambda i: -len(prompts[i].ids)):
            longest = len(prompts[batches[-1][0]].ids) if batches else 0
            if batches and (len(batches[-1]) + 1) * samples * (longest + max_tokens) <= self.batch_tokens:
                batches[-1].append(i)
            else:
                batches.append([i])
        return batches

    def _sample_batch(
        self, batch: PromptBatch, uniform: Tensor | None, max_tokens: int, temperature: float, top_p: float
    ) -> list[list[Sampled]]:
        """`uniform` (B, K, max_tokens), or None for greedy."""
        device = self.model.device
        n_prompts, samples = len(batch.ids), 1 if uniform is None else uniform.shape[1]
        cache = DynamicCache(config=self.model.config)
        mask = batch.mask.to(device)
        logits = self._forward(
            batch.ids.to(device),
            mask,
            batch.positions.to(device),
            cache,
            **{name: value.to(device) for name, value in (batch.tokens | batch.vision).items()},
        )
        _take_rows(cache, torch.arange(n_prompts, device=device).repeat_interleave(samples))
        state = _Rows.start(n_prompts * samples, max_tokens, device)
        mask = mask.repeat_interleave(samples, 0)
        position = batch.next_position.to(device).repeat_interleave(samples)
        logits = logits.repeat_interleave(samples, 0)
        noise = None if uniform is None else uniform.flatten(0, 1).to(device)
        for step in range(max_tokens):
            logprobs = logprobs_of(logits, temperature, self.banned)
            token = _drawn(logprobs, None if noise is None else noise[state.live, step], top_p)
            logprob = logprobs.gather(-1, token[:, None])[:, 0]
            keep = state.write(step, token, logprob, torch.isin(token, self.stop_ids))
            if step + 1 == max_tokens or not keep.any():
                break
            if not keep.all():
                token, mask, position = token[keep], mask[keep], position[keep]
                _take_rows(cache, keep.nonzero()[:, 0])
            mask = torch.nn.functional.pad(mask, (0, 1), value=1)
            where = position[:, None].expand(*batch.positions.shape[:-2], -1, 1)
            logits = self._forward(token[:, None], mask, where, cache)
            position = position + 1
        rows = state.finish()
        return [rows[i * samples : (i + 1) * samples] for i in range(n_prompts)]

    def _forward(
        self, ids: Tensor, mask: Tensor, positions: Tensor, cache: DynamicCache, **inputs: Any
    ) -> Tensor:
        """Logits of the last position, (B, V); the cache grows."""
        output = self.model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            use_cache=True,
            **last_logits(self.model, 1),
            **{self.cache_name: cache},
            **inputs,
        )
        return output.logits[:, -1].float()


def _drawn(logprobs: Tensor, uniform: Tensor | None, top_p: float) -> Tensor:
    """A token for each row, by inversion of the cumulative distribution at `uniform`; without it the likeliest."""
    if uniform is None:
        return logprobs.argmax(-1)
    # In double precision, and searched from the right, a token of probability zero cannot be drawn.
    probabilities = logprobs.double().exp()
    cumulative = (probabilities if top_p == 1 else nucleus(probabilities, top_p)).cumsum(-1)
    token = torch.searchsorted(cumulative, uniform[:, None] * cumulative[:, -1:], right=True)[:, 0]
    # Logits that are not numbers end past the vocabulary; the agent refuses their log-probabilities.
    return token.clamp(max=logprobs.shape[-1] - 1)


def nucleus(probabilities: Tensor, top_p: float) -> Tensor:
    """Probabilities (..., V) with all but the largest that together reach `top_p` set to zero (Holtzman et al. 2020)."""
    ordered, order = probabilities.sort(dim=-1, descending=True, stable=True)
    outside = ordered.cumsum(-1) - ordered >= top_p
    return probabilities.masked_fill(torch.zeros_like(outside).scatter(-1, order, outside), 0.0)


def sampling_noise(seed: int, samples: int, max_tokens: int) -> Tensor:
    """Uniform numbers in [0, 1), (samples, max_tokens), float64, a function of the seed alone."""
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(samples, max_tokens, generator=generator, dtype=torch.float64)


def _take_rows(cache: DynamicCache, rows: Tensor) -> None:
    """Make the cache hold these of its rows, some perhaps several times."""
    # The one way that all kinds of layers have, those that carry a state included.
    cache.reorder_cache(rows)  # pyright: ignore[reportArgumentType]


@dataclass
class _Rows:
    """Tokens written so far; `live` are the indices of rows that still grow."""

    tokens: Tensor
    logprobs: Tensor
    lengths: Tensor
    stopped: Tensor
    live: Tensor

    @staticmethod
    def start(rows: int, max_tokens: int, device: torch.device) -> _Rows:
        return _Rows(
            tokens=torch.zeros(rows, max_tokens, dtype=torch.long, device=device),
            logprobs=torch.zeros(rows, max_tokens, device=device),
            lengths=torch.zeros(rows, dtype=torch.long, device=device),
            stopped=torch.zeros(rows, dtype=torch.bool, device=device),
            live=torch.arange(rows, device=device),
        )

    def write(self, step: int, token: Tensor, logprob: Tensor, stops: Tensor) -> Tensor:
        """Record one token a live row; returns which of these rows go on."""
        self.tokens[self.live, step] = token
        self.logprobs[self.live, step] = logprob
        self.lengths[self.live] = step + 1
        self.stopped[self.live] = stops
        self.live = self.live[~stops]
        return ~stops

    def finish(self) -> list[Sampled]:
        tokens, logprobs = self.tokens.cpu(), self.logprobs.cpu()
        return [
            Sampled(tokens[i, :length], logprobs[i, :length], stopped)
            for i, (length, stopped) in enumerate(
                zip(self.lengths.tolist(), self.stopped.tolist(), strict=True)
            )
        ]
