"""The output head, a few tokens at a time: logits over the vocabulary never exist for a whole batch.

16,384 tokens over 152,000 words are 10 GB in float32, and their gradient as much again. So the head of the model is
asked only for the tokens that something is wanted of, in turns, and the backward pass makes each turn's logits anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import signature

import torch
from torch import Tensor
from torch.nn import Module
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

TOKENS_AT_ONCE = 1024

Measure = Callable[[Tensor, Tensor], Tensor]
"""Logits (N, V) and target tokens (N,) -> some numbers for each, (N, M) in float32."""


@contextmanager
def measuring(
    head: Module, kept: int, row: Tensor, place: Tensor, target: Tensor, measure: Measure
) -> Iterator[list[Tensor]]:
    """While open, `head` gives, instead of logits, what `measure` makes of some of them: (1, N, M), also in the list.

    Those are the ones at (`row`, `place`) of the last `kept` places. All stays inside the model's own forward, where
    weights that are spread over ranks are whole.
    """
    logits_of, measured = head.forward, []

    def of_hidden(hidden_nd: Tensor, target_n: Tensor) -> Tensor:
        return measure(logits_of(hidden_nd), target_n)

    def forward(hidden_btd: Tensor) -> Tensor:
        measured.append(in_turns(of_hidden, hidden_btd[:, -kept:][row, place], target)[None])
        return measured[-1]

    head.forward = forward
    try:
        yield measured
    finally:
        del head.forward


def in_turns(measure: Measure, values_nx: Tensor, target: Tensor) -> Tensor:
    """`measure` of values (N, X) and targets (N,), of so many at once, made again in the backward pass: (N, M)."""
    turns = zip(values_nx.split(TOKENS_AT_ONCE), target.split(TOKENS_AT_ONCE), strict=True)
    return torch.cat(
        [checkpoint(measure, *turn, use_reentrant=False, preserve_rng_state=False) for turn in turns]
    )


def last_logits(model: PreTrainedModel, places: int) -> dict[str, int]:
    """What asks a model for the logits of the last places of each row alone; a few families have no such option."""
    return {"logits_to_keep": places} if "logits_to_keep" in signature(model.forward).parameters else {}
