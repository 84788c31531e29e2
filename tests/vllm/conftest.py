"""vLLM's own starts are slow, so each file here starts as few as it can; all are skipped where vLLM is not installed."""

from __future__ import annotations

from importlib.util import find_spec

import pytest


def pytest_collection_modifyitems(items):
    if find_spec("vllm") is None:
        skip = pytest.mark.skip(reason="vLLM is not installed; `make test-vllm` runs these")
        for item in items:
            if "tests/vllm/" in item.path.as_posix():
                item.add_marker(skip)


@pytest.fixture(scope="session")
def vllm_rollouts():
    """`vllm_rollouts(**settings)`: short rollouts by vLLM."""
    from mmcorl.config import RolloutsConfig

    def settings(**vllm):
        return RolloutsConfig.model_validate(
            {"engine": "vllm", "max_prompt_tokens": 256, "max_tokens": 16, "temperature": 0.8}
            | {"vllm": {"eager": True, **vllm}}
        )

    return settings
