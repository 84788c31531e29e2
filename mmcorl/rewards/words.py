"""Methods in words, for reports and model cards."""

from __future__ import annotations

from mmcorl.config import Config

METHODS = {
    "peer_vote": ("Co-RL", "A completion is rewarded for agreeing with the supervising vote"),
    "self_vote": ("TTRL: own votes", "A completion is rewarded for agreeing with the vote of its own agent"),
    "twin_vote": (
        "Co-rewarding-I",
        "A completion is rewarded for agreeing with its agent's vote on the problem's other wording",
    ),
    "teacher_vote": (
        "Co-rewarding-II",
        "A completion is rewarded for agreeing with the vote of a slow copy of its own agent",
    ),
    "cluster_share": (
        "EMPO",
        "A completion is rewarded by the share of its group that gave the same answer",
    ),
    "entropy": ("RENT", "A completion is rewarded for low entropy of its tokens"),
    "self_certainty": ("Intuitor", "A completion is rewarded for the self-certainty of its tokens"),
    "gold": ("gold reward", "A completion is rewarded for agreeing with the labelled answer"),
    "random": ("random reward", "A completion is rewarded at random, as a control"),
    "format_only": ("format reward", "A completion is rewarded for stating an answer at all, as a control"),
    "incorrect": (
        "runner-up reward",
        "A completion is rewarded for agreeing with what its own agent answers second most often, as a control",
    ),
    "comas": (
        "CoMAS",
        "Agents solve, evaluate each other's solutions and score them; the scores are the reward",
    ),
    "maporl": ("MAPoRL", "Agents debate over several turns and are rewarded by the labelled answers"),
}
"""The name of each `reward.rule` and `interaction.kind`, and what it rewards; a rule of one's own has no row."""

_WITH_LABELS = {"gold", "maporl"}

_TOPOLOGIES = {"ring": "the peer's votes", "peers": "the peers' votes", "all": "everybody's votes"}


def method_setting(config: Config) -> tuple[str, str]:
    """The setting that says the method, and its value."""
    if config.interaction is not None:
        return "interaction.kind", config.interaction.kind
    return "reward.rule", config.reward.rule


def method_name(config: Config) -> str:
    """The method in a few words."""
    _, method = method_setting(config)
    if method == "peer_vote":
        topology = config.cohort.topology
        return METHODS["self_vote"][0] if topology == "self" else f"Co-RL: {_TOPOLOGIES[topology]}"
    return METHODS[method][0] if method in METHODS else "a reward of one's own"


def what_is_rewarded(config: Config) -> str:
    """The method in a sentence, without its full stop."""
    _, method = method_setting(config)
    return METHODS[method][1] if method in METHODS else f"A completion is rewarded by {method}"


def uses_labels(config: Config) -> bool:
    """Whether labelled answers are rewarded."""
    return method_setting(config)[1] in _WITH_LABELS
