"""What settings do to the plan of two models of 7 and 8 billion parameters, and the page that shows it."""

import json
import re
from pathlib import Path

import pytest

from mmcorl.cli.train import main
from mmcorl.config_loading import load_config
from mmcorl.planning.advice import cheapest_changes
from mmcorl.planning.plan import peak_of_device, plan_agent
from mmcorl.planning.shapes import read_shape

ROOT = Path(__file__).parents[2]
MODELS = Path(__file__).parent / "models"
CONFIG = ROOT / "configs" / "qwen2_5_vl_7b_internvl3_5_8b.yaml"
LOCAL = [
    f"agents.qwen.model={MODELS / 'qwen2_5_vl_7b'}",
    f"agents.internvl.model={MODELS / 'internvl3_5_8b'}",
]
GPU = 80 << 30


@pytest.fixture(scope="module")
def shape():
    return read_shape(str(MODELS / "qwen2_5_vl_7b"))


def planned(shape, *overrides, gpu=GPU):
    plan = plan_agent(load_config(CONFIG, [*LOCAL, *overrides]), "qwen", shape, gpu)
    return plan, {item.name: item for item in plan.items}


def test_the_page_shows_what_the_command_prints(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    assert main([str(CONFIG), "--plan", "--gpu-gib", "80", *LOCAL]) == 0
    printed = [line.rstrip() for line in capsys.readouterr().out.strip().splitlines()]
    page = (ROOT / "docs" / "memory.md").read_text(encoding="utf-8")
    [shown] = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    assert shown.strip().splitlines() == printed


def test_four_ranks_hold_a_quarter_each(shape):
    _, items = planned(shape)
    assert items["weights"].sampling == shape.total * 4 // 4
    assert items["gradients"].stepping == shape.total * 4 // 4
    assert items["optimiser state"].forward == shape.total * 8 // 4
    assert items["vLLM: weights and cache"].sampling == round(0.4 * GPU)
    assert items["vLLM: weights and cache"].backward == 0


def test_unsharded_ranks_hold_everything(shape):
    _, items = planned(shape, "agents.qwen.sharding=none")
    assert items["weights"].sampling == shape.total * 4
    assert items["weights cast to bfloat16"].forward == sum(shape.linear.values()) * 2


def test_adapters_need_no_second_copy_and_little_state(shape):
    plan, items = planned(shape, "agents.qwen.lora={rank: 8}", "agents.qwen.sharding=none", "loss.beta=0.1")
    matrices = [m for m in shape.matrices if m.part == "text"]
    assert plan.trained == sum(8 * (m.inputs + m.outputs) for m in matrices)
    assert "second copy of the weights" not in items
    assert items["weights"].sampling == shape.total * 2 + plan.trained * 4


def test_four_bits_hold_the_matrices_of_the_text_part(shape):
    _, items = planned(shape, "agents.qwen.lora={rank: 8}", "agents.qwen.sharding=none")
    _, fewer = planned(
        shape, "agents.qwen.lora={rank: 8}", "agents.qwen.sharding=none", "agents.qwen.quantize=4bit"
    )
    matrices = 28 * shape.text.linear
    saved = items["weights"].sampling - fewer["weights"].sampling
    assert saved == pytest.approx(matrices * (2 - 4.127 / 8), rel=1e-6)


def test_zero_holds_its_part_of_the_weights_twice(shape):
    _, items = planned(shape, "agents.qwen.sharding=zero3")
    assert items["weights"].sampling == 2 * (shape.total * 4 // 4)
    assert items["optimiser state"].forward == shape.total * 8 // 4
    _, items = planned(shape, "agents.qwen.sharding=zero2")
    assert items["weights"].sampling == shape.total * 4 + shape.total * 4 // 4


def test_a_reference_and_a_teacher_are_second_copies(shape):
    _, items = planned(shape, "loss.beta=0.1")
    assert items["second copy of the weights"].sampling == shape.total * 4
    _, items = planned(shape, "reward.rule=teacher_vote", "agents.qwen.freeze=[vision]")
    assert items["second copy of the weights"].sampling == (shape.total - shape.parameters["vision"]) * 4


def test_a_frozen_agent_only_samples(shape):
    plan, items = planned(shape, "agents.qwen.frozen=true", "agents.qwen.sharding=none")
    assert plan.trained == 0 and "gradients" not in items and "optimiser state" not in items


def test_checkpointing_keeps_one_input_a_layer(shape):
    _, with_it = planned(shape)
    _, without = planned(shape, "agents.qwen.gradient_checkpointing=false")
    assert without["activations"].forward > 5 * with_it["activations"].forward


def test_agents_that_take_turns_hold_their_batches_one_at_a_time(shape):
    plan, _ = planned(shape)
    config = load_config(CONFIG, LOCAL)
    together = peak_of_device(config, [plan, plan])
    turns = peak_of_device(load_config(CONFIG, [*LOCAL, "cohort.take_turns=true"]), [plan, plan])
    assert together == 2 * plan.peak
    assert turns == plan.peak + plan.idle < together


def test_advice_starts_with_what_costs_least_and_ends_where_it_fits(shape):
    changed = ["agents.qwen.gradient_checkpointing=false", "agents.qwen.batch_tokens=65536"]
    config = load_config(CONFIG, [*LOCAL, *changed])

    def peak(config):
        return plan_agent(config, "qwen", shape, GPU).peak

    changes = cheapest_changes(config, "qwen", peak, GPU)
    settings = [change.settings for change, _ in changes]
    assert settings[0] == "agents.qwen.gradient_checkpointing=true"
    assert all("lora" not in setting for setting in settings)
    peaks = [peak(config), *(then for _, then in changes)]
    assert peaks == sorted(peaks, reverse=True)
    assert peaks[-1] <= GPU < peaks[-2]
    assert peak(changes[-1][0].config) == peaks[-1]


def test_what_does_not_fit_is_told_with_the_settings_to_change(capsys):
    assert main([str(CONFIG), "--plan", "--gpu-gib", "40", *LOCAL]) == 1
    out = capsys.readouterr().out
    assert "does not fit" in out and "-> " in out


def test_a_frozen_agent_is_not_told_to_learn_by_adapters(capsys):
    frozen = ["agents.qwen.frozen=true", "agents.qwen.sharding=none", "cohort.topology=peers"]
    assert main([str(CONFIG), "--plan", "--gpu-gib", "2", *LOCAL, *frozen]) == 1
    out = capsys.readouterr().out
    assert "qwen: change, in this order" in out and "agents.qwen.lora" not in out


@pytest.mark.parametrize("size", ["0", "-80", "nan", "inf"])
def test_a_gpu_without_a_size_is_refused(size, capsys):
    assert main([str(CONFIG), "--plan", f"--gpu-gib={size}", *LOCAL]) == 2
    assert "--gpu-gib" in capsys.readouterr().err


def test_a_folder_of_adapters_has_the_plan_of_its_model(shape, tmp_path):
    base = {"base_model_name_or_path": str(MODELS / "qwen2_5_vl_7b")}
    (tmp_path / "adapter_config.json").write_text(json.dumps(base))
    assert read_shape(str(tmp_path)) == shape
    # A run that begins with adapters has them in its reference too, which is therefore a copy.
    adapters = [f"agents.qwen.model={tmp_path}", "agents.qwen.lora={rank: 8}"]
    plan, items = planned(shape, *adapters, "agents.qwen.sharding=none", "loss.beta=0.1")
    assert items["second copy of the weights"].sampling == shape.total * 2 + plan.trained * 4
