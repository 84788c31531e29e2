"""What a dry run shows is what a run would do, and it leaves nothing behind."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
import torch
from rich.console import Console

from mmcorl.cli.train import main
from mmcorl.errors import MmcorlError
from mmcorl.training.dry_run import rehearse
from mmcorl.training.dry_run_page import print_dry_run
from tests.training.cohorts import cohort_config, train

SIZES = {"rollouts": {"problems_per_step": 4, "per_problem": 4, "max_tokens": 10}}


@pytest.fixture(scope="module")
def found():
    return rehearse(cohort_config(**SIZES), problems=4)


def page(config, found):
    output = io.StringIO()
    print_dry_run(config, found, Console(file=output, width=140))
    return output.getvalue()


def test_it_is_the_first_step_of_the_run(found):
    """The same problems, completions, votes, rewards and metrics, of both agents."""
    steps = train(cohort_config(**SIZES), steps=1)
    for name, look in found.looks.items():
        [step], _, [metrics] = steps[name]
        assert [p.id for p in found.problems] == [p.id for p in step.problems]
        assert look.texts == [[c.text for c in group.completions] for group in step.rollouts]
        assert [list(row) for row in found.rewards[name]] == [list(row) for row in step.rewards.values]
        assert [v.answer for v in found.votes[name]] == [v.answer for v in step.supervising_votes]
        for key in ("reward", "agreement", "vote_share", "live_groups", "vote_accuracy", "truncated"):
            assert found.metrics[name][key] == metrics[key], key


def test_prompts_are_counted_with_their_images(found):
    look = found.looks["qwen"]
    assert len(look.prompt_tokens) == 4 and min(look.image_tokens) > 0
    assert all(image < prompt for image, prompt in zip(look.image_tokens, look.prompt_tokens, strict=True))
    assert "Think, then answer." in look.first_prompt and look.stop_tokens and look.gap is not None


def test_the_page_shows_samples_and_what_differs_from_evaluation(found):
    text = page(cohort_config(**SIZES), found)
    assert "4 of 4" in text and "supervising vote" in text and "(differs)" in text
    assert text.count("a completion of") == 6
    assert "mmcorl-eval asks otherwise" in text


def test_what_looks_wrong_is_told_with_the_setting_to_change(found):
    config = cohort_config(**SIZES)
    look = found.looks["qwen"]
    cut = replace(look, finished=[[False] * 4] * 4, prompt_tokens=[4000] * 4)
    silent = {**found.metrics["qwen"], "abstained": 0.9, "live_groups": 0.0}
    text = page(
        config,
        replace(found, looks={"qwen": cut}, metrics={"qwen": silent}, golds_read=1),
    )
    assert "raise rollouts.max_tokens=10" in text
    assert "rollouts.max_prompt_tokens=4096" in text
    assert "only 10% of completions hold an answer" in text
    assert "only 0% of groups have rewards that differ" in text
    assert "3 of 4 labelled answers cannot be read" in text


def test_the_command_writes_nothing(tmp_path, capsys):
    scene = ["data.train.scenes.size=24", "data.eval=null", "evaluation.every=0"]
    code = main(
        ["configs/quickstart.yaml", *scene, "agents.internvl=null",
         "cohort.topology=self", "checkpoints.best_by=vote_share", f"run.dir={tmp_path}", "--dry-run", "2"]
    )  # fmt: skip
    text = capsys.readouterr().out
    assert code == 0 and not any(tmp_path.iterdir())
    assert "2 problems before the first update" in text and "optimiser step" in text


def test_what_cannot_be_tried_is_refused(capsys):
    with pytest.raises(MmcorlError, match=r"run\.steps=1"):
        rehearse(cohort_config(interaction={"kind": "comas"}), 4)
    assert main(["configs/quickstart.yaml", "--dry-run", "0"]) == 2
    assert "--dry-run 0" in capsys.readouterr().err


def test_statistics_of_a_rule_cross_the_process():
    alone = {"agents": {"qwen": cohort_config().agents["qwen"].model_dump(mode="json")}}
    config = cohort_config(**alone, **SIZES, cohort={"topology": "self"}, reward={"rule": "self_certainty"})
    found = rehearse(config, 2)
    rewards = torch.tensor(found.rewards["qwen"])
    assert rewards.shape == (2, 4) and bool((rewards > 0).all())
