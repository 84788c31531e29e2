"""The built-in data set: small pictures of coloured shapes and bar charts, with questions about what is in them.

Four tasks, each answered by one small whole number (drawn uniformly, so that guessing gains nothing):

- `count`: how many shapes have one colour (0 to 4; chance is one in five)
- `compare`: how many more shapes have one colour than another (0 to 4)
- `add`: how many shapes have either of two colours (0 to 8)
- `chart`: the value of one bar of a bar chart (1 to 8)

Problem number i of a seed is always the same, whatever the size of the set it is drawn into.
"""

from __future__ import annotations

import random

from PIL import Image, ImageDraw, ImageFont

from mmcorl.config import ScenesConfig, Task
from mmcorl.problems import Gold, Problem

Colour = tuple[int, int, int]

COLOURS: dict[str, Colour] = {
    "red": (220, 45, 45),
    "blue": (45, 85, 220),
    "green": (50, 165, 70),
    "yellow": (235, 215, 50),
    "purple": (150, 55, 185),
    "orange": (245, 140, 35),
}
LETTERS = "ABCD"

_BACKGROUND: Colour = (128, 128, 128)
_GRID = 3
_CELL = 28.0  # the unit of all lengths below: a cell of the 84-pixel picture
_COLOUR_JITTER = 12
_CHART_TOP = 8
_SUPERSAMPLING = 4


def scenes(config: ScenesConfig) -> list[tuple[Problem, Gold]]:
    """The problems of a configuration, in order; the tasks take turns, multiple choice is drawn for each problem."""
    return [
        make_scene(
            config.tasks[index % len(config.tasks)],
            config.seed,
            index,
            as_choice=random.Random(f"form {config.seed} {index}").random() < config.choice_share,
            image_size=config.image_size,
        )
        for index in range(config.size)
    ]


def make_scene(
    task: Task, seed: int, index: int, *, as_choice: bool = False, image_size: int = 84
) -> tuple[Problem, Gold]:
    """One problem with a square RGB picture of `image_size` pixels, and its answer.

    The answer is a number, or with `as_choice` the letter of one of four options. The same scene can be had
    either way: `as_choice` changes neither the picture nor the question.
    """
    rng = random.Random(f"{task} {seed} {index}")
    match task:
        case "count":
            question, answer, image = _count(rng, image_size)
        case "compare":
            question, answer, image = _compare(rng, image_size)
        case "add":
            question, answer, image = _add(rng, image_size)
        case "chart":
            question, answer, image = _chart(rng, image_size)
    name = f"{task}-{seed}-{index}"
    if not as_choice:
        return Problem(name, question, (image,)), Gold(str(answer))
    near = [value for value in range(max(0, answer - 3), answer + 4) if value != answer]
    options = [answer, *rng.sample(near, len(LETTERS) - 1)]
    rng.shuffle(options)
    choices = tuple(str(option) for option in options)
    return Problem(name, question, (image,), choices, "choice"), Gold(LETTERS[options.index(answer)])


def _count(rng: random.Random, image_size: int) -> tuple[str, int, Image.Image]:
    (colour,) = _pick_colours(rng, 1)
    number = rng.randint(0, 4)
    image = _shapes(rng, {colour: number}, image_size)
    return f"How many {colour} shapes are there?", number, image


def _compare(rng: random.Random, image_size: int) -> tuple[str, int, Image.Image]:
    more, fewer = _pick_colours(rng, 2)
    difference = rng.randint(0, 4)
    least = rng.randint(0, (_GRID**2 - 1 - difference) // 2)
    image = _shapes(rng, {more: least + difference, fewer: least}, image_size)
    return f"How many more {more} shapes than {fewer} shapes are there?", difference, image


def _add(rng: random.Random, image_size: int) -> tuple[str, int, Image.Image]:
    first, second = _pick_colours(rng, 2)
    total = rng.randint(0, 8)
    part = rng.randint(max(0, total - 4), min(4, total))
    image = _shapes(rng, {first: part, second: total - part}, image_size)
    return f"How many {first} and {second} shapes are there together?", total, image


def _chart(rng: random.Random, image_size: int) -> tuple[str, int, Image.Image]:
    bars = {colour: rng.randint(1, _CHART_TOP) for colour in _pick_colours(rng, 4)}
    asked = rng.choice(list(bars))
    return f"What is the value of the {asked} bar?", bars[asked], _bar_chart(rng, bars, image_size)


def _pick_colours(rng: random.Random, number: int) -> list[str]:
    return rng.sample(list(COLOURS), number)


def _jittered(rng: random.Random, colour: str) -> Colour:
    red, green, blue = (
        min(255, max(0, level + rng.randint(-_COLOUR_JITTER, _COLOUR_JITTER))) for level in COLOURS[colour]
    )
    return red, green, blue


def _shapes(rng: random.Random, asked: dict[str, int], image_size: int) -> Image.Image:
    """A grid of cells with at most one shape each: as many of each asked colour as told, and distractors."""
    filled = [colour for colour, number in asked.items() for _ in range(number)]
    free = _GRID**2 - len(filled)
    others = [colour for colour in COLOURS if colour not in asked]
    filled += rng.choices(others, k=rng.randint(min(2, free), free))
    cells = rng.sample(range(_GRID**2), len(filled))

    image, draw, scale = _canvas(image_size, units=_GRID * _CELL)
    for cell, colour in zip(cells, filled, strict=True):
        row, column = divmod(cell, _GRID)
        x = (column + 0.5) * _CELL + rng.uniform(-2, 2)
        y = (row + 0.5) * _CELL + rng.uniform(-2, 2)
        radius = rng.uniform(8, 10)
        corners = [(x - radius) * scale, (y - radius) * scale, (x + radius) * scale, (y + radius) * scale]
        fill = _jittered(rng, colour)
        match rng.choice(("circle", "square", "triangle")):
            case "circle":
                draw.ellipse(corners, fill)
            case "square":
                draw.rectangle(corners, fill)
            case _:
                left, top, right, bottom = corners
                draw.polygon([(x * scale, top), (right, bottom), (left, bottom)], fill)
    return image.reduce(_SUPERSAMPLING)


def _bar_chart(rng: random.Random, bars: dict[str, int], image_size: int) -> Image.Image:
    """Coloured bars over a common base line, with a ruled line for every unit and a number at every second one."""
    units = _GRID * _CELL
    left, right, base, step = 13.0, units - 3, units - 5, 9.0
    image, draw, scale = _canvas(image_size, units)
    font = ImageFont.load_default(size=9 * scale)
    for value in range(_CHART_TOP + 1):
        y = (base - value * step) * scale
        draw.line([left * scale, y, right * scale, y], (160, 160, 160), width=round(0.7 * scale))
        if value % 2 == 0:
            draw.text(((left - 3) * scale, y), str(value), (235, 235, 235), font=font, anchor="rm")
    pitch = (right - left) / len(bars)
    for place, (colour, value) in enumerate(bars.items()):
        start = left + (place + 0.17) * pitch
        corners = [start, base - value * step, start + 0.66 * pitch, base]
        draw.rectangle([edge * scale for edge in corners], _jittered(rng, colour))
    draw.line([left * scale, base * scale, right * scale, base * scale], (235, 235, 235), width=round(scale))
    return image.reduce(_SUPERSAMPLING)


def _canvas(image_size: int, units: float) -> tuple[Image.Image, ImageDraw.ImageDraw, float]:
    """An enlarged grey picture to be reduced to `image_size`, which smooths its edges; and its pixels per unit."""
    side = image_size * _SUPERSAMPLING
    image = Image.new("RGB", (side, side), _BACKGROUND)
    return image, ImageDraw.Draw(image), side / units
