"""How long the prompts of a model are, image tokens included, without its weights and without decoding an image."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from transformers import AutoConfig

from mmcorl.agents.adapter_files import base_of
from mmcorl.agents.backbones import backbone_for
from mmcorl.agents.processors import PromptBuilder
from mmcorl.config import ImagesConfig, PromptConfig
from mmcorl.data.images import capped_size, image_size
from mmcorl.errors import MmcorlError
from mmcorl.problems import Problem


class PromptLengths:
    """Counts the tokens of prompts as `PromptBuilder` would build them.

    `model` is a folder or hub id, of which only the configuration, tokenizer and processor are read. Raises MmcorlError
    where they are missing or the family is not known.
    """

    def __init__(
        self, model: str | Path, prompt: PromptConfig = PromptConfig(), images: ImagesConfig = ImagesConfig()
    ) -> None:
        try:
            source = base_of(str(model)) or model
            self.backbone = backbone_for(AutoConfig.from_pretrained(source))
            self.processor = self.backbone.load_processor(model)
        except MmcorlError:
            raise
        except (OSError, ValueError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise MmcorlError(f"{model} is no model whose prompts can be counted ({reason})") from None
        self.images = images
        # Rendering asks for no weights.
        self._builder = PromptBuilder(
            cast(Any, None), self.processor, self.backbone, prompt, images, max_tokens=1
        )

    def __call__(self, problem: Problem) -> int:
        """Tokens of the problem's prompt. Raises MmcorlError for a problem that the model cannot take."""
        images = [self._image_tokens(problem, place) for place in range(len(problem.images))]
        text = self._builder.render(problem, len(images))
        if images:
            shown, framed = self.backbone.image_frame(self.processor)
            text = text.replace(shown, framed)
        tokenizer = self._builder.tokenizer
        special = tokenizer is self.processor and not tokenizer.chat_template
        length = len(tokenizer(text, add_special_tokens=special)["input_ids"])
        return length + sum(images) - len(images)

    def _image_tokens(self, problem: Problem, place: int) -> int:
        if not self.backbone.sees_images:
            raise MmcorlError(
                f"problem {problem.id!r} has an image, and {self.backbone.config.model_type} models read text only"
            )
        name = f"image {place + 1} of problem {problem.id!r}"
        caps = self.images
        width, height = capped_size(
            *image_size(problem.images[place], name), caps.max_pixels, caps.min_pixels, caps.max_long_side
        )
        try:
            return self.backbone.image_tokens(self.processor, width, height, caps, len(problem.images))
        except ValueError as error:
            raise MmcorlError(f"the processor cannot take {name}: {error}") from None
