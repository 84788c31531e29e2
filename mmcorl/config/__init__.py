"""The whole run as one typed, documented, validated tree.

The docstring under each field is its documentation, also in `docs/configuration.md`. `config_loading` reads YAML
into it.
"""

from mmcorl.config.agents import AgentConfig, RolloutsConfig, VLLMConfig
from mmcorl.config.data import ColumnsConfig, DataConfig, DataSplits, ImagesConfig, PromptConfig, ScenesConfig
from mmcorl.config.learning import (
    CohortConfig,
    ComasConfig,
    InteractionConfig,
    LossConfig,
    MaporlConfig,
    OptimizerConfig,
    RewardConfig,
)
from mmcorl.config.run import (
    CheckpointsConfig,
    CodeConfig,
    EvaluationConfig,
    LoggingConfig,
    MonitorsConfig,
    RunConfig,
)
from mmcorl.config.section import Section
from mmcorl.config.tree import Config

__all__ = [
    "AgentConfig",
    "CheckpointsConfig",
    "CodeConfig",
    "CohortConfig",
    "ColumnsConfig",
    "ComasConfig",
    "Config",
    "DataConfig",
    "DataSplits",
    "EvaluationConfig",
    "ImagesConfig",
    "InteractionConfig",
    "LoggingConfig",
    "LossConfig",
    "MaporlConfig",
    "MonitorsConfig",
    "OptimizerConfig",
    "PromptConfig",
    "RewardConfig",
    "RolloutsConfig",
    "RunConfig",
    "ScenesConfig",
    "Section",
    "VLLMConfig",
]
