"""Planned against measured: whole training steps of small models, counted by torch's allocator."""

import json

import pytest

from mmcorl.agents.lengths import PromptLengths
from mmcorl.agents.tiny import TinySizes, make_tiny
from mmcorl.config import Config
from mmcorl.data.loading import load_problems
from mmcorl.planning.plan import plan_agent
from mmcorl.planning.shapes import read_shape
from tests.planning.measure import measured_peak

SIZES = TinySizes(hidden=384, layers=3, heads=6, feed_forward=1152, vision_hidden=192, vision_layers=3)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """`model(family)`: a small model that never stops, so that completions are as long as the plan takes them to be."""
    root = tmp_path_factory.mktemp("models")

    def make(family):
        folder = make_tiny(family, root / family, sizes=SIZES)
        settings = json.loads((folder / "generation_config.json").read_text())
        (folder / "generation_config.json").write_text(json.dumps({**settings, "eos_token_id": -1}))
        return folder

    return make


def run_of(model, tmp_path, agent, *, image=None, **sections):
    """A run of one agent, with `max_prompt_tokens` of the longest prompt there is."""
    path = tmp_path / "problems.jsonl"
    rows = [{"question": f"How much is {n} + 1?", "answer": str(n + 1)} for n in range(16)]
    path.write_text("\n".join(map(json.dumps, rows)))
    train = {"scenes": {"size": 16, "image_size": image}} if image else {"path": str(path)}
    values = {
        "agents": {"one": {"model": str(model), **agent}},
        "data": {"train": train},
        "prompt": {"instruction": "Answer."},
        "cohort": {"topology": "self"},
        "rollouts": {"problems_per_step": 8, "per_problem": 8, "max_tokens": 24},
        **sections,
    }
    config = Config.model_validate(values)
    lengths = PromptLengths(model, config.prompt, config.images)
    longest = max(map(lengths, load_problems(config.data.train, "data.train").problems))
    values["rollouts"]["max_prompt_tokens"] = longest
    return Config.model_validate(values)


def ratio(config):
    """Planned over measured peak, for a process on a CPU."""
    shape = read_shape(config.agents["one"].model)
    return plan_agent(config, "one", shape, None).peak / measured_peak(config)


def test_images_in_float32_with_everything_trained(model, tmp_path):
    agent = {"batch_tokens": 1024}
    config = run_of(model("qwen2_5_vl"), tmp_path, agent, image=168)
    assert ratio(config) == pytest.approx(1, abs=0.15)


def test_checkpointed_layers_under_a_frozen_tower(model, tmp_path):
    agent = {"batch_tokens": 4096, "gradient_checkpointing": True, "freeze": ["vision"]}
    config = run_of(model("internvl"), tmp_path, agent, image=84)
    assert ratio(config) == pytest.approx(1, abs=0.15)


def test_text_with_a_reference(model, tmp_path):
    config = run_of(model("qwen3"), tmp_path, {"batch_tokens": 1024}, loss={"beta": 0.04})
    assert ratio(config) == pytest.approx(1, abs=0.15)


def test_text_in_bfloat16(model, tmp_path):
    config = run_of(model("qwen2"), tmp_path, {"batch_tokens": 1024, "dtype": "bfloat16"})
    assert ratio(config) == pytest.approx(1, abs=0.15)


def test_adapters_beside_weights_in_bfloat16(model, tmp_path):
    pytest.importorskip("peft")
    agent = {"batch_tokens": 1024, "dtype": "bfloat16", "lora": {"rank": 8}}
    config = run_of(model("qwen3"), tmp_path, agent, loss={"beta": 0.04})
    assert ratio(config) == pytest.approx(1, abs=0.15)
