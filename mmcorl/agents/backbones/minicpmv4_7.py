"""MiniCPM-V 4.7: as 4.6, with positions on three axes that lay an image and its slices on one canvas."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from transformers import PreTrainedModel

from mmcorl.agents.backbones.minicpmv4_6 import MiniCPMV4_6


class MiniCPMV4_7(MiniCPMV4_6):
    """Marks around an image have places on the canvas too."""

    token_inputs = ("mm_token_type_ids",)

    def positions(self, model: PreTrainedModel, inputs: Mapping[str, Tensor]) -> Tensor:
        """(3, P): time, height and width. Text tokens have the same position on each axis."""
        sizes = inputs.get("target_sizes")
        if sizes is None:
            return torch.arange(inputs["input_ids"].shape[-1]).expand(3, -1)
        positions, _ = model.model.get_rope_index(  # pyright: ignore[reportCallIssue]
            inputs["input_ids"][None],
            target_sizes=sizes,
            mm_token_type_ids=inputs["mm_token_type_ids"][None],
        )
        return positions[:, 0]
