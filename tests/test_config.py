from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from mmcorl.config import AgentConfig, Config, DataConfig, ImagesConfig, PromptConfig

TWO = {"a": {"model": "m"}, "b": {"model": "m"}}
HELD_OUT = {"train": {"path": "p"}, "eval": {"path": "q"}}


def config(**sections: Any) -> Config:
    return Config.model_validate({"agents": TWO, "data": {"train": {"path": "p"}}, **sections})


def complaint(**sections: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        config(**sections)
    return str(caught.value)


def test_a_run_without_held_out_problems_is_not_evaluated_and_chooses_its_best_by_agreement():
    plain = config()
    assert plain.evaluation.every == 0
    assert plain.checkpoints.best_by == "agreement"


def test_a_run_with_held_out_problems_is_evaluated_and_chooses_its_best_by_accuracy():
    evaluated = config(data=HELD_OUT)
    assert evaluated.evaluation.every == 50
    assert evaluated.checkpoints.best_by == "accuracy"


def test_switching_evaluation_off_switches_the_default_choice_of_the_best():
    assert config(data=HELD_OUT, evaluation={"every": 0}).checkpoints.best_by == "agreement"


def test_other_settings_of_a_section_do_not_count_as_a_choice():
    unevaluated = config(evaluation={"samples": 4}, checkpoints={"every": 5})
    assert (unevaluated.evaluation.every, unevaluated.evaluation.samples) == (0, 4)
    assert (unevaluated.checkpoints.best_by, unevaluated.checkpoints.every) == ("agreement", 5)


def test_evaluation_asked_for_without_held_out_problems():
    assert "evaluation.every=5 needs held-out problems; set data.eval" in complaint(evaluation={"every": 5})


def test_best_by_accuracy_without_evaluation():
    message = complaint(data=HELD_OUT, evaluation={"every": 0}, checkpoints={"best_by": "accuracy"})
    assert "checkpoints.best_by=accuracy needs evaluation" in message


def test_a_cohort_has_an_agent():
    assert "name at least one" in complaint(agents={})


@pytest.mark.parametrize("topology", ["ring", "peers", "all"])
def test_one_agent_has_no_peers(topology: str):
    message = complaint(agents={"only": {"model": "m"}}, cohort={"topology": topology})
    assert f"cohort.topology={topology} needs two agents" in message
    assert "set cohort.topology=self or add an agent" in message


def test_one_agent_supervises_itself():
    alone = config(agents={"only": {"model": "m"}}, cohort={"topology": "self"})
    assert alone.reward.rule == "peer_vote"


@pytest.mark.parametrize("name", ["a/b", "a.b", "a b", "..", "", "1a", "é"])
def test_agent_names_are_safe_in_files_and_overrides(name: str):
    assert "an agent's name is letters" in complaint(agents={**TWO, name: {"model": "m"}})


def test_problems_divide_over_ranks_and_updates():
    agents = {"a": {"model": "m", "ranks": 4}, "b": {"model": "m"}}
    rollouts, loss = {"problems_per_step": 12}, {"updates_per_rollout": 2}
    message = complaint(agents=agents, rollouts=rollouts, loss=loss)
    assert "agents.a.ranks=4 x loss.updates_per_rollout=2; make it a multiple of 8" in message
    assert "agents.b" not in message
    assert config(agents=agents, rollouts={"problems_per_step": 24}, loss=loss).agents["a"].ranks == 4


def test_every_contradiction_is_listed():
    message = complaint(
        agents={"x y": {"model": "m", "ranks": 3}},
        evaluation={"every": 5},
    )
    for part in ("cohort.topology=ring", "agents.x y: ", "problems_per_step=16", "evaluation.every=5"):
        assert part in message


def test_a_device_for_each_rank():
    assert AgentConfig(model="m", ranks=2, devices=(0, 1)).devices == (0, 1)
    with pytest.raises(ValidationError, match=r"devices=\[0\] names 1 GPUs for ranks=2"):
        AgentConfig(model="m", ranks=2, devices=(0,))


def test_unquoted_off_in_yaml_is_not_a_boolean():
    assert AgentConfig.model_validate({"model": "m", "shared_prefix": False}).shared_prefix == "off"
    with pytest.raises(ValidationError):
        AgentConfig.model_validate({"model": "m", "shared_prefix": True})


def test_image_caps_leave_room():
    with pytest.raises(ValidationError, match="min_pixels=10 is above max_pixels=5"):
        ImagesConfig(min_pixels=10, max_pixels=5)


@pytest.mark.parametrize("source", [{}, {"path": "p", "scenes": {}}])
def test_a_data_set_has_one_source(source: dict[str, Any]):
    with pytest.raises(ValidationError, match="set `path`, `source` or `scenes`"):
        DataConfig.model_validate(source)


def test_an_option_format_that_hides_the_options_is_refused():
    assert PromptConfig(option_format="({letter}) {text}").option_format
    for form in ("{letter}", "{Letter}: {text}", "{", "{0} {1}"):
        with pytest.raises(ValidationError, match="must hold"):
            PromptConfig(option_format=form)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/tmp/a", "../a", "a\nb"])
def test_a_run_is_named_like_one_folder(name: str):
    assert "cannot be the name of a folder" in complaint(run={"name": name})


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_numbers_are_finite(value: float):
    assert "finite number" in complaint(optimizer={"clip_norm": value})


FROZEN = {**TWO, "b": {"model": "m", "frozen": True}}


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"rollouts": {"votes": 4, "per_problem": 8}}, ["rollouts.votes=4 is below", "to 8 or more"]),
        ({"reward": {"rule": "twin_vote"}}, ["reward.rule=twin_vote needs data.twin"]),
        (
            {"agents": {**TWO, "b": {"model": "m", "wording": "twin"}}},
            ["agents.b.wording=twin needs data.twin"],
        ),
        (
            {
                "agents": {**TWO, "b": {"model": "m", "wording": "twin"}},
                "reward": {"rule": "twin_vote"},
                "data": {"train": {"path": "p"}, "twin": "t"},
            },
            ["leave agents.b.wording=original"],
        ),
        ({"reward": {"unparsed": -7.0}}, ["reward.unparsed is for the rules entropy and self_certainty"]),
        (
            {"agents": {**TWO, "b": {"model": "m", "endpoint": "http://h/v1"}}},
            ["set agents.b.frozen=true and agents.b.ranks=1"],
        ),
        ({"agents": {**TWO, "b": {"model": "m", "api_key_env": "K"}}}, ["set agents.b.endpoint=URL"]),
        (
            {"agents": {"b": FROZEN["b"]}, "cohort": {"topology": "self"}},
            ["set agents.b.frozen=false", "topology=self"],
        ),
        ({"agents": FROZEN, "cohort": {"topology": "self"}}, ["the frozen b would vote for nobody"]),
    ],
)
def test_what_methods_ask_of_other_settings(changes: dict[str, Any], parts: list[str]):
    message = complaint(**changes)
    assert all(part in message for part in parts), message


def test_a_judge_and_twins_may_be_set():
    judge = {"model": "m", "frozen": True, "endpoint": "https://host/v1", "api_key_env": "K"}
    assert config(agents={**TWO, "judge": judge}).agents["judge"].frozen
    assert config(data={"train": {"path": "p"}, "twin": "t"}, reward={"rule": "twin_vote"}).data.twin == "t"


def test_vllm_applies_adapters_of_the_text_part_itself():
    def agents(*parts: str) -> dict[str, Any]:
        return {"a": {"model": "m", "lora": {"parts": parts}}, "b": {"model": "m"}}

    apart = {"engine": "vllm", "vllm": {"adapters": "apart"}}
    assert config(agents=agents("text"), rollouts=apart)
    assert config(agents=agents("text", "vision"), rollouts={"engine": "vllm"})
    message = complaint(agents=agents("text", "vision"), rollouts=apart)
    assert "agents.a.lora.parts names vision too; set rollouts.vllm.adapters=merged" in message
