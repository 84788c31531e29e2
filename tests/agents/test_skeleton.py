"""From a model without a backbone to one with: what is found in it, the file to begin with, and the contract."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import transformers
from packaging.version import Version
from transformers import (
    AutoConfig,
    AutoProcessor,
    GenerationConfig,
    VipLlavaConfig,
    VipLlavaForConditionalGeneration,
)

from mmcorl.agents import contract
from mmcorl.agents.agent import Agent
from mmcorl.agents.backbones import BACKBONES
from mmcorl.agents.backbones.skeleton import backbone_from, skeleton
from mmcorl.agents.backbones.survey import survey
from mmcorl.config import AgentConfig
from mmcorl.errors import MmcorlError


@pytest.fixture(scope="module")
def vipllava(tiny_folder: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A family that is not registered: LLaVA with features of several vision layers."""
    folder = tmp_path_factory.mktemp("vipllava")
    llava = AutoConfig.from_pretrained(tiny_folder("llava"))
    config = VipLlavaConfig(
        text_config=llava.text_config,
        vision_config=llava.vision_config,
        image_token_index=llava.image_token_index,
        image_seq_length=llava.image_seq_length,
        vision_feature_layer=[-1, -2],
        tie_word_embeddings=True,
    )
    model = VipLlavaForConditionalGeneration(config)
    model.generation_config = GenerationConfig.from_pretrained(tiny_folder("llava"))
    processor = AutoProcessor.from_pretrained(tiny_folder("llava"))
    for part in (model, processor):
        part.save_pretrained(folder)
    return folder


@pytest.mark.skipif(
    Version(transformers.__version__) < Version("5.24"),
    reason="VipLlava's own forward raises an IndexError in transformers 5.19",
)
def test_a_family_that_is_not_registered_keeps_the_contract_by_its_skeleton(
    vipllava: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    assert "vipllava" not in BACKBONES
    found = survey(vipllava)
    file = tmp_path / "vipllava.py"
    file.write_text(skeleton(found))
    monkeypatch.setitem(BACKBONES, found.model_type, backbone_from(file))
    outcomes = list(contract.check(Agent.load("new", AgentConfig(model=str(vipllava)))))
    assert len(outcomes) == len(contract.POINTS)
    assert [outcome for outcome in outcomes if not outcome.holds] == []


def test_what_is_found(tiny_folder: Callable[[str], Path]):
    found = survey(tiny_folder("glm4v"))
    assert found.model_type == "glm4v"
    assert found.token_inputs == ("mm_token_type_ids",)
    assert found.vision_inputs == ("pixel_values", "image_grid_thw")
    assert found.vision_names == ("visual.",)
    assert found.projector_names == ("visual.merger.", "visual.downsample.")
    assert found.positions == ("input_ids", "mm_token_type_ids", "image_grid_thw")
    assert [sample.tokens for sample in found.samples] == [18, 15, 33]
    said = "\n".join(found.lines())
    for name in ("Glm4vForConditionalGeneration", "Glm4vProcessor", "image_token_id", "get_rope_index"):
        assert name in said


def test_images_that_lie_along_another_axis_are_found_out(tiny_folder: Callable[[str], Path]):
    found = survey(tiny_folder("minicpmv4_6"))
    assert {name: found.axis(name) for name in found.vision_inputs} == {"pixel_values": 3, "target_sizes": 0}
    assert "vision_axes: ClassVar = {" in skeleton(found)
    assert found.projector_names == ("merger.", "vision_tower.vit_merger.")


def test_marks_around_an_image_are_found(tiny_folder: Callable[[str], Path]):
    written = skeleton(survey(tiny_folder("internvl")))
    assert 'return "<IMG_CONTEXT>", "<img><IMG_CONTEXT></img>"' in written


def test_marks_between_the_rows_of_an_image_are_found(tiny_folder: Callable[[str], Path]):
    found = survey(tiny_folder("mistral3"))
    assert found.samples[0].shown == "[IMG]"
    assert found.samples[0].framed == "[IMG][IMG_BREAK]" * 2 + "[IMG][IMG_END]"
    assert "count the marks too" in skeleton(found)


def test_what_a_skeleton_misses_is_a_broken_point_with_a_hint(
    tiny_folder: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Gemma's images see themselves in both directions, which no configuration tells."""
    folder = tiny_folder("gemma3")
    file = tmp_path / "mine.py"
    file.write_text(skeleton(survey(folder)))
    monkeypatch.setitem(BACKBONES, "gemma3", backbone_from(file))
    broken = [o for o in contract.check(Agent.load("g", AgentConfig(model=str(folder)))) if not o.holds]
    assert [outcome.point[:17] for outcome in broken] == ["Log-probabilities"] * 2
    assert "bidirectional_images" in (broken[0].mend or "")
    assert str(file) in (broken[0].hint or "")


def test_what_cannot_be_guessed_is_left_open(tiny_folder: Callable[[str], Path]):
    assert "NotImplementedError" in skeleton(survey(tiny_folder("llava_onevision")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "defines 0 subclasses"),
        ("class Mine(Backbone): pass\n", "cannot be run: name 'Backbone'"),
        ("def f(:\n", "cannot be run"),
    ],
)
def test_a_file_without_a_backbone_is_named(tmp_path: Path, text: str, message: str):
    file = tmp_path / "mine.py"
    file.write_text(text)
    with pytest.raises(MmcorlError, match=f"mine.py .*{message}"):
        backbone_from(file)
    sys.modules.pop("mmcorl_backbone_mine", None)


def test_a_model_that_writes_no_text_is_refused(tiny_folder: Callable[[str], Path], tmp_path: Path):
    (tmp_path / "config.json").write_text('{"model_type": "vit"}')
    with pytest.raises(MmcorlError, match="'vit' is neither a causal text model nor one that reads images"):
        survey(tmp_path)
