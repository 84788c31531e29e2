from pathlib import Path

import pytest

from mmcorl.config import ImagesConfig
from mmcorl.errors import MmcorlError
from mmcorl.planning.shapes import read_shape

MODELS = Path(__file__).parent / "models"


def test_qwen2_5_vl_7b_has_its_published_size():
    shape = read_shape(str(MODELS / "qwen2_5_vl_7b"))
    assert shape.total == 8_292_166_656
    assert (shape.vocabulary, shape.head) == (152064, 152064 * 3584)
    assert (shape.text.layers, shape.text.queries, shape.text.keys) == (28, 3584, 512)
    assert shape.vision is not None and shape.vision.layers == 32
    assert shape.patches(802816, ImagesConfig()) == 4096  # 1,024 tokens of four patches each
    assert shape.patches_per_token == 4


def test_internvl3_5_8b_has_its_published_size():
    shape = read_shape(str(MODELS / "internvl3_5_8b"))
    assert shape.total == 8_528_318_464
    assert (shape.text.layers, shape.text.queries, shape.text.keys) == (36, 4096, 1024)
    assert shape.text.norms == 2 * 4096 + 4096 + 1024  # of the hidden state, the queries and the keys
    assert shape.vision is not None and not shape.vision.gated
    assert shape.patches(10**6, ImagesConfig()) == 1024
    assert shape.patches(10**6, ImagesConfig(tiling=True)) == 13 * 1024
    assert shape.patches_per_token == 4


def test_a_text_model_sees_no_images(tiny_folder):
    shape = read_shape(str(tiny_folder("qwen3")))
    assert shape.vision is None and shape.patches(10**6, ImagesConfig()) == 0
    assert shape.parameters["text"] == shape.total


@pytest.mark.parametrize("family", ["qwen2_5_vl", "qwen3_vl", "internvl", "gemma3", "qwen2", "llama"])
def test_every_family_has_a_shape(tiny_folder, family):
    shape = read_shape(str(tiny_folder(family)))
    assert shape.text.layers == 2 and shape.text.gated and shape.text.readers == 5
    assert shape.total > shape.text.layers * shape.text.parameters > 0


def test_a_folder_without_configuration_is_named(tmp_path):
    with pytest.raises(MmcorlError, match="has no configuration that can be read"):
        read_shape(str(tmp_path))
