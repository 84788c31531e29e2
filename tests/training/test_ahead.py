"""A run that samples one step ahead: from which weights, with what correction, and through a restart."""

from __future__ import annotations

import pytest
import torch
from pydantic import ValidationError

from mmcorl.data.loading import load_problems
from mmcorl.errors import MmcorlError
from mmcorl.problems import Completion
from mmcorl.training.ahead import groups_of, read_ahead, write_ahead
from tests.training.cohorts import alone, cohort_config, train

STALE = {"cohort": {"max_staleness": 1}}


def logprobs_of(step):
    return torch.tensor([x for group in step.rollouts for c in group.completions for x in c.logprobs])


def test_completions_come_from_the_weights_of_the_step_before():
    """With a learning rate of next to nothing both runs sample alike; with a real one they part at step 2."""
    still = {"lr": 1e-12, "schedule": "constant", "warmup_share": 0.0}
    ahead = {"topology": "self", "max_staleness": 1}
    frozen = train(alone(optimizer=still), steps=2)["qwen"][0]
    for ours, theirs in zip(
        train(alone(optimizer=still, cohort=ahead), steps=2)["qwen"][0], frozen, strict=True
    ):
        assert torch.equal(logprobs_of(ours), logprobs_of(theirs))
    stale, fresh = train(alone(cohort=ahead), steps=2)["qwen"][0], train(alone(), steps=2)["qwen"][0]
    assert torch.equal(logprobs_of(stale[0]), logprobs_of(fresh[0]))
    assert torch.equal(logprobs_of(stale[1]), logprobs_of(frozen[1]))  # as if nothing had been learned yet
    assert not torch.equal(logprobs_of(fresh[1]), logprobs_of(frozen[1]))


def test_a_resumed_run_is_the_uninterrupted_one(tmp_path):
    config = cohort_config(**STALE, run={"dir": str(tmp_path)})
    whole = train(config, steps=4, save_at=2)
    resumed = train(config, steps=4, resume_at=2)
    for agent, (steps, weights, _) in whole.items():
        for ours, theirs in zip(resumed[agent][0], steps[2:], strict=True):
            assert torch.equal(logprobs_of(ours), logprobs_of(theirs))
        assert all(torch.equal(tensor, weights[key]) for key, tensor in resumed[agent][1].items())


def test_importance_weights_make_up_for_it():
    steps, _, metrics = train(cohort_config(**STALE), steps=3)["qwen"]
    assert steps[0].learning["sampler_weight"] == pytest.approx(1, abs=1e-4)
    assert abs(steps[1].learning["sampler_weight"] - 1) > 1e-4
    assert all(m["seconds_rollout"] > 0 for m in metrics)


def test_the_last_step_samples_nothing_ahead():
    config = alone(cohort={"topology": "self", "max_staleness": 1}, run={"steps": 2})
    steps = train(config, steps=2)["qwen"][0]
    assert len(steps) == 2  # and no problems of a step 3 were asked for


def test_rollouts_come_back_as_they_were_written(tmp_path):
    row = [Completion("an ä", (3, 1), (-0.1, -1e-30), True), Completion("", (), (), False)]
    assert read_ahead(tmp_path) is None
    write_ahead(tmp_path, 7, [[vars(c) for c in row]])
    assert read_ahead(tmp_path) == (7, [row])
    [group] = groups_of(load_problems(cohort_config().data.train).problems[:1], [row])
    assert group.completions == tuple(row)


@pytest.mark.parametrize("text", ["{", "[]", '{"step": 1, "completions": [[{"text": "a"}]]}'])
def test_a_damaged_file_is_named(tmp_path, text):
    (tmp_path / "ahead.json").write_text(text)
    with pytest.raises(MmcorlError, match=r"ahead\.json cannot be read"):
        read_ahead(tmp_path)


def test_settings_that_do_not_go_with_it_are_named():
    with pytest.raises(ValidationError, match=r"loss\.sampler_correction=token_truncate"):
        cohort_config(**STALE, loss={"sampler_correction": "none"})
    with pytest.raises(ValidationError, match=r"set cohort\.max_staleness=0"):
        cohort_config(**STALE, interaction={"kind": "comas"})


def test_the_log_probabilities_survive_the_file_exactly(tmp_path):
    logprobs = tuple(torch.randn(50, generator=torch.Generator().manual_seed(0)).tolist())
    write_ahead(tmp_path, 1, [[vars(Completion("", (1,) * 50, logprobs, True))]])
    found = read_ahead(tmp_path)
    assert found is not None and found[1][0][0].logprobs == logprobs
