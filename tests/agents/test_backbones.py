"""Backbones on real images of many sizes: one image, several, none, in tiles and whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from mmcorl.agents.agent import Agent
from mmcorl.agents.backbones import BACKBONES
from mmcorl.agents.batches import TokenGroup
from mmcorl.agents.lengths import PromptLengths
from mmcorl.agents.tiny import FAMILIES
from mmcorl.config import AgentConfig, ImagesConfig, PromptConfig, RolloutsConfig
from mmcorl.errors import MmcorlError
from mmcorl.problems import Problem

FIXTURES = Path(__file__).parents[1]
FIGURES = (
    *sorted((FIXTURES / "data/fixtures/geometry3k").glob("*/img_diagram.png")),
    *sorted((FIXTURES / "evaluation/fixtures/mathvision/images").glob("*.png")),
    *sorted((FIXTURES / "evaluation/fixtures/mathverse/images").glob("*.png")),
)
VISUAL = [name for name, family in FAMILIES.items() if family.processor]
# Families whose images are in tiles or whole as a run asks for.
TILED = ["internvl", "smolvlm", "idefics3", "minicpmv4_6", "minicpmv4_7"]
PROBLEMS = [
    Problem("none", "What is 2 + 3?"),
    *(Problem(f"one-{k}", "How long is it?", (figure,)) for k, figure in enumerate(FIGURES)),
    Problem("several", "Is <image> larger than <image>, or <image>?", FIGURES[:3]),
    Problem("many", "Which one differs?", tuple(FIGURES[k % len(FIGURES)] for k in range(9))),
]


def rows_of_model(agent: Agent, vision: dict[str, Tensor]) -> int:
    """Rows that the model's own vision part makes."""
    model: Any = agent.model.base_model
    features = model.get_image_features(**vision).pooler_output
    parts: Sequence[Tensor] = [features] if isinstance(features, Tensor) else features
    return sum(part.numel() // part.shape[-1] for part in parts)


@pytest.mark.parametrize(
    ("family", "tiling"), [(name, False) for name in VISUAL] + [(name, True) for name in TILED]
)
def test_real_images(family: str, tiling: bool, tiny_folder: Callable[[str], Path]):
    folder = tiny_folder(family)
    images = ImagesConfig(max_pixels=40_000, tiling=tiling)
    agent = Agent.load(
        "a", AgentConfig(model=str(folder)), PromptConfig(), images, RolloutsConfig(max_prompt_tokens=20_000)
    )
    lengths = PromptLengths(folder, PromptConfig(), images)
    prompts = [agent.encode(problem) for problem in PROBLEMS]
    for problem, prompt in zip(PROBLEMS, prompts, strict=True):
        assert lengths(problem) == len(prompt.ids), problem.id
    with torch.no_grad():
        for prompt in prompts[1:]:
            assert agent.backbone.feature_rows(prompt.vision) == rows_of_model(agent, prompt.vision)
        # One batch of prompts with no, one and three images; each alone.
        completions = [torch.tensor([300, 301, 302]), torch.tensor([303])]
        groups = [TokenGroup(prompt, completions) for prompt in (prompts[0], *prompts[2:4], prompts[-2])]
        together = agent.policy.logprobs(groups)
        alone = torch.cat([agent.policy.plain_logprobs([group]) for group in groups])
    assert (together - alone).abs().max() < 1e-4


def test_tiling_is_asked_for(tiny_folder: Callable[[str], Path]):
    """Families that can be told see a large image whole, unless tiling is on."""
    large = Problem("large", "How long is it?", (FIGURES[-1],))
    for family in TILED:
        whole, tiled = (
            PromptLengths(tiny_folder(family), images=ImagesConfig(tiling=tiling))(large)
            for tiling in (False, True)
        )
        assert tiled > whole + 20, family


def test_the_caps_of_a_run_reach_the_processor(tiny_folder: Callable[[str], Path]):
    """Families without squares of a fixed size show an image as large as the run allows, to within a patch."""
    figure = Problem("figure", "How long is it?", (FIGURES[0],))
    for family in ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "glm4v"):
        caps = ImagesConfig(min_pixels=60_000, max_pixels=80_000)
        agent = Agent.load("a", AgentConfig(model=str(tiny_folder(family))), images=caps)
        sight = agent.model.config.vision_config
        grid = agent.encode(figure).vision["image_grid_thw"]
        assert 0.8 * 60_000 < int(grid.prod()) * sight.patch_size**2 < 1.1 * 80_000, family


def test_every_row_has_a_tiny_model(tiny_folder: Callable[[str], Path]):
    assert set(BACKBONES) <= set(FAMILIES)


def test_a_family_without_a_row_is_told_what_to_do(
    tiny_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delitem(BACKBONES, "llava")
    with pytest.raises(MmcorlError, match=r"'llava' has no backbone.*mmcorl-check"):
        Agent.load("a", AgentConfig(model=str(tiny_folder("llava"))))


def test_a_missing_package_is_named(tiny_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch):
    from transformers.models.smolvlm import processing_smolvlm

    monkeypatch.setattr(processing_smolvlm, "num2words", None)
    with pytest.raises(MmcorlError, match=r"pip install 'mmcorl\[smolvlm\]'"):
        Agent.load("a", AgentConfig(model=str(tiny_folder("smolvlm"))))
