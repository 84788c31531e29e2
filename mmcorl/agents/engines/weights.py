"""A model's weights under the names of its checkpoint, as a second engine loads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import PreTrainedModel

from mmcorl.agents.adapters import has_adapters, merged_weights
from mmcorl.agents.whole import whole

BUCKET_BYTES = 1 << 30


def named_weights(model: PreTrainedModel) -> Iterator[tuple[str, Tensor]]:
    """Every weight, whole and one at a time, adapters added up. A weight that two names share comes under both."""
    if has_adapters(model):
        yield from merged_weights(model)
        return
    for name, tensor in model.state_dict(keep_vars=True).items():
        yield name, whole(tensor)


def write_weights(weights: Iterable[tuple[str, Tensor]], folder: Path) -> None:
    """Write them into `folder` as safetensors files of about `BUCKET_BYTES`; the folder must be empty."""
    bucket: dict[str, Tensor] = {}
    files = 0
    for name, tensor in weights:
        # A copy of each, as safetensors refuses tensors that share memory.
        bucket[name] = tensor.cpu().clone(memory_format=torch.contiguous_format)
        if sum(t.nbytes for t in bucket.values()) >= BUCKET_BYTES:
            save_file(bucket, folder / f"model-{files:05}.safetensors")
            bucket, files = {}, files + 1
    if bucket:
        save_file(bucket, folder / f"model-{files:05}.safetensors")
