"""Rollout engines: prompts in, sampled token ids with their log-probabilities out."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
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

    def awake(self) -> AbstractContextManager[None]:
        """Open it around calls of `sample`: inside, the engine holds the policy's present weights and the memory it needs.

        All ranks of an agent open it together, also those that have nothing to sample.
        """
        ...

    def sample(
        self,
        prompts: Sequence[Prompt],
        seeds: Sequence[int] | None,
        samples: int,
        max_tokens: int,
        temperature: float,
        top_p: float = 1.0,
    ) -> list[list[Sampled]]:
        """`samples` completions of each prompt, in order, with log-probabilities at `temperature`.

        The noise of a prompt's completions is a function of its seed, 64 bits as a signed number. Without seeds, one
        greedy completion each. With `top_p` below 1, only the most probable tokens that together have that share are drawn;
        log-probabilities stay those of all tokens, or are those of the drawn ones, as an engine has them.
        """
        ...
