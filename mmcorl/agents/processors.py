"""Problem -> Prompt: chat template, images and token ids, the same for rollouts, training and evaluation."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from string import ascii_uppercase
from typing import Any

import torch
from jinja2.exceptions import TemplateError
from PIL import Image
from torch import Tensor
from transformers import PreTrainedModel

from mmcorl.agents.backbones import Backbone
from mmcorl.config import ImagesConfig, PromptConfig
from mmcorl.data.images import shown_image
from mmcorl.errors import MmcorlError, PromptTooLong
from mmcorl.problems import IMAGE_MARKER, Problem


@dataclass(frozen=True, eq=False)
class Prompt:
    """One problem as one model takes it. All tensors are unpadded and on the CPU.

    `text` and `images` are what a rollout server takes (one placeholder an image); `ids` (P,) has a placeholder for
    every feature row. `tokens` holds further inputs of one value a token, `vision` those that hold images, which are
    joined with those of other prompts along `vision_axes` (0 where it names none).
    """

    problem_id: str
    text: str
    images: tuple[Image.Image, ...]
    ids: Tensor
    tokens: dict[str, Tensor]
    vision: dict[str, Tensor]
    positions: Tensor
    vision_axes: Mapping[str, int] = field(default_factory=dict)

    @property
    def next_position(self) -> int:
        """Position of the first completion token."""
        return int(self.positions.max()) + 1

    def nbytes(self) -> int:
        """What keeping it costs: its pixels, decoded and as tensors."""
        pictures = sum(image.width * image.height * 3 for image in self.images)
        return pictures + sum(tensor.nbytes for tensor in (*self.vision.values(), *self.tokens.values()))


class PromptBuilder:
    """Builds prompts with the model's own chat template and processor, and keeps recent ones.

    Raises MmcorlError for a problem that the model cannot take and PromptTooLong for one that does not fit
    `max_tokens` (image tokens counted); both name the problem. Nothing is ever cut.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        processor: Any,
        backbone: Backbone,
        prompt: PromptConfig,
        images: ImagesConfig,
        max_tokens: int,
        cache_bytes: int = 256 << 20,
    ) -> None:
        self.model, self.processor, self.backbone = model, processor, backbone
        self.tokenizer = backbone.tokenizer(processor)
        self.prompt, self.images, self.max_tokens = prompt, images, max_tokens
        self._cache: OrderedDict[int, tuple[Problem, Prompt]] = OrderedDict()
        self._cache_room = cache_bytes

    def build(self, problem: Problem) -> Prompt:
        """The prompt of a problem."""
        # Ids are unique within one data set only, so the problem itself is the key; kept, it stays what `id` means.
        key = id(problem)
        if cached := self._cache.get(key):
            self._cache.move_to_end(key)
            return cached[1]
        prompt = self._build(problem)
        self._cache[key] = problem, prompt
        self._cache_room -= prompt.nbytes()
        while self._cache_room < 0:
            _, (_, oldest) = self._cache.popitem(last=False)
            self._cache_room += oldest.nbytes()
        return prompt

    def _build(self, problem: Problem) -> Prompt:
        if problem.images and not self.backbone.sees_images:
            raise MmcorlError(
                f"problem {problem.id!r} has an image, and {self.backbone.config.model_type} models read text only; "
                "give this cohort text problems, or set agents.*.model to a vision-language model"
            )
        images = tuple(
            shown_image(source, self.images, f"image {k} of problem {problem.id!r}")
            for k, source in enumerate(problem.images, start=1)
        )
        text = self.render(problem, len(images))
        try:
            inputs = self._process(text, images)
        except (ValueError, StopIteration) as error:
            # Some processors run out of images without a word.
            reason = str(error) or "its text has more image tokens than images"
            raise MmcorlError(f"the processor cannot take problem {problem.id!r}: {reason}") from error
        ids = inputs["input_ids"]
        if len(ids) > self.max_tokens:
            raise PromptTooLong(
                f"the prompt of problem {problem.id!r} has {len(ids)} tokens, more than rollouts.max_prompt_tokens="
                f"{self.max_tokens}; raise that, lower images.max_pixels, or drop the problem"
            )
        vision = {name: inputs[name] for name in self.backbone.vision_inputs if name in inputs}
        self._check_features(problem, ids, vision)
        return Prompt(
            problem_id=problem.id,
            text=text,
            images=images,
            ids=ids,
            tokens={name: inputs[name] for name in self.backbone.token_inputs},
            vision=vision,
            positions=self.backbone.positions(self.model, inputs),
            vision_axes=self.backbone.vision_axes,
        )

    def _process(self, text: str, images: Sequence[Image.Image]) -> dict[str, Tensor]:
        """Run the processor on one prompt and take the batch axis off the per-token tensors."""
        if self.tokenizer is self.processor:
            batch = self.processor(
                text, add_special_tokens=not self.tokenizer.chat_template, return_tensors="pt"
            )
        else:
            options = self.backbone.processor_options(self.images)
            if images:
                options["images"] = [list(images)]
            batch = self.processor(
                text=[text], text_kwargs={"add_special_tokens": False}, return_tensors="pt", **options
            )
        inputs = dict(batch)
        for name in ("input_ids", *self.backbone.token_inputs):
            inputs[name] = inputs[name][0] if name in inputs else torch.zeros_like(inputs["input_ids"])
        return inputs

    def render(self, problem: Problem, n_images: int) -> str:
        """Chat text with one image placeholder for each image, up to where the answer begins."""
        content = content_parts(problem, n_images, self.prompt)
        template_owner = self.processor if getattr(self.processor, "chat_template", None) else self.tokenizer
        if not getattr(template_owner, "chat_template", None):
            text = "".join(part["text"] for part in content if part["type"] == "text")
            return f"{self.prompt.system}\n{text}\n" if self.prompt.system else f"{text}\n"
        flat = template_owner is self.tokenizer and not n_images

        def render(system: str | None, content: list[dict[str, str]]) -> str:
            plain = "".join(part.get("text", "") for part in content)
            turns: list[dict[str, Any]] = [{"role": "user", "content": plain if flat else content}]
            if system:
                turns.insert(
                    0, {"role": "system", "content": system if flat else [{"type": "text", "text": system}]}
                )
            return template_owner.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)

        if system := self.prompt.system:
            # Some templates refuse a system turn and some silently drop it: then it goes before the question.
            with suppress(TemplateError):
                text = render(system, content)
                if system.strip() in text:
                    return text
            content = [{"type": "text", "text": f"{system}\n\n"}, *content]
        return render(None, content)

    def _check_features(self, problem: Problem, ids: Tensor, vision: Mapping[str, Tensor]) -> None:
        """One placeholder token for every feature row, or the model would mix up its images."""
        placeholders = torch.isin(ids, torch.tensor(sorted(self.backbone.placeholder_ids()), dtype=ids.dtype))
        expected = self.backbone.feature_rows(vision) if vision else 0
        if (found := int(placeholders.sum())) != expected:
            raise MmcorlError(
                f"the prompt of problem {problem.id!r} has {found} image tokens for {expected} feature rows; its text "
                "may contain the model's own image token, or the processor's files do not belong to the model"
            )


def question_text(problem: Problem, prompt: PromptConfig) -> str:
    """The question, its options a line each, and the instruction."""
    lines = [problem.question]
    lines += [
        prompt.option_format.format(letter=letter, text=text)
        for letter, text in zip(ascii_uppercase, problem.choices or (), strict=False)
    ]
    if prompt.instruction:
        lines.append(prompt.instruction)
    return "\n".join(lines)


def content_parts(problem: Problem, n_images: int, prompt: PromptConfig) -> list[dict[str, str]]:
    """Text and image parts in order. Images without an `<image>` marker of their own come first."""
    pieces = question_text(problem, prompt).split(IMAGE_MARKER)
    marked = min(len(pieces) - 1, n_images)
    content: list[dict[str, str]] = [{"type": "image"}] * (n_images - marked)
    for i, piece in enumerate(pieces):
        if 0 < i <= marked:
            content.append({"type": "image"})
        if piece:
            content.append({"type": "text", "text": piece})
    return content
