"""What a model's configuration tells of its size: the model is built without memory for its weights, and measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import LayerNorm, Linear, Module, ModuleList
from transformers import AutoConfig, PreTrainedConfig, PreTrainedModel

from mmcorl.agents.adapter_files import base_of
from mmcorl.agents.backbones import Backbone, backbone_for
from mmcorl.config import ImagesConfig, Part
from mmcorl.errors import MmcorlError

_MOST_TILES = 13
"""Tiles of one image at most: twelve and the thumbnail, a common default of processors that tile."""


@dataclass(frozen=True)
class Matrix:
    """A linear layer: `name` is the last part of its path, as `q_proj`."""

    part: Part
    name: str
    inputs: int
    outputs: int


@dataclass(frozen=True)
class Tower:
    """Equal transformer layers on top of each other. Widths are numbers a token."""

    layers: int
    hidden: int
    heads: int
    queries: int
    """Width of the queries of all heads together, and of what attention gives."""
    keys: int
    """Width of the keys, and of the values: smaller than `queries` where several heads share them."""
    feed_forward: int
    gated: bool
    """Whether the feed-forward part multiplies two branches, as in SwiGLU."""
    readers: int
    """Linear layers that read the hidden state: query, key, value, gate and up in most text models."""
    attention: int
    """Numbers a token that attention keeps for its gradient."""
    norms: int
    """Numbers a token that norms keep: what they read."""
    normalised: int
    """Numbers a token that norms and learned scales keep for the gradient of their own weights."""
    parameters: int
    """Of one layer."""
    linear: int
    """Of those, the ones in matrices."""


@dataclass(frozen=True)
class ModelShape:
    """All that the plan needs to know of a model."""

    model_type: str
    parameters: dict[Part, int]
    linear: dict[Part, int]
    """Parameters in the weights of linear layers: those that a bfloat16 forward casts."""
    matrices: tuple[Matrix, ...]
    """Linear layers but the output head: those that can get an adapter or be quantised."""
    vocabulary: int
    head: int
    """Parameters of the output head, which may be those of the embedding."""
    text: Tower
    vision: Tower | None
    projector: int
    """What the projector keeps for its gradient, in numbers a placeholder token."""
    patch: int
    """Side of a patch of an image, in pixels."""
    patches_per_token: int
    tile: int | None
    """Patches of one image or tile where the tower sees one size only; null where it follows the image."""

    @property
    def total(self) -> int:
        return sum(self.parameters.values())

    def patches(self, pixels: int, images: ImagesConfig) -> int:
        """Patches of one image of so many pixels; where it may be cut into tiles, of all of them."""
        if self.vision is None:
            return 0
        if self.tile is not None:
            return self.tile * (_MOST_TILES if images.tiling else 1)
        return pixels // self.patch**2


def read_shape(model: str) -> ModelShape:
    """The shape of a model, a folder or a hub id, from its config.json alone; of adapters, that of their model.

    Raises MmcorlError where that is missing or the family is not known.
    """
    try:
        config = AutoConfig.from_pretrained(base_of(model) or model)
    except (OSError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise MmcorlError(f"{model} has no configuration that can be read ({reason})") from None
    backbone = backbone_for(config)
    with torch.device("meta"):
        built = backbone.auto_model.from_config(config, dtype=torch.float32)
    return shape_of(built, backbone)


def shape_of(model: PreTrainedModel, backbone: Backbone) -> ModelShape:
    """The shape of a model that is built already, with memory for its weights or without."""
    config = backbone.config
    parameters: dict[Part, int] = {"vision": 0, "projector": 0, "text": 0}
    for name, parameter in model.named_parameters():
        parameters[backbone.part_of(name)] += parameter.numel()
    head = model.get_output_embeddings()
    assert isinstance(head, Linear)
    linears = {n: m for n, m in model.named_modules() if isinstance(m, Linear)}
    linear: dict[Part, int] = {"vision": 0, "projector": 0, "text": 0}
    for name, module in linears.items():
        linear[backbone.part_of(f"{name}.weight")] += module.weight.numel()
    matrices = tuple(
        Matrix(
            backbone.part_of(f"{name}.weight"),
            name.rpartition(".")[2],
            module.in_features,
            module.out_features,
        )
        for name, module in linears.items()
        if module is not head
    )
    vision, text = getattr(config, "vision_config", None), config.get_text_config()
    stacks = _stacks(model, backbone)
    tile, patch, merged = _image_grid(vision)
    tile_tokens = getattr(config, "image_seq_length", None) or getattr(config, "mm_tokens_per_image", None)
    return ModelShape(
        model_type=config.model_type,
        parameters=parameters,
        linear=linear,
        matrices=matrices,
        vocabulary=text.vocab_size,
        head=head.weight.numel(),
        text=_tower(stacks["text"], text),
        vision=None if vision is None else _tower(stacks["vision"], vision),
        projector=sum(m.inputs + m.outputs for m in matrices if m.part == "projector"),
        patch=patch,
        patches_per_token=tile // tile_tokens if tile and tile_tokens else merged**2,
        tile=tile,
    )


def _stacks(model: PreTrainedModel, backbone: Backbone) -> dict[str, ModuleList]:
    """The longest list of layers of each part."""
    longest: dict[str, ModuleList] = {}
    for name, module in model.named_modules():
        if isinstance(module, ModuleList):
            part = backbone.part_of(f"{name}.")
            if part not in longest or len(module) > len(longest[part]):
                longest[part] = module
    return longest


def _tower(stack: ModuleList, config: PreTrainedConfig) -> Tower:
    """Widths of the layers, from the first of them; heads from the configuration, as no matrix tells them."""
    layer, hidden = stack[0], config.hidden_size
    linears = [m for m in layer.modules() if isinstance(m, Linear)]
    heads = getattr(config, "num_attention_heads", None) or config.num_heads
    grouped = getattr(config, "num_key_value_heads", None) or heads
    size = getattr(config, "head_dim", None) or hidden // heads
    queries, keys, feed_forward = heads * size, grouped * size, config.intermediate_size
    fused = any(m.out_features == queries + 2 * keys for m in linears)
    widths = {m: _norm_width(m, hidden, queries, keys, n) for n, m in layer.named_modules() if _is_norm(m)}
    return Tower(
        layers=len(stack),
        hidden=hidden,
        heads=heads,
        queries=queries,
        keys=keys,
        feed_forward=feed_forward,
        gated=sum(m.out_features == feed_forward for m in linears) == 2,
        readers=len(linears) - 2,  # all but those that end attention and feed-forward
        # query, key and value, each for every head, and what comes out; a fused matrix leaves its own output beside
        # these, and its pieces of the image are joined once more
        attention=(7 if fused else 4) * queries,
        norms=sum(widths.values()),
        normalised=sum(width for norm, width in widths.items() if not isinstance(norm, LayerNorm))
        + sum(p.numel() for p in layer.parameters(recurse=False)),
        parameters=sum(p.numel() for p in layer.parameters()),
        linear=sum(m.weight.numel() for m in linears),
    )


def _is_norm(module: Module) -> bool:
    """A LayerNorm, fused by PyTorch, or an RMSNorm written in Python, which keeps what it normalised."""
    return "norm" in type(module).__name__.lower() and hasattr(module, "weight")


def _norm_width(norm: Any, hidden: int, queries: int, keys: int, name: str) -> int:
    """Numbers a token that it normalises: the hidden state, or queries or keys, all at once or head by head."""
    if norm.weight.numel() == hidden:
        return hidden
    return keys if name.rpartition(".")[2].startswith("k") else queries


def _image_grid(vision: PreTrainedConfig | None) -> tuple[int | None, int, int]:
    """Patches of one tile (null where images keep their size), side of a patch, and side of a square of merged ones."""
    if vision is None:
        return None, 1, 1
    patch = _side(vision.patch_size)
    size = getattr(vision, "image_size", None)
    tile = None if size is None else (_side(size) // patch) ** 2
    return tile, patch, getattr(vision, "spatial_merge_size", 1)


def _side(size: int | Sequence[int]) -> int:
    return size if isinstance(size, int) else size[0]
