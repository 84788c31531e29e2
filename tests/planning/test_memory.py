"""Formulas against numbers worked out by hand, for the text part of Qwen2.5-VL-7B (28 layers of 3584)."""

from dataclasses import replace
from pathlib import Path

import pytest

from mmcorl.planning import memory
from mmcorl.planning.shapes import read_shape

MODELS = Path(__file__).parent / "models"


@pytest.fixture(scope="module")
def text():
    return read_shape(str(MODELS / "qwen2_5_vl_7b")).text


def test_a_layer_keeps_what_its_parts_read(text):
    norms = 2 * 2 * 3584 * 4  # two norms: what they read and what they normalised
    reads = 2 * 3584 * 4  # into attention and into the feed-forward part
    attention = 4 * 3584 * 4 + 28 * 4  # q, k, v and output, and a normaliser of each head
    inner = 4 * 18944 * 4
    assert memory.layer_kept(text, 4) == norms + reads + attention + inner


def test_bfloat16_halves_all_but_norms_and_casts_for_each_reader(text):
    norms = 2 * 2 * 3584 * 4
    assert memory.layer_kept(text, 2) == norms + 5 * 3584 * 2 + 4 * 3584 * 2 + 28 * 4 + 4 * 18944 * 2


def test_norms_with_frozen_weights_keep_their_input_alone(text):
    assert memory.layer_kept(text, 4) - memory.layer_kept(text, 4, own_trained=False) == text.normalised * 4


def test_a_plain_feed_forward_part_keeps_two_tensors(text):
    plain = replace(text, gated=False)
    assert memory.layer_kept(text, 4) - memory.layer_kept(plain, 4) == 2 * 18944 * 4


def test_eager_attention_keeps_its_softmax(text):
    assert memory.layer_kept(text, 2, scores_row=100) - memory.layer_kept(text, 2) == 28 * 100 * (4 + 2)


def test_a_checkpoint_is_the_input_of_a_layer(text):
    assert memory.layer_checkpoint(text) == 3584 * 4


def test_the_cache_has_float32_keys_and_values_as_computed(text):
    assert memory.cache(text, 2) == 28 * 512 * (4 + 2)
    assert memory.cache(text, 4) == 28 * 512 * 8


def test_logits_of_a_turn_are_a_few_copies_of_the_vocabulary():
    assert memory.head_turn(1024, 152064, 2, backward=True) == 1024 * 152064 * 16
    assert memory.head_turn(1024, 152064, 2, backward=False) == 1024 * 152064 * 10


def test_adam_state_of_a_billion():
    assert memory.adam_state(10**9, eight_bit=False) == 8 * 10**9
    assert memory.adam_state(10**9, eight_bit=True) == 2 * 10**9 + 31_250_000
