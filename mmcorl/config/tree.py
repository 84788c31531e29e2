"""The whole run as one tree."""

from __future__ import annotations

from typing import Any

from pydantic import model_validator

from mmcorl.config.agents import AgentConfig, RolloutsConfig
from mmcorl.config.consistency import contradictions
from mmcorl.config.data import DataSplits, ImagesConfig, PromptConfig
from mmcorl.config.learning import CohortConfig, InteractionConfig, LossConfig, OptimizerConfig, RewardConfig
from mmcorl.config.run import (
    CheckpointsConfig,
    CodeConfig,
    EvaluationConfig,
    LoggingConfig,
    MonitorsConfig,
    RunConfig,
)
from mmcorl.config.section import Section


class Config(Section):
    """One run of one cohort."""

    run: RunConfig = RunConfig()
    """Its name, folder and length."""
    agents: dict[str, AgentConfig]
    """The models of the cohort by name, in ring order; null takes out an agent that a `base` file names."""
    data: DataSplits
    """What they train on and are evaluated on."""
    prompt: PromptConfig = PromptConfig()
    """What is said around each question."""
    images: ImagesConfig = ImagesConfig()
    """Sizes of images."""
    rollouts: RolloutsConfig = RolloutsConfig()
    """How completions are sampled."""
    code: CodeConfig = CodeConfig()
    """What programs that answer code problems may use."""
    cohort: CohortConfig = CohortConfig()
    """Who supervises whom, how votes are counted and where agents meet."""
    reward: RewardConfig = RewardConfig()
    """What completions are rewarded for."""
    interaction: InteractionConfig | None = None
    """Instead of answers of each agent alone and a reward rule: agents that read each other's texts."""
    loss: LossConfig = LossConfig()
    """From rewards to the loss."""
    optimizer: OptimizerConfig = OptimizerConfig()
    """AdamW and its schedule."""
    evaluation: EvaluationConfig = EvaluationConfig()
    """Held-out evaluation while training."""
    checkpoints: CheckpointsConfig = CheckpointsConfig()
    """What is saved, and what counts as best."""
    monitors: MonitorsConfig = MonitorsConfig()
    """What counts as going wrong."""
    logging: LoggingConfig = LoggingConfig()
    """Where metrics and completions go."""

    @model_validator(mode="after")
    def _defaults_without_evaluation(self) -> Config:
        """A run without held-out problems asks for no evaluation, and cannot choose its best by it."""
        if self.data.eval is None:
            self._default("evaluation", every=0)
        if self.evaluation.every == 0:
            alone = self.cohort.topology == "self"
            self._default("checkpoints", best_by="vote_share" if alone else "agreement")
        return self

    def _default(self, name: str, **values: Any) -> None:
        section: Section = getattr(self, name)
        unset = {key: value for key, value in values.items() if key not in section.model_fields_set}
        object.__setattr__(self, name, section.model_copy(update=unset))

    @model_validator(mode="after")
    def _consistent(self) -> Config:
        if problems := contradictions(self):
            raise ValueError("\n".join(problems))
        return self
