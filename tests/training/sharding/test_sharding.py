"""However weights lie over ranks, an update is the update; and a checkpoint of one layout goes on under any other.

Two ranks over gloo make the updates of `updates.py` in processes of their own. They are held against one process that
has the weights whole: what differs is the order of sums.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from mmcorl.agents.agent import Agent
from mmcorl.agents.tiny import make_tiny
from mmcorl.config import AgentConfig
from mmcorl.training.world import World
from tests.training.sharding.updates import OPTIMIZER, make_updates

pytest.importorskip("deepspeed", reason="zero2 and zero3 need deepspeed: pip install 'mmcorl[scale]'")

ROOT = Path(__file__).parents[3]
LAYOUTS = ("zero2", "zero3", "fsdp2")
_HALF = {
    "family": "qwen2_5_vl",
    "dtype": "bfloat16",
    "sampled": False,
    "loss": {"sampler_correction": "none"},
}
KINDS = {
    "text": {"family": "qwen3", "gradient_checkpointing": True},
    "vision": {"family": "qwen2_5_vl", "optimizer": {"lr_of": {"vision": 1e-4}}},
    "frozen": {
        "family": "internvl", "freeze": ["vision"], "gradient_checkpointing": True, "optimizer": {"clip_norm": 0.05},
    },
    "twice": {"family": "qwen2_5_vl", "loss": {"updates_per_rollout": 2}, "updates": [0]},
    "adapters": {"family": "qwen2_5_vl", "lora": {"rank": 2}, "loss": {"beta": 0.1}},
    "half": {**_HALF, "updates": [0]},
    "half_adapters": {**_HALF, "lora": {"rank": 2}, "updates": [0]},
}  # fmt: skip
LAYOUTS_OF = {
    "frozen": ("zero3", "fsdp2"), "twice": ("fsdp2",), "adapters": ("zero3", "fsdp2"), "half_adapters": ("fsdp2",),
}  # fmt: skip
EXACT = ("text", "vision", "frozen", "twice", "adapters")
OFFLOAD = {"zero2": ["optimizer"], "zero3": ["optimizer", "parameters"], "fsdp2": ["optimizer", "parameters"]}


def make_wide(family, folder):
    """A tiny model with weights wide enough for it to have opinions."""
    agent = Agent.load("wide", AgentConfig(model=str(make_tiny(family, folder, seed=0))))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in agent.model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(std=0.1, generator=generator)
    agent.snapshot()(folder)


def in_processes(folder, cases, ranks):
    """Make the updates of `cases` with so many ranks."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {"WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}  # fmt: skip
    command = [sys.executable, "-m", "tests.training.sharding.updates", str(folder), json.dumps(cases)]
    logs = [folder / f"rank{rank}of{ranks}.log" for rank in range(ranks)]
    processes = [
        subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | shared | {"RANK": str(rank), "LOCAL_RANK": str(rank), "OMP_NUM_THREADS": "1"},
            stdout=logs[rank].open("w"),
            stderr=subprocess.STDOUT,
        )
        for rank in range(ranks)
    ]
    try:
        codes = [process.wait(timeout=280) for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert codes == [0] * ranks, "\n".join(log.read_text()[-3000:] for log in logs)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with `KIND/LAYOUT/UPDATE` of each kind of agent: whole on one rank (`none`), and under each layout on two."""
    folder = tmp_path_factory.mktemp("sharding")
    cases, alone = [], []
    for kind, case in KINDS.items():
        case = dict(case)
        family = case.pop("family")
        if not (folder / family).exists():
            make_wide(family, folder / family)
        case["model"] = str(folder / family)
        make_updates(folder / kind / "none", World(), **case)
        for layout in LAYOUTS:
            offload = OFFLOAD[layout] if kind == "text" else []
            if layout in LAYOUTS_OF.get(kind, LAYOUTS):
                cases.append({**case, "name": f"{kind}/{layout}", "sharding": layout, "offload": offload})
        if kind == "text":
            halves = {**case, "sharding": "zero3", "updates": [0]}
            cases += [{**halves, "name": f"{kind}/{o}", "offload": [o]} for o in ("optimizer", "parameters")]
        if kind == "vision":
            alone = [{**case, "name": f"alone/{layout}", "sharding": layout} for layout in LAYOUTS]
            whole = str(folder / kind / "none" / "0")
            resumed = {**case, "resume": whole, "updates": [1]}
            cases += [{**resumed, "name": f"resumed/{layout}", "sharding": layout} for layout in LAYOUTS]
    in_processes(folder, cases, ranks=2)
    in_processes(folder, alone, ranks=1)
    return folder


def state_of(folder):
    return load_file(folder / "optimizer.safetensors")


def weights_of(folder):
    [path] = folder.glob("*model.safetensors")
    return load_file(path)


def require_same_state(ours, whole, closeness):
    """The running means of gradients and of their squares, of which the first update's are those of its gradients."""
    assert ours.keys() == whole.keys()
    for kind in (".exp_avg", ".exp_avg_sq"):
        names = [name for name in whole if name.endswith(kind)]
        largest = max(float(whole[name].abs().max()) for name in names)
        assert names and largest > 0
        for name in names:
            limit = closeness * (float(whole[name].abs().max()) + 0.05 * largest)
            assert float((ours[name] - whole[name]).abs().max()) <= limit, name


def require_same(ours, whole):
    """What two runs have left after an update is the same but for the order of float32 sums."""
    require_same_state(state_of(ours), state_of(whole), 5e-5 if ours.name == "0" else 5e-4)
    weights, expected = weights_of(ours), weights_of(whole)
    assert weights.keys() == expected.keys()
    for name, weight in expected.items():
        assert weights[name].dtype == weight.dtype
        # Where a gradient is near zero its sign is rounding, and AdamW steps by the sign: so single weights may differ.
        # No key's bias changes a softmax, so that its gradient is rounding alone, of which AdamW makes whole steps.
        limit = 1e-2 if name.endswith("k_proj.bias") else 5e-3
        assert float((weights[name] - weight).abs().mean()) <= limit * OPTIMIZER["lr"], name
    metrics, reference = (json.loads((f / "metrics.json").read_text()) for f in (ours, whole))
    assert metrics == pytest.approx(reference, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize(
    ("kind", "layout"), [(kind, layout) for kind in EXACT for layout in LAYOUTS_OF.get(kind, LAYOUTS)]
)
def test_two_ranks_in_parts_make_the_updates_of_one_whole(made, kind, layout):
    for update in KINDS[kind].get("updates", [0, 1]):
        require_same(made / kind / layout / str(update), made / kind / "none" / str(update))


@pytest.mark.parametrize("offload", ["optimizer", "parameters"])
def test_either_may_be_in_host_memory(made, offload):
    require_same(made / "text" / offload / "0", made / "text" / "none" / "0")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_rank_alone_makes_them_too(made, layout):
    for update in ("0", "1"):
        require_same(made / "alone" / layout / update, made / "vision" / "none" / update)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_whole_checkpoint_goes_on_in_parts(made, layout):
    require_same(made / "resumed" / layout / "1", made / "vision" / "none" / "1")


@pytest.mark.parametrize(
    ("kind", "layout"), [("vision", "zero2"), ("vision", "zero3"), ("vision", "fsdp2"), ("adapters", "fsdp2")]
)
def test_a_checkpoint_in_parts_goes_on_whole(made, tmp_path, kind, layout):
    case = {**KINDS[kind], "model": "", "resume": str(made / kind / layout / "0"), "updates": [1]}
    del case["family"]
    make_updates(tmp_path, World(), **case)
    require_same(tmp_path / "1", made / kind / "none" / "1")


@pytest.mark.parametrize(
    ("kind", "layout"), [*(("half", layout) for layout in LAYOUTS), ("half_adapters", "fsdp2")]
)
def test_half_precision_is_that_of_the_forward_alone(made, kind, layout):
    whole, ours = (state_of(made / kind / name / "0") for name in ("none", layout))
    gradients, expected = (
        torch.cat([v.flatten() for n, v in sorted(state.items()) if n.endswith(".exp_avg")]) for state in (ours, whole)
    )  # fmt: skip
    assert torch.cosine_similarity(gradients, expected, dim=0) > 0.98
    weights = weights_of(made / kind / layout / "0")
    assert all(w.dtype == torch.float32 for w in weights.values())
    assert any(
        not torch.equal(w, w.bfloat16().float()) for w in weights.values()
    )  # the learned steps are kept


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_gradient_that_is_not_finite_ends_the_run(layout, tmp_path):
    make_wide("qwen3", tmp_path / "model")
    case = {
        "name": "far", "model": str(tmp_path / "model"), "sharding": layout, "sampled": False, "optimizer": {"lr": 1e30},
    }  # fmt: skip
    with pytest.raises(AssertionError, match="the gradient of agent tiny is not finite"):
        in_processes(tmp_path, [case], ranks=1)
