"""We-Math's four-dimensional score: does a model that solves a composite problem also solve its steps, and the reverse?

Qiao et al., "We-Math: Does your large multimodal model achieve human-like mathematical reasoning?" (2024). A composite
problem of two or three steps (key `2steps_multi`) comes with one problem for every step (`2steps_1`, `2steps_2`) under
the same ID.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class FourDimensions:
    """Composite problems counted by what became of them and of their steps.

    Where the composite is wrong, all steps right is inadequate generalization (IG), anything else insufficient
    knowledge (IK). Where it is right, it is complete mastery (CM) if, strictly, all steps are right, or, loosely, any
    step is; otherwise rote memorization (RM). `incomplete` composites lack a problem and are in no other count.
    """

    insufficient_knowledge: int = 0
    inadequate_generalization: int = 0
    mastery_strict: int = 0
    mastery_loose: int = 0
    rote_strict: int = 0
    rote_loose: int = 0
    incomplete: int = 0

    @property
    def composites(self) -> int:
        return (
            self.insufficient_knowledge
            + self.inadequate_generalization
            + self.mastery_loose
            + self.rote_loose
        )

    @property
    def score_strict(self) -> float:
        """Complete mastery counts 1, inadequate generalization 1/2, the rest 0."""
        return self._score(self.mastery_strict)

    @property
    def score_loose(self) -> float:
        return self._score(self.mastery_loose)

    def to_json(self) -> dict[str, float]:
        """The counts, both scores, and rote memorization as a share of the composites that are right."""
        right = self.mastery_loose + self.rote_loose
        return asdict(self) | {
            "score_strict": self.score_strict,
            "score_loose": self.score_loose,
            "rote_rate_strict": self.rote_strict / right if right else 0.0,
            "rote_rate_loose": self.rote_loose / right if right else 0.0,
        }

    def _score(self, mastery: int) -> float:
        return (mastery + 0.5 * self.inadequate_generalization) / self.composites if self.composites else 0.0


def four_dimensions(verdicts: Iterable[tuple[str, str, bool]]) -> FourDimensions:
    """Count the composites of one answer a problem, given as (ID, key, right)."""
    families: dict[tuple[str, str], dict[str, bool]] = defaultdict(dict)
    for identity, key, right in verdicts:
        steps, _, part = key.partition("_")
        families[steps, identity][part] = right  # apart, as the benchmark's program has them
    counts: dict[str, int] = defaultdict(int)
    for (steps, _), parts in families.items():
        names = [str(i + 1) for i in range(int(steps.removesuffix("steps")))]
        if parts.keys() != {*names, "multi"}:
            counts["incomplete"] += 1
            continue
        known = [parts[name] for name in names]
        if parts["multi"]:
            counts["mastery_strict" if all(known) else "rote_strict"] += 1
            counts["mastery_loose" if any(known) else "rote_loose"] += 1
        else:
            counts["inadequate_generalization" if all(known) else "insufficient_knowledge"] += 1
    return FourDimensions(**counts)
