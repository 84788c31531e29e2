"""A model's weights under the names of its checkpoint, as a second engine loads them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import PreTrainedModel

from mmcorl.errors import MmcorlError

BUCKET_BYTES = 1 << 30


def named_weights(model: PreTrainedModel) -> Iterator[tuple[str, Tensor]]:
    """Every weight, whole and one at a time. A weight that two names share comes under both.

    Raises MmcorlError for adapters: an engine would look for their names in vain.
    """
    if hasattr(model, "peft_config"):
        raise MmcorlError(
            "vLLM rollouts take whole weights, and this model is trained through adapters; set "
            "rollouts.engine=transformers"
        )
    for name, tensor in model.state_dict().items():
        yield name, tensor.detach()


def write_weights(model: PreTrainedModel, folder: Path) -> None:
    """Write the weights into `folder` as safetensors files of about `BUCKET_BYTES`; the folder must be empty."""
    bucket: dict[str, Tensor] = {}
    files = 0
    for name, tensor in named_weights(model):
        bucket[name] = tensor.cpu().clone(
            memory_format=torch.contiguous_format
        )  # a file has no shared tensors
        if sum(t.nbytes for t in bucket.values()) >= BUCKET_BYTES:
            save_file(bucket, folder / f"model-{files:05}.safetensors")
            bucket, files = {}, files + 1
    if bucket:
        save_file(bucket, folder / f"model-{files:05}.safetensors")
