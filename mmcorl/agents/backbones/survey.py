"""What can be read from a model that has no backbone yet: its parts, its processor, and what that makes of images."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from PIL import Image
from torch import Tensor
from transformers import (
    AutoConfig,
    AutoModelForImageTextToText,
    AutoProcessor,
    PreTrainedConfig,
    PreTrainedModel,
)
from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES

from mmcorl.errors import MmcorlError

_WIDE, _TALL = (168, 84), (84, 140)
_WITHIN = re.compile("merger|projector|downsample|connector")


@dataclass(frozen=True)
class Sample:
    """What the processor makes of images of these sizes (width, height) in one prompt.

    `inputs` has the tensors that the model takes; `shown` is what stands for an image in chat text, and `framed` what
    the processor puts there, with every run of placeholders as one.
    """

    sizes: tuple[tuple[int, int], ...]
    tokens: int
    inputs: dict[str, Tensor]
    shown: str
    framed: str


@dataclass(frozen=True)
class Survey:
    """What was found. `parts` counts parameters by the beginning of their names; `positions` are the inputs that the
    model's own `get_rope_index` takes, None where positions are 0, 1, 2, ..."""

    model_type: str
    model_class: str
    processor: Any
    placeholders: dict[str, int]
    parts: dict[str, int]
    vision_names: tuple[str, ...]
    projector_names: tuple[str, ...]
    positions: tuple[str, ...] | None
    samples: tuple[Sample, ...]

    @property
    def token_inputs(self) -> tuple[str, ...]:
        """Inputs with one value a token."""
        inputs = self.samples[0].inputs
        shape = inputs["input_ids"].shape
        return tuple(n for n, value in inputs.items() if value.shape == shape and n != "input_ids")

    @property
    def vision_inputs(self) -> tuple[str, ...]:
        """Inputs that hold images."""
        inputs = self.samples[0].inputs
        return tuple(n for n in inputs if n not in ("input_ids", *self.token_inputs))

    def axis(self, name: str) -> int:
        """The axis of a vision input that grows with the number of images; 0 where none does."""
        one, _, two = (sample.inputs[name].shape for sample in self.samples)
        if len(one) != len(two):
            return 0
        return next((i for i, (a, b) in enumerate(zip(one, two, strict=True)) if a != b), 0)

    def lines(self) -> list[str]:
        """For a person to read."""
        first = self.samples[0]
        shapes = ", ".join(f"{name} {list(first.inputs[name].shape)}" for name in self.vision_inputs)
        counts = ", ".join(
            f"{' and '.join(f'{w}x{h}' for w, h in sample.sizes)}: {sample.tokens}" for sample in self.samples
        )
        axes = (
            "0, 1, 2, ..."
            if self.positions is None
            else f"get_rope_index of the model, from {', '.join(self.positions)}"
        )
        parts = ", ".join(f"{name} {count / 1e6:.2f} M" for name, count in self.parts.items())
        return [
            f"model class      {self.model_class}",
            f"processor        {type(self.processor).__name__}, {type(self.processor.image_processor).__name__}",
            f"placeholders     {', '.join(f'{name}={value}' for name, value in self.placeholders.items())}",
            f"parts            {parts}",
            f"vision           {', '.join(self.vision_names)}",
            f"projector        {', '.join(self.projector_names) or 'not found'}",
            f"positions        {axes}",
            f"image inputs     {shapes}",
            f"token inputs     {', '.join(self.token_inputs) or 'none'}",
            f"an image         {first.shown!r} becomes {first.framed!r}",
            f"image tokens     {counts}",
        ]


def survey(model: str | Path) -> Survey:
    """Look at a folder or hub id, without its weights. Raises MmcorlError where transformers has no such model."""
    try:
        config = AutoConfig.from_pretrained(model)
        seen = config.model_type in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES
        processor = AutoProcessor.from_pretrained(model) if seen else None
    except (OSError, ValueError, ImportError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise MmcorlError(f"cannot look at the model {model}: {reason}") from error
    if not seen:
        raise MmcorlError(
            f"model type {config.model_type!r} is neither a causal text model nor one that reads images and writes text "
            f"in transformers {transformers.__version__}: no backbone can make an agent of it"
        )
    with torch.device("meta"):
        built = AutoModelForImageTextToText.from_config(config)
    placeholders = {
        name: value
        for name, value in config.to_dict().items()
        if re.fullmatch(r"(image|video)_token_(id|index)", name) and isinstance(value, int)
    }
    vision = _prefix(built, config.vision_config)
    text = _prefix(built, config.get_text_config())
    takes = inspect.signature(built.forward).parameters
    samples = tuple(
        _sample(processor, placeholders, takes, sizes) for sizes in ((_WIDE,), (_TALL,), (_WIDE, _TALL))
    )
    rope = getattr(built.base_model, "get_rope_index", None)
    return Survey(
        model_type=config.model_type,
        model_class=type(built).__name__,
        processor=processor,
        placeholders=placeholders,
        parts=_parts(built.base_model),
        vision_names=(f"{vision}.",),
        projector_names=_projector(built.base_model, vision, text),
        positions=rope and tuple(n for n in inspect.signature(rope).parameters if n in samples[0].inputs),
        samples=samples,
    )


def _prefix(model: PreTrainedModel, config: PreTrainedConfig) -> str:
    """The name, within the base model, of the first module with that configuration."""
    for name, module in model.base_model.named_modules():
        if name and isinstance(module, PreTrainedModel) and type(module.config) is type(config):
            return name
    raise MmcorlError(f"{type(model).__name__} has no module with a {type(config).__name__}")


def _parts(base: torch.nn.Module) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name, parameter in base.named_parameters():
        part = name.partition(".")[0]
        counts[part] = counts.get(part, 0) + parameter.numel()
    return counts


def _projector(base: torch.nn.Module, vision: str, text: str) -> tuple[str, ...]:
    """What is neither vision nor text, and what within the vision part is called like a projector."""
    outside = [name for name in _parts(base) if name not in (vision, text)]
    modules = dict(base.named_children())
    within = [name for name, _ in base.get_submodule(vision).named_children() if _WITHIN.search(name)]
    return (
        *(f"{name}." if name in modules else name for name in outside),
        *(f"{vision}.{name}." for name in within),
    )


def _sample(
    processor: Any,
    placeholders: Mapping[str, int],
    takes: Mapping[str, Any],
    sizes: Sequence[tuple[int, int]],
) -> Sample:
    content = [*({"type": "image"} for _ in sizes), {"type": "text", "text": "How many?"}]
    text = processor.apply_chat_template([{"role": "user", "content": content}], tokenize=False)
    batch = processor(
        text=[text],
        images=[[Image.new("RGB", size, "red") for size in sizes]],
        text_kwargs={"add_special_tokens": False},
        return_tensors="pt",
    )
    tokenizer, ids = processor.tokenizer, batch["input_ids"][0].tolist()
    tokens = [i for i in ids if i in placeholders.values()]
    runs = [i for k, i in enumerate(ids) if i not in placeholders.values() or k == 0 or ids[k - 1] != i]
    written = tokenizer(text, add_special_tokens=False)["input_ids"]
    start = next((k for k, (a, b) in enumerate(zip(written, runs, strict=False)) if a != b), None)
    if start is None:
        shown = framed = tokenizer.decode(tokens[:1])
    else:
        end = next(k for k, (a, b) in enumerate(zip(written[::-1], runs[::-1], strict=False)) if a != b)
        if own := [k for k, i in enumerate(written) if i in placeholders.values()]:
            start, end = min(start, own[0]), min(end, len(written) - 1 - own[-1])
        shown = tokenizer.decode(written[start : len(written) - end])
        framed = tokenizer.decode(runs[start : len(runs) - end])
    return Sample(
        sizes=tuple(sizes),
        tokens=len(tokens),
        inputs={
            n: v for n, v in batch.items() if n in takes and n != "attention_mask" and isinstance(v, Tensor)
        },
        shown=shown,
        framed=framed,
    )
