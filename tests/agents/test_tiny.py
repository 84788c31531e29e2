"""Tiny models: complete folders of the real families that load offline, speak their chat format and stop."""

from typing import Any

import pytest
import torch
from PIL import Image
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoProcessor,
    AutoTokenizer,
)

from mmcorl.agents.tiny import FAMILIES, TinySizes, make_tiny
from mmcorl.data.scenes import make_scene
from mmcorl.errors import MmcorlError

VISION = [name for name, family in FAMILIES.items() if family.processor]
TEXT = [name for name in FAMILIES if name not in VISION]
# Families that see a small image whole and in tiles, unless they are told otherwise.
IN_TILES = {"llava_next": 9 + 3 * 4, "llava_onevision": 9 + 3 * 4, "smolvlm": 10 * 9, "idefics3": 10 * 9}
TRICKY = "求三角形 ABC 的面积: $\\frac{\\sqrt{3}}{2}\\,\\mathrm{cm}^2$ 🙂\n\n\t  x² ≤ 10"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("tiny")
    return {family: make_tiny(family, root / family) for family in FAMILIES}


def load(folder) -> Any:
    vision = folder.name in VISION
    return (AutoModelForImageTextToText if vision else AutoModelForCausalLM).from_pretrained(folder).eval()


def inputs_of(folder, question="How many red shapes are there?") -> Any:
    """The inputs of one question, with an image for models that see."""
    if folder.name in TEXT:
        tokenizer = AutoTokenizer.from_pretrained(folder)
        turns = [{"role": "user", "content": question}]
        return tokenizer.apply_chat_template(
            turns, add_generation_prompt=True, return_dict=True, return_tensors="pt"
        )
    processor = AutoProcessor.from_pretrained(folder)
    turns = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": question}]}]
    text = processor.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
    image = make_scene("count", 0, 0)[0].images[0]
    return processor(
        text=[text], images=[[image]], text_kwargs={"add_special_tokens": False}, return_tensors="pt"
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_model_is_small_float32_and_fits_both_engines(folders, family):
    model = load(folders[family])
    text = model.config.get_text_config()
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert 0.3e6 < sum(parameter.numel() for parameter in model.parameters()) < 0.7e6
    assert text.hidden_size // text.num_attention_heads == 32
    assert text.vocab_size >= len(AutoTokenizer.from_pretrained(folders[family]))


@pytest.mark.parametrize("family", FAMILIES)
def test_any_text_survives_the_tokenizer(folders, family):
    tokenizer = AutoTokenizer.from_pretrained(folders[family])
    for text in (TRICKY, "<think> red 3</think><answer> 3</answer>"):
        ids = tokenizer(text, add_special_tokens=False).input_ids
        assert tokenizer.decode(ids, skip_special_tokens=True) == text


@pytest.mark.parametrize("family", VISION)
@pytest.mark.parametrize("task", ["count", "compare", "add", "chart"])
def test_words_of_scenes_are_single_tokens(folders, family, task):
    tokenizer = AutoTokenizer.from_pretrained(folders[family])
    problem, gold = make_scene(task, 0, 0)
    answer = f"<think> purple {gold.answer}</think><answer> {gold.answer}</answer>"
    assert (
        len(tokenizer(problem.question, add_special_tokens=False).input_ids)
        == len(problem.question.split()) + 1
    )
    assert len(tokenizer(answer, add_special_tokens=False).input_ids) == 7


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        (
            "qwen2",
            "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n",
        ),
        ("qwen3", "<|im_start|>user\nHi<|im_end|>\n"),
        ("llama", "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"),
    ],
)
def test_chat_format_of_text_models(folders, family, expected):
    turns = [{"role": "user", "content": "Hi"}]
    tokenizer = AutoTokenizer.from_pretrained(folders[family])
    assert tokenizer.apply_chat_template(turns, tokenize=False) == expected


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        (
            "qwen2_5_vl",
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>Hi"
            "<|im_end|>\n<|im_start|>assistant\n",
        ),
        (
            "internvl",
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n<IMG_CONTEXT>\nHi<|im_end|>\n"
            "<|im_start|>assistant\n",
        ),
        (
            "gemma3",
            "<bos><start_of_turn>user\nBe brief.\n\n<start_of_image>Hi<end_of_turn>\n<start_of_turn>model\n",
        ),
        ("mistral3", "<s>[SYSTEM_PROMPT]Be brief.[/SYSTEM_PROMPT][INST][IMG]Hi[/INST]"),
    ],
)
def test_chat_format_of_vision_models(folders, family, expected):
    turns = [
        {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
        {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "Hi"}]},
    ]
    processor = AutoProcessor.from_pretrained(folders[family])
    assert processor.apply_chat_template(turns, tokenize=False, add_generation_prompt=True) == expected


@pytest.mark.parametrize("family", FAMILIES)
def test_an_answer_ends_with_a_stop_token(folders, family):
    model, tokenizer = load(folders[family]), AutoTokenizer.from_pretrained(folders[family])
    turns = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Ho"},
        {"role": "user", "content": "Hm"},
    ]
    chat = tokenizer.apply_chat_template(turns, tokenize=False)
    ending = tokenizer(chat[chat.rindex("Ho") + 2 :].strip(), add_special_tokens=False).input_ids
    stops = model.generation_config.eos_token_id
    assert ending[0] in stops
    assert model.generation_config.pad_token_id == tokenizer.pad_token_id


@pytest.mark.parametrize("family", VISION)
def test_every_image_feature_has_its_placeholder(folders, family):
    model, inputs = load(folders[family]), inputs_of(folders[family])
    assert int((inputs["input_ids"] == model.config.image_token_id).sum()) == IN_TILES.get(family, 9)
    with torch.no_grad():
        logits = model(**inputs).logits
        blank = model(**{**inputs, "pixel_values": torch.full_like(inputs["pixel_values"], 0.1)}).logits
    assert (logits[0, -1] - blank[0, -1]).abs().max() > 1e-3


@pytest.mark.parametrize("family", FAMILIES)
def test_generate_stops_at_a_stop_token(folders, family):
    model, inputs = load(folders[family]), inputs_of(folders[family])
    stop = model.generation_config.eos_token_id[-1]
    # All tokens but one made unlikely: the last stop of the list, the one that a single-id reading would miss.
    head = model.get_output_embeddings()
    with torch.no_grad():
        head.weight.mul_(1e-3)
        hidden = model.model(**inputs).last_hidden_state[0, -1]
        head.weight[stop] = hidden
    output = model.generate(**inputs, max_new_tokens=5, do_sample=False)
    assert output[0, inputs["input_ids"].shape[1] :].tolist() == [stop]


def test_weights_follow_the_seed_and_leave_the_random_state_alone(tmp_path):
    state = torch.get_rng_state()
    first, again, other = (
        load(make_tiny("qwen2", tmp_path / str(i) / "qwen2", seed=seed)) for i, seed in enumerate((1, 1, 2))
    )
    assert torch.equal(torch.get_rng_state(), state)
    weights = [model.get_input_embeddings().weight for model in (first, again, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_sizes_reach_the_model(tmp_path):
    folder = make_tiny("internvl", tmp_path, sizes=TinySizes(hidden=64, layers=3, heads=2, image_size=112))
    config = AutoConfig.from_pretrained(folder)
    assert (config.text_config.hidden_size, config.text_config.num_hidden_layers) == (64, 3)
    image = Image.new("RGB", (112, 112))
    inputs = AutoProcessor.from_pretrained(folder)(
        text=["<IMG_CONTEXT>"], images=[[image]], return_tensors="pt"
    )
    assert int((inputs["input_ids"] == config.image_token_id).sum()) == 16


def test_unknown_family_is_named(tmp_path):
    with pytest.raises(MmcorlError, match=r"'qwen9'.*qwen2_5_vl"):
        make_tiny("qwen9", tmp_path)
