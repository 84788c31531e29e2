"""Which of several models would make the best partner, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mmcorl.analysis.diversity import Pair, difference

MATCH = 0.10
"""Most that two accuracies may be apart for their pairs to be compared: unequal accuracies alone raise kappa."""


@dataclass(frozen=True)
class Recommendation:
    """The partner for a model; None where there is no other model. `certain` tells that the data single it out."""

    anchor: str
    partner: str | None
    certain: bool
    reason: str


def by_kappa(pairs: Iterable[Pair]) -> list[Pair]:
    """Pairs as in Table 6: the most different first, undefined last."""
    return sorted(pairs, key=lambda p: (math.isnan(p.kappa.value), p.kappa.value, p.w.value))


def anchored(pairs: Iterable[Pair], anchor: str) -> list[Pair]:
    """The pairs of one model as in Table 7: the most alike first, the anchor named first."""
    own = [p.with_first(anchor) for p in pairs if anchor in (p.first, p.second)]
    return by_kappa(own)[::-1]


def recommend(pairs: Sequence[Pair], anchor: str, match: float = MATCH) -> Recommendation:
    """The partner of least kappa among the models as accurate as the anchor; of those that kappa does not tell apart,
    the one of least w.

    Differences are taken on the same resamples of the problems for both pairs, which tells more apart than two
    intervals beside each other do.
    """
    candidates = [p for p in anchored(pairs, anchor) if p.second != anchor]
    if not candidates:
        return Recommendation(anchor, None, False, "there is no other model")
    matched = [p for p in candidates if abs(p.accuracies[1] - p.accuracies[0]) <= match]
    left_out = [p.second for p in candidates if p not in matched]
    pool = by_kappa(matched or candidates)
    lowest = pool[0]
    alike = [p for p in pool if p is lowest or not _apart(p, lowest, "kappa")]
    best = min(alike, key=lambda p: p.w.value)
    rivals = [p for p in alike if p is not best and not _apart(p, best, "w")]
    certain = bool(matched) and not rivals and not math.isnan(best.kappa.value)
    return Recommendation(
        anchor, best.second, certain, _reason(best, pool, alike, rivals, left_out, bool(matched), match)
    )  # fmt: skip


def _apart(one: Pair, other: Pair, measure: str) -> bool:
    gap = difference(one, other, measure)
    return gap.low > 0 or gap.high < 0


def _reason(
    best: Pair, pool: list[Pair], alike: list[Pair], rivals: list[Pair], left_out: list[str], matched: bool, match: float
) -> str:  # fmt: skip
    kappa = f"{best.kappa.value:.2f} [{best.kappa.low:.2f}, {best.kappa.high:.2f}]"
    parts = [
        f"kappa {'has no value' if math.isnan(best.kappa.value) else kappa} and "
        f"w {100 * best.w.value:.1f} % [{100 * best.w.low:.1f}, {100 * best.w.high:.1f}]"
    ]
    if len(pool) == 1:
        parts.append("the only candidate")
    elif len(alike) == 1:
        parts.append("kappa is lower than with every other candidate")
    elif not rivals:
        parts.append(f"kappa does not tell it apart from {_names(alike, best)}, but w is lower")
    else:
        parts.append(
            f"neither kappa nor w tells it apart from {_names(rivals, best)} on {best.problems} problems: "
            "take more problems, or choose by cost"
        )
    if not math.isnan(best.rescued):
        parts.append(f"right in {100 * best.rescued:.0f} % of the problems that {best.first} gets wrong")
    accuracies = f"{100 * best.accuracies[0]:.0f} % and {100 * best.accuracies[1]:.0f} %"
    if not matched:
        parts.append(
            f"no candidate is within {100 * match:.0f} points of its accuracy ({accuracies}), which raises kappa"
        )
    elif left_out:
        parts.append(
            f"not compared, as more than {100 * match:.0f} points apart in accuracy: {', '.join(left_out)}"
        )
    return "; ".join(parts)


def _names(pairs: Iterable[Pair], without: Pair) -> str:
    return ", ".join(p.second for p in pairs if p is not without)
