"""A rule of one's own, from a Python file: `reward.rule=PATH.py:NAME`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import cast

from mmcorl.errors import MmcorlError
from mmcorl.own_code import module_of
from mmcorl.rewards.inputs import Need, RewardInputs, RewardRule, Rewards, Rule

_OPEN_NEEDS: frozenset[Need] = frozenset({"entropy", "self_certainty", "texts"})
"""The others are wired to the rules that they were made for, and labelled answers are for `gold` alone."""


def own_rule(setting: str) -> Rule:
    """The rule that `PATH.py:NAME` names: a function from RewardInputs to Rewards, or a Rule of one with its needs.

    The file is run, as any program that is started by its name. Raises MmcorlError for a file or a name that is not
    there, and for a need that a rule of one's own cannot have; the rule itself raises it for rewards of a wrong shape.
    """
    file, _, name = setting.rpartition(":")
    found = getattr(module_of(Path(file), f"reward.rule={setting}"), name, None)
    if not callable(found):
        raise MmcorlError(f"reward.rule={setting}: {file} defines no function {name}")
    rule = found if isinstance(found, Rule) else Rule(cast(RewardRule, found))
    if refused := rule.needs - _OPEN_NEEDS:
        raise MmcorlError(
            f"reward.rule={setting} needs {', '.join(sorted(refused))}; a rule of one's own may need "
            f"{', '.join(sorted(_OPEN_NEEDS))}"
        )
    return Rule(_checked(rule.reward, setting), rule.needs)


def _checked(rule: RewardRule, setting: str) -> RewardRule:
    def checked(inputs: RewardInputs) -> Rewards:
        rewards = rule(inputs)
        if not isinstance(rewards, Rewards):
            raise MmcorlError(
                f"reward.rule={setting} gave {type(rewards).__name__}; return Rewards, as by `without_labels(values)`"
            )
        asked, given = [len(row) for row in inputs.answers], [len(row) for row in rewards.values]
        if given != asked or len(rewards.labelled) != len(asked):
            raise MmcorlError(
                f"reward.rule={setting} gave rows of {given} rewards and {len(rewards.labelled)} `labelled` for "
                f"problems with {asked} completions; give one for each"
            )
        for problem, row in zip(inputs.problems, rewards.values, strict=True):
            if not all(map(math.isfinite, row)):
                raise MmcorlError(
                    f"reward.rule={setting} gave {row} to problem {problem.id}; rewards are finite"
                )
        return rewards

    return checked
