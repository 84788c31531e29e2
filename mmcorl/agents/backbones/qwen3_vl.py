"""Qwen3-VL: as Qwen2.5-VL, with features of several vision layers added inside the text model."""

from __future__ import annotations

from mmcorl.agents.backbones.qwen2_5_vl import Qwen2_5_VL


class Qwen3_VL(Qwen2_5_VL):
    """Each of the vision layers whose features are added has a merger of its own."""

    projector_names = ("visual.merger.", "visual.deepstack_merger_list.")
