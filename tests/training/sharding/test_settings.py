"""What cannot be sharded as asked is told before anything is loaded."""

import pytest

from mmcorl.config import Config
from mmcorl.errors import MmcorlError

AGENTS = {"ann": {"model": "a"}, "ben": {"model": "b"}}


def config_of(ann, **sections):
    data = {"train": {"scenes": {}}}
    return Config.model_validate(
        {"agents": {**AGENTS, "ann": {"model": "a", **ann}}, "data": data, **sections}
    )


@pytest.mark.parametrize(
    ("ann", "sections", "named"),
    [
        ({"offload": ["optimizer"]}, {}, "agents.ann.offload"),
        ({"sharding": "zero3", "frozen": True}, {}, "agents.ann.sharding=zero3"),
        ({"sharding": "zero2", "offload": ["parameters"]}, {}, "sharding=zero3"),
        ({"sharding": "fsdp2", "offload": ["parameters"]}, {}, r"offload=\[optimizer,parameters\]"),
        ({"sharding": "fsdp2", "lora": {}, "quantize": "4bit"}, {}, "agents.ann.quantize=null"),
        ({"sharding": "fsdp2", "lora": {}}, {"rollouts": {"engine": "vllm"}}, "rollouts.engine=transformers"),
        ({"sharding": "zero2"}, {"optimizer": {"kind": "adamw_8bit"}}, "optimizer.kind=adamw"),
    ],
)
def test_a_contradiction_names_what_to_change(ann, sections, named):
    with pytest.raises((MmcorlError, ValueError), match=named):
        config_of(ann, **sections)


@pytest.mark.parametrize(
    ("sharding", "offload"),
    [
        ("zero2", ["optimizer"]),
        ("zero3", ["parameters"]),
        ("zero3", ["optimizer", "parameters"]),
        ("fsdp2", []),
        ("fsdp2", ["parameters", "optimizer"]),
    ],
)
def test_what_goes_together_is_taken(sharding, offload):
    assert config_of({"sharding": sharding, "offload": offload}).agents["ann"].sharding == sharding
