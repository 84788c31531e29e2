"""Learner: rollouts and advantages in, optimiser updates out."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from mmcorl.agents.adapters import BasePolicy
from mmcorl.agents.agent import Agent
from mmcorl.agents.batches import TokenGroup
from mmcorl.agents.policy import Policy
from mmcorl.config import LossConfig, Offload, OptimizerConfig, Sharding
from mmcorl.errors import MmcorlError
from mmcorl.problems import Completion, Problem, RolloutGroup
from mmcorl.training import grpo
from mmcorl.training.optimizers import set_learning_rates, share_of_peak
from mmcorl.training.sharding import open_layout
from mmcorl.training.world import World


@dataclass(frozen=True)
class LiveGroup:
    """The completions of one group that carry gradient, in order, with the advantage and loss weight (n,) of each."""

    group: TokenGroup
    completions: tuple[Completion, ...]
    advantages: Tensor
    weights: Tensor
    old: tuple[Tensor, ...] | None = None
    """Log-probabilities (T_i,) of each completion's tokens before the first update, where they were taken already."""


Observed = Mapping[str, Sequence[Sequence[Tensor]]]
"""Per token: statistic -> group -> completion -> (T_i,)."""


class Learner:
    """AdamW on one agent's policy.

    Every completion brings its weight in the loss, taken from the full batch over all ranks, and gradients are summed
    over micro-batches and ranks. So an update is the same however the batch is cut, and groups and completions
    without advantage cost no forward at all.
    """

    def __init__(
        self,
        agent: Agent,
        world: World,
        loss: LossConfig,
        optimizer: OptimizerConfig,
        *,
        total_updates: int,
        batch_tokens: int,
        reference: Policy | BasePolicy | None = None,
        sharding: Sharding = "none",
        offload: Collection[Offload] = (),
    ) -> None:
        self.agent, self.world, self.loss, self.reference = agent, world, loss, reference
        self.batch_tokens = batch_tokens
        if not any(parameter.requires_grad for parameter in agent.model.parameters()):
            raise MmcorlError(
                f"agents.{agent.name}.freeze names every part of the model; nothing is left to train"
            )
        self.layout = open_layout(agent, world, optimizer, sharding, offload)
        self.settings, self.total_updates = optimizer, total_updates

    def whole(self) -> AbstractContextManager[None]:
        """Open it around forwards without gradient; all ranks open it together. See `Layout.whole`."""
        return self.layout.whole()

    def observe(self, rollouts: Sequence[RolloutGroup], names: Collection[str]) -> Observed:
        """Statistics `names` and the `logprob` of every token of every completion, before anything is learned.

        Completions of a group that are the same tokens are measured once: rounding would make a contrast of them.
        """
        said = [{c.token_ids: c for c in rollout.completions} for rollout in rollouts]
        groups = [
            self._group(rollout.problem, tuple(once.values()))
            for rollout, once in zip(rollouts, said, strict=True)
        ]
        found: dict[str, list[tuple[Tensor, ...]]] = {n: [()] * len(groups) for n in ("logprob", *names)}
        with self.whole():
            for places in packed(map(row_tokens, groups), self.batch_tokens):
                lengths = [len(c) for i in places for c in groups[i].completions]
                statistics = self.agent.policy.statistics([groups[i] for i in places], names)
                for name, values in statistics.items():
                    rows = iter(values.split(lengths))
                    for i in places:
                        measured = dict(zip(said[i], rows, strict=False))
                        found[name][i] = tuple(measured[c.token_ids] for c in rollouts[i].completions)
        return found

    def learn(
        self,
        rollouts: Sequence[RolloutGroup],
        advantages: Tensor,
        weights: Tensor,
        updates_done: int,
        observed: Observed | None = None,
    ) -> dict[str, float]:
        """`loss.updates_per_rollout` updates, each on an equal share of this rank's groups (B).

        `advantages` and `weights` are (B, K); completions of weight 0 are left out. `updates_done` counts those of
        earlier steps. `observed` is what `observe` gave for these rollouts, where it was asked. Returns the metrics of
        these updates, the same on every rank.
        """
        n_shares = self.loss.updates_per_rollout
        size = len(rollouts) // n_shares
        old = [None] * len(rollouts) if observed is None else observed["logprob"]
        live = [self._live(*row) for row in zip(rollouts, advantages, weights, old, strict=True)]
        shares = [[g for g in live[i * size : (i + 1) * size] if g is not None] for i in range(n_shares)]
        batches = [self._batches(share) for share in shares]
        # With one share the policy that sampled is the one that learns; otherwise it is kept before it changes.
        before: list[list[Tensor | None]] = [[None] * len(share) for share in batches]
        if n_shares > 1:
            with self.whole():
                before = [[self._before(batch) for batch in share] for share in batches]
        totals = [
            self._update(list(zip(*share, strict=True)), updates_done + i)
            for i, share in enumerate(zip(batches, before, strict=True))
        ]
        return {name: sum(total[name] for total in totals) / n_shares for name in totals[0]}

    def snapshot(self) -> Callable[[Path], None]:
        """Copy the optimiser's state into host memory; what is returned writes it into a checkpoint's folder."""
        write = self.layout.snapshot()
        return lambda folder: write(folder / "optimizer.safetensors")

    def load(self, folder: Path) -> None:
        """Take up the optimiser's state of a checkpoint."""
        self.layout.load(folder / "optimizer.safetensors")

    def _update(
        self, batches: Sequence[tuple[list[LiveGroup], Tensor | None]], update: int
    ) -> dict[str, float]:
        """Gradients of every micro-batch, summed over ranks, clipped, and one step of the optimiser."""
        share = share_of_peak(self.settings, update, self.total_updates)
        set_learning_rates(self.layout.optimizer, share)
        sums = torch.zeros(len(_STATISTICS), device=self.world.device)
        for left, (groups, old) in zip(range(len(batches))[::-1], batches, strict=True):
            loss, statistics = self._loss(groups, old)
            self.layout.backward(loss, last=left == 0)
            sums += statistics
        self.world.sum([sums])
        norm = self.layout.step()
        if not math.isfinite(norm):
            raise MmcorlError(
                f"the gradient of agent {self.agent.name} is not finite; lower optimizer.lr, or set "
                f"agents.{self.agent.name}.dtype=float32"
            )
        self.layout.zero_grad()  # else they would take room until the next update
        total = dict(zip(_STATISTICS, sums.tolist(), strict=True))
        tokens = max(total.pop("tokens"), 1.0)
        means = {name: total[name] / tokens for name in _STATISTICS[2:]}
        return {"loss": total["loss"], **means, "grad_norm": norm, "lr": self.settings.lr * share}

    def _loss(self, groups: Sequence[LiveGroup], old: Tensor | None) -> tuple[Tensor, Tensor]:
        """This micro-batch's share of the loss, and sums over its tokens for the metrics."""
        completions = [c for g in groups for c in g.completions]
        reference = None
        if self.reference is not None:
            with torch.no_grad():
                reference = self._logprobs(self.reference, groups)
        logprobs = self._logprobs(self.agent.policy, groups)
        device = logprobs.device
        weights = torch.cat([g.weights for g in groups])
        counts = zip(weights.tolist(), completions, strict=True)
        mask = _pad([torch.full((len(c.token_ids),), weight != 0) for weight, c in counts]).to(device)
        sampler = _pad([torch.tensor(c.logprobs) for c in completions]).to(device)
        old = logprobs.detach() if old is None else old
        correction = grpo.sampler_weights(
            old, sampler, mask, self.loss.sampler_correction, self.loss.sampler_cap
        )
        losses = grpo.token_losses(
            logprobs,
            old,
            torch.cat([g.advantages for g in groups]).to(device),
            self.loss.clip_low,
            self.loss.clip_high,
            self.loss.ratio_cap,
            weights_it=correction,
            reference_logprobs_it=reference,
            beta=self.loss.beta,
        )
        loss = grpo.batch_loss(losses, mask, weights.to(device))
        with torch.no_grad():
            ratio = (logprobs - old).exp()
            outside = (ratio < 1 - self.loss.clip_low) | (ratio > 1 + self.loss.clip_high)
            kl = torch.zeros_like(logprobs) if reference is None else grpo.kl_k3(logprobs, reference)
            cut = (correction == 0) | (correction >= self.loss.sampler_cap)
            per_token = torch.stack(
                [torch.ones_like(ratio), ratio, outside.float(), correction, cut.float(), kl]
            )
            sums = torch.where(mask, per_token, 0.0).sum(dim=(1, 2))
        return loss, torch.cat([loss.detach()[None], sums])

    def _live(
        self, rollout: RolloutGroup, advantages: Tensor, weights: Tensor, old: Sequence[Tensor] | None
    ) -> LiveGroup | None:
        """What of a group has gradient; with a KL term every completion has."""
        keep = weights != 0
        if self.reference is None:
            keep = keep & (advantages != 0)
        kept = keep.nonzero()[:, 0].tolist()
        if not kept:
            return None
        completions = tuple(rollout.completions[k] for k in kept)
        group = self._group(rollout.problem, completions)
        before = None if old is None else tuple(old[k] for k in kept)
        return LiveGroup(group, completions, advantages[keep], weights[keep], before)

    def _group(self, problem: Problem, completions: Sequence[Completion]) -> TokenGroup:
        return TokenGroup(self.agent.encode(problem), [torch.tensor(c.token_ids) for c in completions])

    def _batches(self, groups: Sequence[LiveGroup]) -> list[list[LiveGroup]]:
        """Micro-batches; where ranks meet inside them, as many on every rank, and each calls every part of the model."""
        places = packed([row_tokens(g.group) for g in groups], self.batch_tokens)
        batches = [[groups[i] for i in batch] for batch in places]
        if not self.layout.lockstep:
            return batches
        missing = max(1, self.world.largest(len(batches))) - len(batches)
        return [
            [*batch, *([] if self._calls_all(batch) else [self._filler])]
            for batch in [*batches, *([[]] * missing)]
        ]

    def _calls_all(self, groups: Sequence[LiveGroup]) -> bool:
        sees_images = self.agent.backbone.sees_images
        return any(group.group.prompt.vision for group in groups) if sees_images else bool(groups)

    @cached_property
    def _filler(self) -> LiveGroup:
        """A group of weight zero, and with an image if the model sees any: its gradient is zero, and nothing counts it."""
        blank = Image.new("RGB", (_FILLER_PIXELS, _FILLER_PIXELS))
        problem = Problem("filler", "", (blank,) if self.agent.backbone.sees_images else ())
        last = int(self.agent.encode(problem).ids[-1])
        completions = (Completion("", (last,), (0.0,), True),)
        nothing = torch.zeros(1)
        return LiveGroup(self._group(problem, completions), completions, nothing, nothing, (nothing,))

    @torch.no_grad()
    def _before(self, groups: Sequence[LiveGroup]) -> Tensor:
        """Log-probabilities under the policy that sampled, from the forward that took statistics if there was one."""
        taken = [group.old for group in groups]
        if None not in taken:
            return _pad([row for rows in taken if rows is not None for row in rows])
        return self._logprobs(self.agent.policy, groups)

    def _logprobs(self, policy: Policy | BasePolicy, groups: Sequence[LiveGroup]) -> Tensor:
        """Log-probabilities, a row for each completion, padded on the right."""
        lengths = [len(c) for g in groups for c in g.group.completions]
        return _pad(policy.logprobs([g.group for g in groups]).split(lengths))


_FILLER_PIXELS = 56  # of a side: small to every family

_STATISTICS = ("loss", "tokens", "ratio", "clipped", "sampler_weight", "masked", "kl")


def row_tokens(group: TokenGroup) -> int:
    """Length of a group's tree row."""
    return len(group.prompt.ids) + sum(len(c) for c in group.completions)


def packed(sizes: Iterable[int], limit: int) -> Iterator[list[int]]:
    """Places of rows that go together: of like length, within `limit` tokens as padded; a longer row goes alone."""
    rows = sorted(enumerate(sizes), key=lambda row: -row[1])
    places: list[int] = []
    longest = 0
    for place, size in rows:
        if places and (len(places) + 1) * longest > limit:
            yield places
            places = []
        longest = longest if places else size
        places.append(place)
    if places:
        yield places


def _pad(rows: Sequence[Tensor]) -> Tensor:
    return pad_sequence(list(rows), batch_first=True)
