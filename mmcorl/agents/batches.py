"""Prompts and completions -> the tensors of one forward pass, padded with zeros.

A group is laid out as one *tree row*, `[prefix | c1 | c2 | ...]`: every completion token sees the prefix and its own
completion only, and its position goes on from the prefix, so that the prompt with its images is computed once for
the whole group. A *plain row* for each completion, `[prefix | c]`, is the reference, and the way of models that carry
state along a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence

from mmcorl.agents.processors import Prompt


@dataclass(frozen=True)
class TokenGroup:
    """One prompt and the token ids (T_i,) of those of its completions that are to be computed."""

    prompt: Prompt
    completions: Sequence[Tensor]


@dataclass(frozen=True)
class PromptBatch:
    """Left-padded prompts: ids and mask (B, P), positions (B, P) or (3, B, P), next_position (B,)."""

    ids: Tensor
    mask: Tensor
    positions: Tensor
    next_position: Tensor
    tokens: dict[str, Tensor]
    vision: dict[str, Tensor]


@dataclass(frozen=True)
class TreeBatch:
    """Tree rows of S = P + L tokens: a left-padded prefix (P) and its packed completions, right-padded (L).

    `segment` (B, S) is 0 on the prefix, k on completion k and -1 on padding; `order` (B, S) counts tokens along
    prefix and completion. `row`, `logit` and `target` (N,) name for every completion token, in order, its row, the
    place of the logits that predict it among the row's last L + 1, and its id. A completion's last token predicts
    nothing and is left out of the row.
    """

    ids: Tensor
    segment: Tensor
    order: Tensor
    positions: Tensor
    tokens: dict[str, Tensor]
    vision: dict[str, Tensor]
    row: Tensor
    logit: Tensor
    target: Tensor
    logits_kept: int


@dataclass(frozen=True)
class PlainBatch:
    """Right-padded plain rows, one a completion: ids and mask (N, S); the rest as in `TreeBatch`."""

    ids: Tensor
    mask: Tensor
    tokens: dict[str, Tensor]
    vision: dict[str, Tensor]
    row: Tensor
    logit: Tensor
    target: Tensor
    logits_kept: int


def prompt_batch(prompts: Sequence[Prompt]) -> PromptBatch:
    """Lay out prompts alone, for the rollout engine."""
    return PromptBatch(
        ids=_left_pad([p.ids for p in prompts]),
        mask=_left_pad([torch.ones_like(p.ids) for p in prompts]),
        positions=_left_pad([p.positions for p in prompts]),
        next_position=torch.tensor([p.next_position for p in prompts]),
        tokens={name: _left_pad([p.tokens[name] for p in prompts]) for name in prompts[0].tokens},
        vision=_join_vision(prompts),
    )


def tree_batch(groups: Sequence[TokenGroup]) -> TreeBatch:
    """Lay out each group as one tree row."""
    prefix = prompt_batch([group.prompt for group in groups])
    inputs = [[c[:-1] for c in group.completions] for group in groups]
    tail = _right_pad([torch.cat(row) for row in inputs])
    offset = _right_pad([torch.cat([torch.arange(len(c)) for c in row]) for row in inputs])
    owner = [torch.cat([torch.full_like(c, k) for k, c in enumerate(row, start=1)]) for row in inputs]
    tail_positions = prefix.next_position[:, None] + offset
    if prefix.positions.ndim == 3:
        tail_positions = tail_positions.expand(prefix.positions.shape[0], -1, -1)
    logit = []
    for group in groups:
        start = 0
        for completion in group.completions:
            places = torch.arange(start, start + len(completion))
            places[0] = 0  # every completion's first token is predicted at the end of the prefix
            logit.append(places)
            start += len(completion) - 1
    return TreeBatch(
        ids=torch.cat([prefix.ids, tail], dim=1),
        segment=torch.cat([prefix.mask - 1, _right_pad(owner, -1)], dim=1),
        order=torch.cat([prefix.mask.cumsum(1) - 1, prefix.mask.sum(1, keepdim=True) + offset], dim=1),
        positions=torch.cat([prefix.positions, tail_positions], dim=-1),
        tokens={name: pad(value, (0, tail.shape[1])) for name, value in prefix.tokens.items()},
        vision=prefix.vision,
        row=torch.cat([torch.full_like(c, i) for i, group in enumerate(groups) for c in group.completions]),
        logit=torch.cat(logit),
        target=torch.cat([c for group in groups for c in group.completions]),
        logits_kept=tail.shape[1] + 1,
    )


def plain_batch(groups: Sequence[TokenGroup]) -> PlainBatch:
    """Lay out one plain row for every completion; prompts and images are repeated."""
    pairs = [(group.prompt, completion) for group in groups for completion in group.completions]
    rows = [torch.cat([prompt.ids, completion]) for prompt, completion in pairs]
    ids = _right_pad(rows)
    kept = ids.shape[1] - min(len(prompt.ids) for prompt, _ in pairs) + 1
    first_kept = ids.shape[1] - kept
    return PlainBatch(
        ids=ids,
        mask=_right_pad([torch.ones_like(row) for row in rows]),
        tokens={
            name: _right_pad([pad(prompt.tokens[name], (0, len(completion))) for prompt, completion in pairs])
            for name in pairs[0][0].tokens
        },
        vision=_join_vision([prompt for prompt, _ in pairs]),
        row=torch.cat([torch.full_like(c, i) for i, (_, c) in enumerate(pairs)]),
        logit=torch.cat([torch.arange(len(c)) + len(prompt.ids) - 1 - first_kept for prompt, c in pairs]),
        target=torch.cat([c for _, c in pairs]),
        logits_kept=kept,
    )


def tree_mask(batch: TreeBatch, window: int | None = None, image_tokens: Tensor | None = None) -> Tensor:
    """Which position attends to which, True where it does: (B, 1, S, S).

    `window` is the most tokens a position looks back, itself included. Tokens of one image, a run of `image_tokens`
    (B, S), also attend to each other in both directions. Padding attends to itself alone, as a row of a softmax must
    not be empty.
    """
    query, key = batch.segment[:, :, None], batch.segment[:, None, :]
    distance = batch.order[:, :, None] - batch.order[:, None, :]
    attends = (key == query) | (key == 0)
    attends &= (key >= 0) & (query >= 0) & (distance >= 0)
    if window is not None:
        attends &= distance < window
    if image_tokens is not None:
        starts = image_tokens & ~pad(image_tokens, (1, -1))
        image = starts.cumsum(1) * image_tokens
        attends |= (image[:, :, None] == image[:, None, :]) & image_tokens[:, :, None]
    attends |= torch.eye(batch.ids.shape[1], dtype=torch.bool, device=attends.device)
    return attends[:, None]


def _left_pad(rows: Sequence[Tensor]) -> Tensor:
    """(..., P_i) each -> (..., B, P)."""
    longest = max(row.shape[-1] for row in rows)
    return torch.stack([pad(row, (longest - row.shape[-1], 0)) for row in rows], dim=-2)


def _right_pad(rows: Sequence[Tensor], value: int = 0) -> Tensor:
    return pad_sequence(list(rows), batch_first=True, padding_value=value)


def _join_vision(prompts: Sequence[Prompt]) -> dict[str, Tensor]:
    """Image inputs of several prompts, in order; prompts without images add none."""
    names = {name: None for prompt in prompts for name in prompt.vision}
    axes = prompts[0].vision_axes
    return {
        name: _join([p.vision[name] for p in prompts if name in p.vision], axes.get(name, 0))
        for name in names
    }


def _join(tensors: Sequence[Tensor], axis: int) -> Tensor:
    """Concatenated along `axis`; along the other axes all are filled up with zeros to the longest."""
    longest = torch.tensor([tensor.shape for tensor in tensors]).amax(0).tolist()
    filled = []
    for tensor in tensors:
        missing = [most - size for most, size in zip(longest, tensor.shape, strict=True)]
        missing[axis] = 0
        # `pad` counts from the last axis, and before and after.
        filled.append(pad(tensor, [n for most in reversed(missing) for n in (0, most)]))
    return torch.cat(filled, dim=axis)
