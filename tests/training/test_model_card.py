from pathlib import Path

import yaml

from mmcorl.config_loading import load_config
from mmcorl.training.model_card import model_card

BEST = {"step": 30, "score": 0.8125, "rule": "held-out greedy accuracy"}


CONFIGS = Path(__file__).parents[2] / "configs"


def card(*overrides, best=None, file="quickstart.yaml"):
    return model_card(load_config(CONFIGS / file, list(overrides)), "qwen", best)


def test_a_card_says_with_whom_how_and_which_checkpoint():
    text = card(best=BEST)
    _, header, body = text.split("---\n", 2)
    assert yaml.safe_load(header)["library_name"] == "transformers"
    assert "agent `qwen` with `internvl`" in body and "Co-RL" in body
    assert "- Labels: none" in body and "built-in scenes" in body
    assert "step 30, chosen by held-out greedy accuracy (0.8125)" in body
    assert yaml.safe_load(body.split("```yaml\n")[1].split("```")[0])["run"]["name"] == "pair"


def test_a_run_on_gold_answers_says_so():
    assert "- Labels: used as rewards" in card("reward.rule=gold")
    assert "This checkpoint" not in card()


def test_agents_that_read_each_other_are_no_co_rl():
    maporl, comas = (card(file=f"tiny/{kind}.yaml") for kind in ("maporl", "comas"))
    assert "(`interaction.kind=maporl`)" in maporl and "- Labels: used as rewards" in maporl
    assert "(`interaction.kind=comas`)" in comas and "- Labels: none" in comas
    assert "Co-RL" not in maporl + comas


def test_adapters_are_said_to_be_adapters():
    _, header, body = card("agents.qwen.lora.rank=8", "agents.qwen.quantize=4bit").split("---\n", 2)
    assert yaml.safe_load(header)["library_name"] == "peft"
    assert "- Adapters: LoRA of rank 8 and alpha 64 on text, beside weights in 4 bits" in body
