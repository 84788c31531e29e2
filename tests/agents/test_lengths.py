from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from mmcorl.agents.agent import Agent
from mmcorl.agents.lengths import PromptLengths
from mmcorl.agents.tiny import FAMILIES
from mmcorl.config import AgentConfig, ImagesConfig, PromptConfig, RolloutsConfig
from mmcorl.errors import MmcorlError
from mmcorl.problems import Problem

VISUAL = [name for name, family in FAMILIES.items() if family.processor]
PROMPT = PromptConfig(system="Be brief.")
CAPS = [
    ImagesConfig(min_pixels=784, max_pixels=100_000),
    ImagesConfig(min_pixels=784, max_pixels=100_000, tiling=True),
    ImagesConfig(min_pixels=50_000, max_pixels=60_000, max_long_side=200),
]


def picture(width: int, height: int) -> Image.Image:
    return Image.new("RGB", (width, height), "red")


def stored(image: Image.Image, orientation: int = 1) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", exif=exif)
    return buffer.getvalue()


PROBLEMS = [
    Problem("text", "What is 3 + 4?"),
    Problem("choice", "Which?", (), ("three", "four"), "choice"),
    Problem("image", "How many?", (picture(84, 84),)),
    Problem("wide", "<image>\nHow many?", (picture(900, 60),)),
    Problem("turned", "How many?\n", (stored(picture(300, 120), orientation=6),)),
    Problem("large", "How many?", (picture(1300, 700),)),
    Problem(
        "two",
        "First <image>, then\n\n<image>: which?",
        (picture(84, 84), picture(30, 200)),
        ("a", "b"),
        "choice",
    ),
]


@pytest.mark.parametrize("images", CAPS)
@pytest.mark.parametrize("family", VISUAL)
def test_lengths_are_those_of_the_prompts(
    family: str, images: ImagesConfig, tiny_folder: Callable[[str], Path]
):
    folder = tiny_folder(family)
    agent = Agent.load(
        family, AgentConfig(model=str(folder)), PROMPT, images, RolloutsConfig(max_prompt_tokens=100_000)
    )
    lengths = PromptLengths(folder, PROMPT, images)
    for problem in PROBLEMS:
        assert lengths(problem) == len(agent.encode(problem).ids), problem.id


def test_text_models(tiny_folder: Callable[[str], Path]):
    folder = tiny_folder("qwen2")
    agent = Agent.load("text", AgentConfig(model=str(folder)))
    lengths = PromptLengths(folder)
    assert [lengths(p) for p in PROBLEMS[:2]] == [len(agent.encode(p).ids) for p in PROBLEMS[:2]]
    with pytest.raises(MmcorlError, match="problem 'image' has an image, and qwen2 models read text only"):
        lengths(PROBLEMS[2])


def test_what_cannot_be_counted(tiny_folder: Callable[[str], Path], tmp_path: Path):
    with pytest.raises(MmcorlError, match="is no model whose prompts can be counted"):
        PromptLengths(tmp_path)
    lengths = PromptLengths(tiny_folder("qwen2_5_vl"))
    with pytest.raises(MmcorlError, match="cannot take image 1 of problem 'thin': absolute aspect ratio"):
        lengths(Problem("thin", "q", (picture(2000, 2),)))
