"""The largest pieces of work that the settings of a run give to one process."""

from __future__ import annotations

from dataclasses import dataclass

from mmcorl.config import AgentConfig, Config
from mmcorl.data.images import capped_size
from mmcorl.planning.shapes import ModelShape


@dataclass(frozen=True)
class Load:
    """Batches at their largest.

    Every prompt has `rollouts.max_prompt_tokens` and at most one image, the largest; every completion has
    `rollouts.max_tokens`.
    """

    prompt: int
    completion: int
    prompts: int
    """Prompts that the transformers engine samples for at once, ..."""
    samples: int
    """... with so many completions each."""
    rows: int
    """Rows of a micro-batch of the update, ..."""
    row: int
    """... of so many tokens each, ..."""
    targets: int
    """... that together predict so many completion tokens."""
    batches: int
    """Micro-batches of one update."""
    patches: int
    """Patches of one image."""

    @property
    def tokens(self) -> int:
        """Tokens of a micro-batch."""
        return self.rows * self.row


def load_of(config: Config, agent: AgentConfig, shape: ModelShape) -> Load:
    """What one process of `agent` is asked at most."""
    rollouts = config.rollouts
    prompt, completion, learned = rollouts.max_prompt_tokens, rollouts.max_tokens, rollouts.per_problem
    samples = rollouts.votes or learned
    problems = rollouts.problems_per_step * (2 if config.reward.rule == "twin_vote" else 1) // agent.ranks
    update = max(1, problems // config.loss.updates_per_rollout)
    groups = min(update, max(1, agent.batch_tokens // (prompt + learned * completion)))
    shared = agent.shared_prefix == "auto"
    return Load(
        prompt=prompt,
        completion=completion,
        prompts=max(1, min(problems, rollouts.batch_tokens // (samples * (prompt + completion)))),
        samples=samples,
        rows=groups if shared else groups * learned,
        # a completion's last token predicts nothing and is left out of a shared row
        row=prompt + (learned * (completion - 1) if shared else completion),
        targets=groups * learned * completion,
        batches=-(-update // groups),
        patches=min(shape.patches(_pixels(config), config.images), prompt * shape.patches_per_token),
    )


def _pixels(config: Config) -> int:
    """Pixels of the largest image that a model is shown; 0 where no problem can have one."""
    data, caps = config.data.train, config.images
    if data.source is None and data.scenes is None and data.columns.images is None:
        return 0
    side = data.scenes.image_size if data.scenes is not None else caps.max_long_side or caps.max_pixels
    width, height = capped_size(side, side, caps.max_pixels, caps.min_pixels, caps.max_long_side)
    return width * height
