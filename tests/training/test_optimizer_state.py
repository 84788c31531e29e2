import pytest
import torch

from mmcorl.config import OptimizerConfig
from mmcorl.errors import MmcorlError
from mmcorl.training.optimizer_state import load_optimizer, snapshot_optimizer
from mmcorl.training.optimizers import build_optimizer


def a_model(seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.LayerNorm(3), torch.nn.Linear(3, 1))


def an_optimizer(model, **settings):
    decayed = [p for p in model.parameters() if p.ndim > 1]
    plain = [p for p in model.parameters() if p.ndim == 1]
    groups = [{"params": decayed}, {"params": plain, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, **{"lr": 1e-2, "betas": (0.9, 0.99), "weight_decay": 0.1} | settings)


def take_steps(model, optimizer, seed, count=3):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(count):
        optimizer.zero_grad()
        model(torch.randn(8, 4, generator=generator)).square().mean().backward()
        optimizer.step()


def test_a_restored_optimizer_goes_on_bit_for_bit(tmp_path):
    model = a_model()
    optimizer = an_optimizer(model)
    take_steps(model, optimizer, seed=1)
    optimizer.param_groups[0]["lr"] = 1e-2 / 3
    snapshot_optimizer(optimizer, dict(model.named_parameters()))(tmp_path / "optimizer.safetensors")

    copy = a_model(seed=5)
    copy.load_state_dict(model.state_dict())
    restored = an_optimizer(copy, lr=7.0, betas=(0.1, 0.2))
    load_optimizer(restored, dict(copy.named_parameters()), tmp_path / "optimizer.safetensors")
    before, after = optimizer.state_dict(), restored.state_dict()
    assert after["param_groups"] == before["param_groups"]
    for index, state in before["state"].items():
        for key, value in state.items():
            assert torch.equal(after["state"][index][key], value)

    for pair in ((model, optimizer), (copy, restored)):
        take_steps(*pair, seed=2)
    for left, right in zip(model.parameters(), copy.parameters(), strict=True):
        assert torch.equal(left, right)


def test_state_follows_the_name_of_a_parameter_not_its_place(tmp_path):
    model = a_model()
    forward = torch.optim.AdamW(model.parameters())
    take_steps(model, forward, seed=1)
    snapshot_optimizer(forward, dict(model.named_parameters()))(tmp_path / "optimizer.safetensors")
    backward = torch.optim.AdamW(list(model.parameters())[::-1])
    load_optimizer(backward, dict(model.named_parameters()), tmp_path / "optimizer.safetensors")
    for parameter in model.parameters():
        assert torch.equal(backward.state[parameter]["exp_avg"], forward.state[parameter]["exp_avg"])


def test_an_optimizer_before_its_first_step_has_no_state_and_can_be_saved(tmp_path):
    model = a_model()
    snapshot_optimizer(an_optimizer(model), dict(model.named_parameters()))(
        tmp_path / "optimizer.safetensors"
    )
    restored = an_optimizer(model, lr=7.0)
    load_optimizer(restored, dict(model.named_parameters()), tmp_path / "optimizer.safetensors")
    assert not restored.state
    assert restored.param_groups[0]["lr"] == 1e-2


def test_state_of_other_parameters_is_refused_by_name(tmp_path):
    model = a_model()
    snapshot_optimizer(an_optimizer(model), dict(model.named_parameters()))(
        tmp_path / "optimizer.safetensors"
    )
    frozen = torch.optim.AdamW([{"params": [model[0].weight]}, {"params": [model[0].bias]}])
    with pytest.raises(MmcorlError, match=r"of other parameters .*1\.bias"):
        load_optimizer(frozen, dict(model.named_parameters()), tmp_path / "optimizer.safetensors")


@pytest.mark.parametrize("content", [None, b"no header"])
def test_a_missing_or_damaged_file_is_named(tmp_path, content):
    path = tmp_path / "optimizer.safetensors"
    if content is not None:
        path.write_bytes(content)
    model = a_model()
    with pytest.raises(MmcorlError, match="remove its checkpoint to resume from the one before"):
        load_optimizer(an_optimizer(model), dict(model.named_parameters()), path)


def test_a_restored_8_bit_optimizer_goes_on_bit_for_bit(tmp_path):
    """Averages in 8 bits with their scales and tables, and the small ones in 32."""

    def made(seed):
        torch.manual_seed(seed)
        model = torch.nn.Sequential(torch.nn.Linear(4, 2048), torch.nn.Linear(2048, 2))
        settings = OptimizerConfig(kind="adamw_8bit", lr=1e-2, weight_decay=0.1)
        return model, build_optimizer(model.named_parameters(), lambda name: "text", settings)

    model, optimizer = made(0)
    take_steps(model, optimizer, seed=1)
    kinds = {
        value.dtype for state in optimizer.state.values() for key, value in state.items() if key == "state1"
    }
    assert kinds == {torch.uint8, torch.float32}
    snapshot_optimizer(optimizer, dict(model.named_parameters()))(tmp_path / "optimizer.safetensors")

    copy, restored = made(5)
    copy.load_state_dict(model.state_dict())
    load_optimizer(restored, dict(copy.named_parameters()), tmp_path / "optimizer.safetensors")
    for left, right in zip(model.parameters(), copy.parameters(), strict=True):
        ours, theirs = optimizer.state[left], restored.state[right]
        assert ours.keys() == theirs.keys()
        for key, value in ours.items():
            same = (
                torch.equal(theirs[key], value) if isinstance(value, torch.Tensor) else theirs[key] == value
            )
            assert same, key
    for pair in ((model, optimizer), (copy, restored)):
        take_steps(*pair, seed=2)
    for left, right in zip(model.parameters(), copy.parameters(), strict=True):
        assert torch.equal(left, right)
    assert optimizer.param_groups[0]["betas"] == restored.param_groups[0]["betas"]
