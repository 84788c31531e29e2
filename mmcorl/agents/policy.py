"""Policy: log-probabilities of completions, with the prompt and its images computed once per group."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from mmcorl.agents.backbones import Backbone
from mmcorl.agents.batches import PlainBatch, TokenGroup, TreeBatch, plain_batch, tree_batch, tree_mask
from mmcorl.agents.head import Measure, in_turns, last_logits, measuring
from mmcorl.agents.statistics import scaled, token_statistics

log = logging.getLogger(__name__)

_ATTENTION_LAYERS = {"full_attention", "sliding_attention"}


class Policy:
    """A model as GRPO sees it.

    `logprobs` gives ln p of every completion token at `temperature`, over the vocabulary without `banned` tokens:
    exactly the distribution that the rollout engine samples from.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        backbone: Backbone,
        *,
        temperature: float,
        banned: Sequence[int],
        shared_prefix: bool = True,
        autocast: torch.dtype | None = None,
    ) -> None:
        self.model, self.backbone = model, backbone
        self.forward: Callable[..., Any] = model
        """What runs the model: itself, or what a library that spreads its weights over ranks puts around it."""
        self.device = model.device
        """Where the model computes, and where its log-probabilities come out."""
        self.temperature, self.autocast = temperature, autocast
        self.banned = torch.tensor(list(banned), dtype=torch.long, device=model.device)
        self.shared_prefix = shared_prefix
        self.head_in_turns = True
        """Whether logits are made for some tokens at a time; else for all, where a family does more than its head."""
        self._head_is_last = False
        if shared_prefix and (reason := self._unshareable()):
            self._fall_back(reason)

    def logprobs(self, groups: Sequence[TokenGroup]) -> Tensor:
        """Log-probabilities in nats, float32, of all completion tokens of all groups in order: (sum of T_i,)."""
        return self.shared_logprobs(groups) if self.shared_prefix else self.plain_logprobs(groups)

    def shared_logprobs(self, groups: Sequence[TokenGroup]) -> Tensor:
        """As `logprobs`, one tree row a group."""
        return self._logprobs(*self._tree(groups))

    def plain_logprobs(self, groups: Sequence[TokenGroup]) -> Tensor:
        """As `logprobs`, one plain row a completion through the model's own masks and positions: K times the prompts."""
        return self._logprobs(*self._plain(groups))

    @torch.no_grad()
    def statistics(self, groups: Sequence[TokenGroup], names: Collection[str]) -> dict[str, Tensor]:
        """`names` out of `STATISTICS` and the `logprob` of all completion tokens in order, from one forward.

        Each is float32, in nats, (sum of T_i,), over the same distribution as in `logprobs`.
        """
        rows = self._tree(groups) if self.shared_prefix else self._plain(groups)
        measure = partial(
            token_statistics, temperature=self.temperature, banned=self.banned, names=tuple(names)
        )
        return dict(zip(("logprob", *names), self._measure(measure, *rows).unbind(-1), strict=True))

    @torch.no_grad()
    def check_shared_prefix(self, groups: Sequence[TokenGroup]) -> float | None:
        """Largest difference between the two ways on real inputs, in nats; falls back to plain rows if it is too large.

        None where plain rows are in use already. In bfloat16 the two ways round differently, so the limit is wider.
        """
        if not self.shared_prefix:
            return None
        gap = float((self.shared_logprobs(groups) - self.plain_logprobs(groups)).abs().max())
        limit = 1e-3 if self.autocast is None else 0.5
        if not gap <= limit:
            self._fall_back(
                f"its log-probabilities differ by {gap:.2g} nats from the full forward (limit {limit})"
            )
        return gap

    def _tree(self, groups: Sequence[TokenGroup]) -> tuple[TreeBatch, dict[str, Any]]:
        batch = tree_batch(groups)
        return batch, {"attention_mask": self._tree_masks(batch), "position_ids": batch.positions}

    def _plain(self, groups: Sequence[TokenGroup]) -> tuple[PlainBatch, dict[str, Any]]:
        batch = plain_batch(groups)
        return batch, {"attention_mask": batch.mask.to(self.device), **self._to_device(batch.tokens)}

    def _logprobs(self, batch: TreeBatch | PlainBatch, inputs: Mapping[str, Any]) -> Tensor:
        measure = partial(token_logprobs, temperature=self.temperature, banned=self.banned)
        return self._measure(measure, batch, inputs)[:, 0]

    def _measure(self, measure: Measure, batch: TreeBatch | PlainBatch, inputs: Mapping[str, Any]) -> Tensor:
        """Forward, and what `measure` makes of the logits that predict each target: (N, M)."""
        row, place, target = (values.to(self.device) for values in (batch.row, batch.logit, batch.target))
        head = self.model.get_output_embeddings() if self.head_in_turns else None
        if head is not None:
            with measuring(head, batch.logits_kept, row, place, target, measure) as measured:
                out = self._forward(batch, inputs)
            # A family may do more with what its head gives, such as cap it: then it takes logits, and all of them.
            if self._head_is_last or torch.equal(out, measured[0]):
                self._head_is_last = True
                return out[0]
            self.head_in_turns = False
        logits = self._forward(batch, inputs)[:, -batch.logits_kept :]
        return in_turns(measure, logits[row, place], target)

    def _forward(self, batch: TreeBatch | PlainBatch, inputs: Mapping[str, Any]) -> Tensor:
        """What the model puts out for the last `logits_kept` places of each row."""
        with torch.autocast(self.device.type, dtype=self.autocast, enabled=self.autocast is not None):
            return self.forward(
                input_ids=batch.ids.to(self.device),
                use_cache=False,
                **last_logits(self.model, batch.logits_kept),
                **self._to_device(batch.vision),
                **inputs,
            ).logits

    def _tree_masks(self, batch: TreeBatch) -> Tensor | dict[str, Tensor]:
        """The tree's attention mask; where kinds of layers differ, one for each kind."""
        config = self.model.config.get_text_config()
        kinds = _layer_kinds(config)
        image_tokens = None
        if self.backbone.bidirectional_images:
            image_tokens = torch.isin(batch.ids, torch.tensor(sorted(self.backbone.placeholder_ids())))
        masks = {
            kind: self._mask_values(
                tree_mask(batch, config.sliding_window if kind == "sliding_attention" else None, image_tokens)
            )
            for kind in sorted(kinds)
        }
        needs_dict = self.backbone.bidirectional_images or len(masks) > 1
        return masks if needs_dict else next(iter(masks.values()))

    def _mask_values(self, attends: Tensor) -> Tensor:
        """The mask as numbers that are added to the scores, made once: of booleans every layer would make its own."""
        dtype = self.autocast or self.model.dtype
        return torch.zeros(attends.shape, dtype=dtype, device=self.device).masked_fill_(
            ~attends.to(self.device), torch.finfo(dtype).min
        )

    def _to_device(self, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        return {name: tensor.to(self.device, non_blocking=True) for name, tensor in tensors.items()}

    def _unshareable(self) -> str | None:
        """Why this model cannot take tree rows; None if it can."""
        if stateful := _layer_kinds(self.model.config.get_text_config()) - _ATTENTION_LAYERS:
            return f"its layers of kind {', '.join(sorted(stateful))} carry state along a row"
        if self.model.config._attn_implementation not in ("sdpa", "eager"):
            return f"attention {self.model.config._attn_implementation!r} takes no mask of one's own"
        return None

    def _fall_back(self, reason: str) -> None:
        self.shared_prefix = False
        log.warning(
            "%s: prompts are computed once a completion, not once a group: %s",
            type(self.model).__name__,
            reason,
        )


def token_logprobs(logits_nv: Tensor, target: Tensor, temperature: float, banned: Tensor) -> Tensor:
    """ln softmax(logits / temperature) of targets (N,), over the vocabulary without `banned`: (N, 1), float32."""
    scaled_nv = scaled(logits_nv, temperature, banned)
    return scaled_nv.gather(-1, target[:, None]) - scaled_nv.logsumexp(-1, keepdim=True)


def _layer_kinds(text_config: object) -> set[str]:
    """Kinds of the text layers, as transformers names them."""
    kinds = getattr(text_config, "layer_types", None)
    if kinds is None:
        return {"sliding_attention" if getattr(text_config, "sliding_window", None) else "full_attention"}
    return set(kinds)
