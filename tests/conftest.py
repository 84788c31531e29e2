"""What is made or found out once a test session: tiny real models, and whether programs can be run."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers
from packaging.version import Version

from mmcorl.agents.agent import Agent
from mmcorl.agents.tiny import make_tiny
from mmcorl.config import AgentConfig, RolloutsConfig
from mmcorl.errors import MmcorlError
from mmcorl.sandbox import Sandbox

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """`tiny_folder(family)`: a random tiny model of that family; do not write into it."""
    root, made = tmp_path_factory.mktemp("tiny"), {}

    def folder(family: str) -> Path:
        if family.startswith("minicpmv") and Version(transformers.__version__) < Version("5.24"):
            pytest.skip("MiniCPM-V needs transformers 5.24")
        if family not in made:
            made[family] = make_tiny(family, root / family, seed=0)
        return made[family]

    return folder


@pytest.fixture(scope="session")
def tiny_agent(tiny_folder: Callable[[str], Path]) -> Callable[..., Agent]:
    """`tiny_agent(family, **agent settings)`: a fresh agent on a tiny model, weights wide enough to have opinions."""

    def load(family: str, rollouts: RolloutsConfig = RolloutsConfig(), **settings: object) -> Agent:
        config = AgentConfig.model_validate({"model": str(tiny_folder(family)), **settings})
        agent = Agent.load(family, config, rollouts=rollouts)
        generator = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for parameter in agent.model.parameters():
                if parameter.dim() > 1:
                    parameter.normal_(std=0.1, generator=generator)
        return agent

    return load


@pytest.fixture(scope="session")
def walled_machine() -> None:
    """Skips every test that asks for it where the machine lacks a wall of the sandbox; says which.

    Only a wall that is absent skips. One that stands and has a hole, or a sandbox that does not start, fails.
    """
    try:
        with Sandbox(workers=1) as sandbox:
            sandbox.warm()
    except MmcorlError as refusal:
        if not re.search(r"safely: (Landlock|seccomp) \(|only in a Linux sandbox", str(refusal)):
            raise
        pytest.skip(str(refusal))
