"""Which learning rate every part of a model has, and when."""

from __future__ import annotations

import pytest
import torch

from mmcorl.config import OptimizerConfig, PartRates
from mmcorl.errors import MmcorlError
from mmcorl.training.optimizers import build_optimizer, set_learning_rates, share_of_peak


def test_each_part_learns_at_its_own_rate(tiny_agent):
    agent = tiny_agent("qwen2_5_vl")
    settings = OptimizerConfig(lr=1e-3, lr_of=PartRates(vision=1e-5))
    optimizer = build_optimizer(agent.model.named_parameters(), agent.backbone.part_of, settings)
    set_learning_rates(optimizer, 0.5)
    names = {id(p): n for n, p in agent.model.named_parameters()}
    rates = {names[id(p)]: group["lr"] for group in optimizer.param_groups for p in group["params"]}
    assert rates.keys() == set(names.values())
    for name, rate in rates.items():
        assert rate == (0.5e-5 if agent.backbone.part_of(name) == "vision" else 0.5e-3), name


def test_equal_rates_are_one_group():
    weights = [(f"w{i}", torch.nn.Parameter(torch.zeros(2))) for i in range(3)]
    optimizer = build_optimizer(weights, lambda name: "text", OptimizerConfig(lr=1e-3))
    assert [len(group["params"]) for group in optimizer.param_groups] == [3]


def test_learning_rates_rise_and_fall_as_the_schedule_says():
    def rates(**settings):
        config = OptimizerConfig.model_validate(settings)
        return [share_of_peak(config, update, 100) for update in range(100)]

    cosine = rates(schedule="cosine", warmup_share=0.1, final_share=0.1)
    assert cosine[0] == pytest.approx(0.1) and cosine[9] == pytest.approx(1.0)
    assert cosine[10:] == sorted(cosine[10:], reverse=True)
    assert cosine[55] == pytest.approx(0.55) and cosine[99] == pytest.approx(0.1, abs=1e-3)
    assert rates(schedule="constant", warmup_share=0.0) == [1.0] * 100
    linear = rates(schedule="linear", warmup_share=0.2)
    assert (
        linear[19:21] == [1.0, 1.0]
        and linear[60] == pytest.approx(0.5)
        and linear[99] == pytest.approx(1 / 80)
    )
    assert rates(schedule="linear", warmup_share=0.999)[99] == 1.0  # all of it a rise


def with_gradients(parameters, seed):
    generator = torch.Generator().manual_seed(seed)
    for parameter in parameters:
        parameter.grad = torch.randn(parameter.shape, generator=generator) + parameter.detach()


def test_in_8_bits_it_follows_adamw():
    """Large weights by 8-bit averages, small ones by AdamW itself; both at the rates and with the decay asked for."""
    results = {}
    for kind in ("adamw", "adamw_8bit"):
        torch.manual_seed(0)
        large, small = torch.nn.Parameter(torch.randn(64, 128)), torch.nn.Parameter(torch.randn(16))
        settings = OptimizerConfig(kind=kind, lr=1e-2, weight_decay=0.1, lr_of=PartRates(vision=2e-2))
        optimizer = build_optimizer(
            [("text", large), ("vision", small)],
            lambda name: "vision" if name == "vision" else "text",
            settings,
        )
        for step in range(5):
            set_learning_rates(optimizer, 1 / (step + 1))
            with_gradients([large, small], step)
            optimizer.step()
        results[kind] = [w.detach() for w in (large, small)]
        if kind == "adamw_8bit":
            assert optimizer.state[large]["state1"].dtype == torch.uint8
            assert optimizer.state[small]["state1"].dtype == torch.float32
    (large, small), (large_8bit, small_8bit) = results["adamw"], results["adamw_8bit"]
    assert torch.allclose(small_8bit, small, atol=1e-6)
    assert (large_8bit - large).norm() < 0.02 * (large - torch.zeros_like(large)).norm()
    assert not torch.equal(large_8bit, large)


def test_8_bits_without_the_package_say_what_to_install(monkeypatch):
    monkeypatch.setattr("mmcorl.agents.extras.find_spec", lambda package: None)
    weights = [("w", torch.nn.Parameter(torch.zeros(2)))]
    with pytest.raises(MmcorlError, match=r"optimizer\.kind=adamw_8bit needs bitsandbytes.*mmcorl\[lora\]"):
        build_optimizer(weights, lambda name: "text", OptimizerConfig(kind="adamw_8bit"))
