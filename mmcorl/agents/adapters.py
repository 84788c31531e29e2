"""Low-rank adapters (LoRA): a model learns through small matrices beside its own, which stay as they are.

The layers are peft's. They are put into the model in place, so that it stays the transformers model that it is, with its
own names; a layer `q_proj` becomes `q_proj.base_layer`, `q_proj.lora_A.default` and `q_proj.lora_B.default`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import Linear, Parameter
from transformers import PreTrainedModel

from mmcorl.agents.adapter_files import CONFIG, WEIGHTS, base_of
from mmcorl.agents.batches import TokenGroup
from mmcorl.agents.extras import require_extra
from mmcorl.agents.policy import Policy
from mmcorl.agents.quantization import is_quantized, whole_weight
from mmcorl.agents.whole import in_host_memory, whole
from mmcorl.config import LoraConfig, Part
from mmcorl.errors import MmcorlError

_NAME = "default"  # peft can hold several sets of adapters by name; there is one here
_SAVED_PREFIX = "base_model.model."  # of every tensor in peft's files


def has_adapters(model: PreTrainedModel) -> bool:
    """Whether adapters were put into this model."""
    return hasattr(model, "peft_config")


def add_adapters(
    agent: str, model: PreTrainedModel, part_of: Callable[[str], Part], lora: LoraConfig, base: str, seed: int
) -> None:
    """Freeze `model` and put adapters in float32 beside its linear layers, which change nothing before they are trained.

    Their first weights are a function of `seed`. `base` is what a saved adapter says it belongs to. Raises MmcorlError
    where `lora.targets` or `lora.parts` name no layer.
    """
    peft: Any = require_extra("peft", f"agents.{agent}.lora", "lora")
    model.requires_grad_(False)
    config = peft.LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        target_modules=_layers(agent, model, part_of, lora),
        base_model_name_or_path=str(Path(base).resolve()) if Path(base).is_dir() else base,
    )
    peft.inject_adapter_in_model(config, model, _NAME)
    generator = torch.Generator().manual_seed(seed)
    for name, weight in _adapter_weights(model).items():
        values = torch.zeros(weight.shape)
        if ".lora_A." in name:
            bound = 1 / math.sqrt(weight.shape[1])  # as torch begins a linear layer, and peft its adapters
            values.uniform_(-bound, bound, generator=generator)
        weight.data = values.to(weight.device)


def load_adapters(agent: str, model: PreTrainedModel, folder: Path) -> None:
    """Give the model's adapters the weights in `folder`.

    Raises MmcorlError where these are of other layers, or of another rank or scale.
    """
    saved, own = _read(folder), {_saved_name(name): w for name, w in _adapter_weights(model).items()}
    if odd := sorted(saved.keys() ^ own.keys()):
        raise MmcorlError(
            f"{folder} holds adapters of other layers than agents.{agent}.lora asks for (for instance "
            f"{odd[0].removeprefix(_SAVED_PREFIX)}); set its targets and parts as they were"
        )
    config: Any = model.peft_config
    ours, theirs = config[_NAME], _settings(folder)
    if (ours.r, ours.lora_alpha) != (theirs["r"], theirs["lora_alpha"]):
        raise MmcorlError(
            f"{folder} holds adapters of rank {theirs['r']} and alpha {theirs['lora_alpha']:g}; set "
            f"agents.{agent}.lora.rank={theirs['r']} and agents.{agent}.lora.alpha={theirs['lora_alpha']:g}"
        )
    with torch.no_grad():
        for name, weight in own.items():
            weight.copy_(saved[name])


def merge_adapters(model: PreTrainedModel, folder: Path) -> PreTrainedModel:
    """The model with the adapters in `folder` added to its weights, as a plain model again.

    Raises MmcorlError where they do not fit the model.
    """
    peft: Any = require_extra("peft", f"adapters ({folder})", "lora")
    saved = _read(folder)
    _settings(folder)
    peft.inject_adapter_in_model(peft.LoraConfig.from_pretrained(folder, inference_mode=False), model, _NAME)
    own = {_saved_name(name): weight for name, weight in _adapter_weights(model).items()}
    if saved.keys() != own.keys() or any(saved[name].shape != weight.shape for name, weight in own.items()):
        raise MmcorlError(f"{folder} holds adapters of another model than {base_of(str(folder))}")
    for name, weight in own.items():
        weight.data = saved[name].to(weight.device, torch.float32)
    return merge(model)


def snapshot_adapters(model: PreTrainedModel, keep: bool = True) -> Callable[[Path], None]:
    """Copy the adapters into host memory. What is returned writes the copy as peft reads it, at any time.

    For `keep` see `Agent.snapshot`.
    """
    config: Any = model.peft_config
    copies = {
        _saved_name(name): in_host_memory(weight, keep) for name, weight in _adapter_weights(model).items()
    }

    def write(folder: Path) -> None:
        config[_NAME].save_pretrained(folder)
        save_file(copies, folder / WEIGHTS, metadata={"format": "pt"})

    return write


def merged_weights(model: PreTrainedModel) -> Iterator[tuple[str, Tensor]]:
    """The weights that a plain model would need to do what this one does, whole and one at a time, by its names.

    A weight that two names share comes under both. The model is left as it is. Where weights lie over ranks, all ranks
    call this.
    """
    return _plain_weights(model, _merged_weight)


def base_weights(model: PreTrainedModel) -> Iterator[tuple[str, Tensor]]:
    """As `merged_weights`, without the adapters; weights in 4 or 8 bits come as the numbers that these stand for."""
    return _plain_weights(model, lambda layer: whole_weight(layer.get_base_layer()))


def merge(model: PreTrainedModel) -> PreTrainedModel:
    """The same model with its adapters added to its weights, in place: a plain model, ready for `save_pretrained`.

    A model without adapters is returned as it is. Raises MmcorlError where weights are held in 4 or 8 bits.
    """
    if not has_adapters(model):
        return model
    if any(is_quantized(module) for module in model.modules()):
        raise MmcorlError(
            "adapters cannot be added to weights in 4 or 8 bits; load the model without quantize"
        )
    for name, layer in list(_adapted_layers(model)):
        base = layer.get_base_layer()
        base.weight.data = _merged_weight(layer)
        parent, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent), child, base)
    del model.peft_config
    return model


@contextmanager
def without_adapters(model: PreTrainedModel) -> Iterator[None]:
    """While open, the model is the one that it was before adapters were put in."""
    layers = [layer for _, layer in _adapted_layers(model)]
    trained = [weight for weight in _adapter_weights(model).values() if weight.requires_grad]
    for layer in layers:
        layer.enable_adapters(False)
    try:
        yield
    finally:
        for layer in layers:
            layer.enable_adapters(True)
        for weight in _adapter_weights(model).values():
            weight.requires_grad_(False)
        for weight in trained:
            weight.requires_grad_(True)


class BasePolicy:
    """The KL reference of a model with adapters: the same weights without them, so that no second copy is held."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    @torch.no_grad()
    def logprobs(self, groups: Sequence[TokenGroup]) -> Tensor:
        """See `Policy.logprobs`; without a gradient."""
        with without_adapters(self.policy.model):
            return self.policy.logprobs(groups)


def _layers(
    agent: str, model: PreTrainedModel, part_of: Callable[[str], Part], lora: LoraConfig
) -> list[str]:
    """Names of the linear layers that get an adapter."""
    head = model.get_output_embeddings()
    linear = [
        name
        for name, module in model.named_modules()
        if isinstance(module, Linear) and module is not head and part_of(f"{name}.weight") in lora.parts
    ]
    if not linear:
        raise MmcorlError(
            f"agents.{agent}.lora.parts={list(lora.parts)} names parts of the model without linear layers; name others"
        )
    if lora.targets is None:
        return linear
    known = {name.rpartition(".")[2] for name in linear}
    if absent := sorted(set(lora.targets) - known):
        raise MmcorlError(
            f"agents.{agent}.lora.targets names {', '.join(absent)}, and linear layers of {', '.join(lora.parts)} are "
            f"{', '.join(sorted(known))}"
        )
    return [name for name in linear if name.rpartition(".")[2] in lora.targets]


def _plain_weights(
    model: PreTrainedModel, weight_of: Callable[[Any], Tensor]
) -> Iterator[tuple[str, Tensor]]:
    """By the names of a plain model, with `weight_of` each layer that has an adapter."""
    layers = dict(_adapted_layers(model))
    kept = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    kept |= {name for name, _ in model.named_buffers(remove_duplicate=False)}
    for name, tensor in model.state_dict(keep_vars=True).items():
        if name not in kept or ".lora_" in name:  # bitsandbytes keeps scales beside its weights
            continue
        owner, _, leaf = name.rpartition(".")
        plain = owner.removesuffix(".base_layer")
        if leaf == "weight" and plain in layers:
            tensor = weight_of(layers[plain])
        elif leaf == "weight" and is_quantized(module := model.get_submodule(owner)):
            tensor = whole_weight(module)
        else:
            tensor = whole(tensor)
        yield f"{plain}.{leaf}" if plain else leaf, tensor


def _adapted_layers(model: PreTrainedModel) -> Iterator[tuple[str, Any]]:
    from peft.tuners.lora import LoraLayer

    return ((name, module) for name, module in model.named_modules() if isinstance(module, LoraLayer))


def _adapter_weights(model: PreTrainedModel) -> dict[str, Parameter]:
    return {name: weight for name, weight in model.named_parameters() if ".lora_" in name}


def _merged_weight(layer: Any) -> Tensor:
    """Added up in float32, in the type of the layer's own weight."""
    weight = whole_weight(layer.get_base_layer())
    first, second = (whole(getattr(layer, side)[_NAME].weight).float() for side in ("lora_A", "lora_B"))
    return torch.addmm(weight.float(), second, first, alpha=layer.scaling[_NAME]).to(weight.dtype)


def _saved_name(name: str) -> str:
    return _SAVED_PREFIX + name.replace(f".{_NAME}.", ".")


def _settings(folder: Path) -> dict[str, Any]:
    """What a folder says of its adapters. Raises MmcorlError for kinds other than plain LoRA, which would be misread."""
    settings = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    odd = [key for key in ("use_dora", "use_rslora", "modules_to_save") if settings.get(key)]
    if settings.get("peft_type") != "LORA" or odd:
        raise MmcorlError(
            f"{folder} holds adapters of another kind than plain LoRA ({', '.join(odd) or settings.get('peft_type')}); "
            "merge them into their model with peft, and give that"
        )
    return settings


def _read(folder: Path) -> dict[str, Tensor]:
    try:
        return load_file(folder / WEIGHTS)
    except (OSError, SafetensorError) as error:
        raise MmcorlError(f"{folder / WEIGHTS} cannot be read ({error})") from None
