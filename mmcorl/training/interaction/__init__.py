"""Interactions: agents that read each other's texts, instead of votes alone. CoMAS and MAPoRL, one module each."""

from __future__ import annotations

from collections.abc import Mapping

from mmcorl.errors import MmcorlError
from mmcorl.graders import Answer
from mmcorl.training.interaction.comas import Comas
from mmcorl.training.interaction.maporl import Maporl
from mmcorl.training.interaction.shared import Interaction, InteractionStep
from mmcorl.training.loop import Trainer

__all__ = ["Interaction", "InteractionStep", "interacting"]


def interacting(trainer: Trainer, golds: Mapping[str, Answer | None]) -> Trainer:
    """The trainer with the loop that `interaction.kind` names, if any. Only MAPoRL's is given the labelled answers.

    Raises MmcorlError where it needs them and there are none.
    """
    interaction = trainer.config.interaction
    if interaction is None:
        return trainer
    if interaction.kind == "comas":
        return Comas.of(trainer)
    if not any(golds.values()):
        raise MmcorlError(
            "interaction.kind=maporl scores answers by the labelled ones, and data.train has none; name their column "
            "in data.train.columns.answer, or set interaction.kind=comas"
        )
    debate = Maporl.of(trainer)
    debate.golds = golds
    return debate
