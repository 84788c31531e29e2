"""A problem drawn as one picture, to be looked at."""

from __future__ import annotations

import textwrap
from pathlib import Path

import matplotlib
from PIL import Image, ImageDraw, ImageFont

from mmcorl.data.images import DECODE_LIMIT, load_image
from mmcorl.problems import Gold, Problem

_WIDTH, _MARGIN, _GAP = 900, 24, 12
_IMAGE_WIDTH, _IMAGE_HEIGHT, _SMALL_IMAGE = 852, 600, 200
_TEXT_SIZE, _SMALL_TEXT_SIZE = 17, 13
_INK, _GREY, _GREEN = (20, 20, 20), (110, 110, 110), (0, 110, 50)

# Pillow's own font lacks most mathematical signs.
_FONT = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"


def draw_page(problem: Problem, gold: Gold | None) -> Image.Image:
    """The problem's id, images, question, options and gold answer below each other on a white page, RGB."""
    images = [
        load_image(image, DECODE_LIMIT, 1, f"image {place} of problem {problem.id}")
        for place, image in enumerate(problem.images)
    ]
    sizes = ", ".join(f"{image.width} x {image.height}" for image in images) or "none"
    return _stack(
        [
            _text(f"id {problem.id}   kind {problem.kind}   images {sizes}", _GREY, _SMALL_TEXT_SIZE),
            *(_fit(image) for image in images),
            _text(problem.question, _INK),
            *(
                _text(f"{chr(ord('A') + place)}. {text}", _INK)
                for place, text in enumerate(problem.choices or ())
            ),
            _text(f"gold: {gold.answer if gold else 'none'}", _GREEN),
        ]
    )


def _text(text: str, colour: tuple[int, int, int], size: int = _TEXT_SIZE) -> Image.Image:
    font = ImageFont.truetype(_FONT, size)
    letters = int((_WIDTH - 2 * _MARGIN) / font.getlength("0"))
    lines = [textwrap.fill(line, letters, replace_whitespace=False) for line in text.splitlines()]
    wrapped = "\n".join(lines)
    box = ImageDraw.Draw(Image.new("RGB", (1, 1))).multiline_textbbox((0, 0), wrapped, font=font)
    image = Image.new("RGB", (max(1, round(box[2])), max(1, round(box[3]))), "white")
    ImageDraw.Draw(image).multiline_text((0, 0), wrapped, colour, font=font)
    return image


def _fit(image: Image.Image) -> Image.Image:
    """Reduced to the page's width, or where it is tiny enlarged so that its pixels show."""
    if max(image.size) < _SMALL_IMAGE:
        factor = _SMALL_IMAGE // max(image.size)
        return image.resize((image.width * factor, image.height * factor), Image.Resampling.NEAREST)
    scale = min(1, _IMAGE_WIDTH / image.width, _IMAGE_HEIGHT / image.height)
    return image.resize((max(1, round(image.width * scale)), max(1, round(image.height * scale))))


def _stack(parts: list[Image.Image]) -> Image.Image:
    height = sum(part.height for part in parts) + _GAP * (len(parts) - 1) + 2 * _MARGIN
    page = Image.new("RGB", (_WIDTH, height), "white")
    top = _MARGIN
    for part in parts:
        page.paste(part, (_MARGIN, top))
        top += part.height + _GAP
    return page
