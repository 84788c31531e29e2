"""The file of a backbone to begin with, written from what was found in the model; and a backbone read from a file."""

from __future__ import annotations

import inspect
from pathlib import Path

import torch

from mmcorl.agents.backbones.base import Backbone
from mmcorl.agents.backbones.survey import Survey
from mmcorl.errors import MmcorlError
from mmcorl.own_code import module_of

_UNKNOWN = 'raise NotImplementedError("{}")'


def skeleton(found: Survey) -> str:
    """Source of a backbone whose guesses fit the images that were tried. The contract says which of them are wrong."""
    attributes = [
        _attribute("token_inputs", found.token_inputs),
        _attribute("vision_inputs", found.vision_inputs),
    ]
    if axes := {name: axis for name in found.vision_inputs if (axis := found.axis(name))}:
        attributes.append(f"vision_axes: ClassVar = {axes!r}".replace("'", '"'))
    attributes += [
        _attribute("vision_names", found.vision_names),
        _attribute("projector_names", found.projector_names),
    ]
    methods = [
        *_processor_options(found),
        _method("feature_rows(self, vision: Mapping[str, Tensor]) -> int", _feature_rows(found)),
        _method(
            "image_tokens(self, processor: Any, width: int, height: int, images: ImagesConfig, count: int) -> int",
            _image_tokens(found),
        ),
        *_image_frame(found),
        *_positions(found),
    ]
    indented = "".join(f"\n    {line}" for line in attributes if line)
    return _HEAD.format(
        model_type=found.model_type,
        name="".join(part.capitalize() for part in found.model_type.split("_")),
        attributes=f"{indented}\n" if indented else "",
        classvar=", ClassVar" if axes else "",
        methods="\n".join(methods),
        torch="import torch\n" if found.positions is not None else "",
        model="from transformers import PreTrainedModel\n" if found.positions is not None else "",
    )


def backbone_from(file: Path) -> type[Backbone]:
    """The backbone that a Python file defines. Raises MmcorlError where there is none, or more than one."""
    module = module_of(file, "--backbone")
    found = [
        value
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, Backbone) and value.__module__ == module.__name__
    ]
    if len(found) != 1:
        raise MmcorlError(
            f"--backbone {file} defines {len(found)} subclasses of Backbone, and one is asked for"
        )
    return found[0]


_HEAD = '''"""{model_type}: say in a line what is odd about this family."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any{classvar}

{torch}from torch import Tensor
{model}
from mmcorl.agents.backbones.base import Backbone
from mmcorl.config import ImagesConfig


class {name}(Backbone):
    """Written by mmcorl-check from two images. The contract says which of its guesses are wrong."""
{attributes}
{methods}'''


def _attribute(name: str, values: tuple[str, ...]) -> str:
    """Empty where the default says the same."""
    if values == getattr(Backbone, name):
        return ""
    listed = ", ".join(f'"{value}"' for value in values)
    return f"{name} = ({listed}{',' if len(values) == 1 else ''})"


def _method(signature: str, *body: str) -> str:
    return "\n".join([f"    def {signature}:", *(f"        {line}" for line in body), ""])


def _capped_by_area(found: Survey) -> bool:
    size = getattr(found.processor.image_processor, "size", None) or {}
    return bool(size.get("shortest_edge") and size.get("longest_edge"))


def _processor_options(found: Survey) -> list[str]:
    if not _capped_by_area(found):
        return []
    return [
        _method(
            "processor_options(self, images: ImagesConfig) -> dict[str, Any]",
            'size = {"shortest_edge": images.min_pixels, "longest_edge": images.max_pixels}',
            'return {"images_kwargs": {"size": size}}',
        )
    ]


def _feature_rows(found: Survey) -> str:
    """Places on a grid over a constant, or squares times a constant, whichever fits all samples."""
    for name in found.vision_inputs:
        first = found.samples[0].inputs[name]
        if first.ndim == 2 and first.shape[-1] in (2, 3) and not first.is_floating_point():
            places = [int(sample.inputs[name].prod(dim=-1).sum()) for sample in found.samples]
            if (merged := _ratio(places, [sample.tokens for sample in found.samples])) is not None:
                return f'return int(vision["{name}"].prod(dim=-1).sum()) // {merged}'
    axis = found.axis("pixel_values")
    squares = [sample.inputs["pixel_values"].shape[axis] for sample in found.samples]
    if (rows := _ratio([sample.tokens for sample in found.samples], squares)) is not None:
        return f'return vision["pixel_values"].shape[{axis}] * {rows}'
    return _UNKNOWN.format("feature rows that the vision part makes of these inputs")


def _image_tokens(found: Survey) -> str:
    wide, tall, both = found.samples
    if _in_tiles(found):
        return _UNKNOWN.format(
            "more than placeholders: count the marks too, or forbid tiles in processor_options"
        )
    if wide.tokens == tall.tokens and both.tokens == 2 * wide.tokens:
        return f"return {wide.tokens}"
    count = getattr(found.processor.image_processor, "get_number_of_image_patches", None)
    if count is not None:
        patches = [count(height, width, {}) for ((width, height),) in (wide.sizes, tall.sizes)]
        if all(isinstance(n, int) for n in patches) and (
            merged := _ratio(patches, [wide.tokens, tall.tokens])
        ):
            options = 'self.processor_options(images)["images_kwargs"]' if _capped_by_area(found) else "{}"
            return (
                f"options = {options}\n        patches = processor.image_processor.get_number_of_image_patches(height, width, options)"
                f"\n        return patches // {merged}"
            )
    return _UNKNOWN.format("image tokens of an image of that size")


def _image_frame(found: Survey) -> list[str]:
    first = found.samples[0]
    token = getattr(found.processor, "image_token", None)
    if first.shown == first.framed == token or _in_tiles(found):
        return []
    signature = "image_frame(self, processor: Any) -> tuple[str, str]"
    return [_method(signature, f"return {first.shown!r}, {first.framed!r}".replace("'", '"'))]


def _in_tiles(found: Survey) -> bool:
    """Whether something stands between the placeholders of one image."""
    first = found.samples[0]
    marked = torch.isin(first.inputs["input_ids"][0], torch.tensor(sorted(found.placeholders.values())))
    return int((marked[1:] & ~marked[:-1]).sum()) > len(first.sizes)


def _positions(found: Survey) -> list[str]:
    if found.positions is None:
        return []
    marker = next((n for n in found.positions if n in found.vision_inputs), found.vision_inputs[0])
    arguments = [
        f'            {name}=inputs["{name}"]{"[None]" if name in found.token_inputs else ""},'
        for name in found.positions
        if name != "input_ids"
    ]
    return [
        _method(
            "positions(self, model: PreTrainedModel, inputs: Mapping[str, Tensor]) -> Tensor",
            f'if "{marker}" not in inputs:',
            '    return torch.arange(inputs["input_ids"].shape[-1]).expand(3, -1)',
            "positions, _ = model.model.get_rope_index(  # pyright: ignore[reportCallIssue]",
            '    inputs["input_ids"][None],',
            *(line[8:] for line in arguments),
            ")",
            "return positions[:, 0]",
        )
    ]


def _ratio(above: list[int], below: list[int]) -> int | None:
    """The whole number that every one above is of the one below; None where there is none."""
    ratios = {a / b for a, b in zip(above, below, strict=True) if b}
    ratio = ratios.pop() if len(ratios) == 1 else 0.5
    return int(ratio) if ratio.is_integer() else None
