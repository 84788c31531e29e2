"""The whole run as one typed, documented, validated tree.

The docstring under each field is its documentation, also in `docs/configuration.md`. `config_loading` reads YAML
into it.
"""

from mmcorl.config.agents import (
    AgentConfig,
    Attention,
    Dtype,
    LoraConfig,
    Offload,
    Part,
    RolloutsConfig,
    Sharding,
    VLLMConfig,
)
from mmcorl.config.data import (
    ColumnsConfig,
    DataConfig,
    DataSplits,
    ImagesConfig,
    PromptConfig,
    ScenesConfig,
    Task,
)
from mmcorl.config.learning import (
    CohortConfig,
    ComasConfig,
    InteractionConfig,
    LossConfig,
    LossKind,
    MaporlConfig,
    OptimizerConfig,
    PartRates,
    RewardConfig,
    SamplerCorrection,
    Scale,
    Ties,
    Topology,
    Weigh,
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
    "Attention",
    "CheckpointsConfig",
    "CodeConfig",
    "CohortConfig",
    "ColumnsConfig",
    "ComasConfig",
    "Config",
    "DataConfig",
    "DataSplits",
    "Dtype",
    "EvaluationConfig",
    "ImagesConfig",
    "InteractionConfig",
    "LoggingConfig",
    "LoraConfig",
    "LossConfig",
    "LossKind",
    "MaporlConfig",
    "MonitorsConfig",
    "Offload",
    "OptimizerConfig",
    "Part",
    "PartRates",
    "PromptConfig",
    "RewardConfig",
    "RolloutsConfig",
    "RunConfig",
    "SamplerCorrection",
    "Scale",
    "ScenesConfig",
    "Section",
    "Sharding",
    "Task",
    "Ties",
    "Topology",
    "VLLMConfig",
    "Weigh",
]
