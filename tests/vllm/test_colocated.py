"""vLLM in the agent's own process samples what the policy would, however often the weights change."""

from __future__ import annotations

import itertools

import pytest
import torch

from mmcorl.agents import contract
from mmcorl.agents.batches import TokenGroup
from mmcorl.agents.engine_check import engine_gap
from mmcorl.agents.engines.transformers import TransformersEngine
from mmcorl.errors import MmcorlError
from mmcorl.problems import Problem

UPDATES = (1, 5, 20)


def train(agent, problems, updates):
    """Updates of every part, vision included, on the agent's own completions with alternating advantages."""
    optimizer = torch.optim.AdamW(agent.model.parameters(), lr=1e-3)
    rollouts = agent.rollout(problems, samples=2, max_tokens=6, noise_key=("train", updates))
    groups = [
        TokenGroup(agent.encode(g.problem), [torch.tensor(c.token_ids) for c in g.completions])
        for g in rollouts
    ]
    before = {name: p.detach().clone() for name, p in agent.model.named_parameters()}
    for _ in range(updates):
        optimizer.zero_grad()
        logprobs = agent.policy.logprobs(groups)
        (logprobs * torch.linspace(-1, 1, len(logprobs))).mean().backward()
        optimizer.step()
    moved = {
        agent.backbone.part_of(n) for n, p in agent.model.named_parameters() if not torch.equal(p, before[n])
    }
    assert moved == ({"vision", "projector", "text"} if agent.backbone.sees_images else {"text"})


def with_transformers(agent, problems):
    """Greedy completions of the same weights by the transformers engine."""
    engine = TransformersEngine(
        agent.model,
        stop_ids=agent.engine.served.stop_ids,
        banned=agent.engine.served.banned,
        batch_tokens=4096,
    )
    with engine.awake():
        rows = engine.sample([agent.encode(p) for p in problems], None, 1, 12, 1.0)
    return [row[0].token_ids.tolist() for row in rows]


def greedy(agent, problems):
    groups = agent.rollout(problems, samples=1, max_tokens=12, noise_key=None)
    return [list(group.completions[0].token_ids) for group in groups]


@pytest.fixture(scope="module", params=["qwen2_5_vl", "internvl", "qwen3"])
def agent(request, tiny_agent, vllm_rollouts):
    return tiny_agent(request.param, rollouts=vllm_rollouts())


@pytest.fixture(scope="module")
def problems(agent):
    return contract.sample_problems(agent.backbone.sees_images)


def test_greedy_tokens_and_log_probabilities_follow_the_policy_through_updates(agent, problems):
    """The same images are asked each time, so features kept from older weights would show."""
    seen = []
    for updates in (0, *UPDATES):
        train(agent, problems, updates) if updates else None
        tokens = greedy(agent, problems)
        assert tokens == with_transformers(agent, problems)
        assert engine_gap(agent, problems, 16, limit=1e-3) < 1e-4
        seen.append(tokens)
    assert all(a != b for a, b in itertools.pairwise(seen))


def test_completions_do_not_depend_on_the_problems_beside_them(agent, problems):
    together = agent.rollout(problems, samples=4, max_tokens=12, noise_key=("n",), temperature=0.8)
    assert len({c.token_ids for c in together[0].completions}) > 1
    for group in together:
        [alone] = agent.rollout([group.problem], samples=4, max_tokens=12, noise_key=("n",), temperature=0.8)
        assert [c.token_ids for c in alone.completions] == [c.token_ids for c in group.completions]


def test_other_noise_gives_other_completions(agent, problems):
    a, b = (
        agent.rollout(problems, samples=4, max_tokens=12, noise_key=(key,), temperature=0.8) for key in "ab"
    )
    assert [c.token_ids for g in a for c in g.completions] != [c.token_ids for g in b for c in g.completions]


def test_banned_tokens_are_never_sampled_and_stops_are_honoured(agent, problems):
    banned, stops = set(agent.engine.served.banned), agent.engine.served.stop_ids
    head = agent.model.get_output_embeddings().weight
    kept = head.detach().clone()
    with torch.no_grad():
        for token in (*banned, stops[-1]):
            head[token] *= 6
    groups = agent.rollout(problems, samples=16, max_tokens=16, noise_key=("s",))
    with torch.no_grad():
        head.copy_(kept)
    completions = [c for g in groups for c in g.completions]
    assert not banned & {token for c in completions for token in c.token_ids}
    assert any(c.finished for c in completions)
    assert all(c.finished == (c.token_ids[-1] in stops) for c in completions)


def test_an_image_is_encoded_once_for_all_its_completions(agent, problems):
    pictures = [p for p in problems if p.images]
    if not pictures:
        pytest.skip("text only")
    asked = []
    runner = agent.engine._llm.llm_engine.model_executor.driver_worker.worker.model_runner
    model, encode = runner.model, runner.model.embed_multimodal
    model.embed_multimodal = lambda **inputs: asked.append(len(out := encode(**inputs))) or out
    try:
        agent.rollout(pictures, samples=8, max_tokens=4, noise_key=("once",))
    finally:
        del model.embed_multimodal
    assert sum(asked) == len({image.tobytes() for p in pictures for image in agent.encode(p).images})


def test_a_gap_beyond_the_limit_says_what_differs(agent, problems, monkeypatch):
    served = type(agent.engine.served)
    sampling = served.sampling
    monkeypatch.setattr(served, "sampling", lambda self, t, *rest: sampling(self, t * 2, *rest))
    with pytest.raises(
        MmcorlError, match=r"differ from the policy's by .*weights, temperature or banned tokens"
    ):
        engine_gap(agent, problems, 16, limit=1e-3)


def test_stale_features_of_images_are_told_from_other_causes(agent, problems, monkeypatch):
    """What would happen if only the text part were handed over."""
    if not agent.backbone.sees_images:
        pytest.skip("text only")
    with torch.no_grad():
        for name, parameter in agent.model.named_parameters():
            if agent.backbone.part_of(name) != "text":
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
    monkeypatch.setattr(agent.engine, "_load_weights", lambda: None)
    with pytest.raises(MmcorlError, match=r"the vision part's weights, features kept"):
        engine_gap(agent, problems, 16, limit=1e-3)


def test_no_problems_have_no_completions(agent):
    assert agent.rollout([], samples=2, max_tokens=2, noise_key=("none",)) == []


def test_a_prompt_that_vllm_reads_otherwise_is_refused(agent):
    prompt = agent.encode(Problem("p", "What is 2 + 2?"))
    with pytest.raises(MmcorlError, match=r"reads problem 'p' as 3 tokens.*up to token 1"):
        agent.engine.served.check_prompt(prompt, [int(prompt.ids[0]), -1, -1])


def test_weights_that_are_no_numbers_stop_the_run_with_the_problem(agent, problems):
    """The last test here: vLLM's cache is spoilt by them."""
    with torch.no_grad():
        agent.model.get_output_embeddings().weight.fill_(torch.nan)
    with pytest.raises(MmcorlError, match=r"not numbers on problem 'text-0'"):
        agent.rollout(problems[:1], samples=2, max_tokens=2, noise_key=("nan",))
