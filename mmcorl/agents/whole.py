"""Tensors that lie over the ranks of an agent, made whole."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor


@torch.no_grad()
def whole(tensor: Tensor) -> Tensor:
    """A weight, or a value of the optimiser's state, whole and where its rank computes.

    All ranks that share it call this together. What lies on one rank only is returned as it is.
    """
    if isinstance(tensor, DTensor):
        parts = tensor.detach().to(tensor.device_mesh.device_type)
        assert isinstance(parts, DTensor)
        return parts.full_tensor()
    if hasattr(tensor, "ds_tensor"):  # a parameter that DeepSpeed spreads, of which `data` is empty
        from deepspeed.runtime.zero import GatheredParameters  # pyright: ignore[reportMissingImports]

        with GatheredParameters([tensor]):
            return tensor.detach().clone()
    return tensor.detach()


def in_host_memory(tensor: Tensor, keep: bool = True) -> Tensor:
    """A copy of it, whole, in memory of its own; an empty one on ranks that do not `keep` it. See `whole`."""
    value = whole(tensor)
    return value.to("cpu", copy=True, memory_format=torch.contiguous_format) if keep else torch.empty(0)
