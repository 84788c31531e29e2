"""Rollout engines: prompts in, sampled token ids with their log-probabilities out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from mmcorl.agents.processors import Prompt


@dataclass(frozen=True)
class Sampled:
    """One completion: token ids and log-probabilities (T,), the stop token included.

    `finished` is False when `max_tokens` came before a stop token.
    """

    token_ids: Tensor
    logprobs: Tensor
    finished: bool


class Engine(Protocol):
    """What every engine offers."""

    def sample(
        self, prompts: Sequence[Prompt], noise: Sequence[Tensor] | None, max_tokens: int, temperature: float
    ) -> list[list[Sampled]]:
        """K completions for each prompt, in order, with log-probabilities at `temperature`.

        `noise` holds uniform numbers in [0, 1), one tensor (K, max_tokens) for each prompt: the completions are a
        function of prompt, weights and noise alone, however prompts are batched. Without noise, one greedy
        completion each.
        """
        ...
