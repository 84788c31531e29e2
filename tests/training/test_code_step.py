"""Steps on completions written by hand: programs, and texts that just stopped."""

from __future__ import annotations

import json
import threading
import uuid
from contextlib import ExitStack
from pathlib import Path

import pytest

from mmcorl.cohort.exchange import Exchange
from mmcorl.cohort.store import open_store
from mmcorl.config import CodeConfig, Config
from mmcorl.data.loading import load_problems
from mmcorl.errors import MmcorlError
from mmcorl.graders import Grader
from mmcorl.graders.code import limits_of
from mmcorl.problems import Completion, RolloutGroup
from mmcorl.training.building import load_trainer
from mmcorl.training.loop import Trainer
from mmcorl.training.preflight import require_ready
from mmcorl.training.world import World

CODE = CodeConfig(case_seconds=0.5, program_seconds=1.0, processes=2)
PROGRAMS = [
    {
        "id": "largest",
        "question": "Write largest(xs).",
        "tests": ["assert largest([1, 3, 2]) == 3", "assert largest([-4, -1]) == -1"],
    },
    {
        "id": "sum",
        "question": "Add two numbers.",
        "tests": [{"input": "1 2\n", "output": "3\n"}, {"input": "2 3\n", "output": "5"}],
    },
]
RIGHT = {
    "largest": ("def largest(xs):\n    return max(xs)", "largest = lambda xs: sorted(xs)[-1]"),
    "sum": ("print(sum(map(int, input().split())))", "a, b = map(int, input().split())\nprint(a + b)"),
}
WRONG = {
    "largest": ("def largest(xs):\n    return xs[-1]", "largest = lambda xs: xs[len(xs) - 1]"),
    "sum": ("print(3)", "a = 3\nprint(f'{a}')"),
}
ENDLESS = {"largest": "def largest(xs):\n    while True: pass", "sum": "while True: pass"}


def written(*sources):
    return [f"Here it is:\n```python\n{source}\n```" for source in sources]


def one_step(config, monkeypatch, texts, finished=lambda text: True):
    """The first step of every agent, whose completions of each problem are `texts[agent][id]`."""

    def say(self, agent, problems, number, *key):
        tokenizer = self.learner.agent.prompts.tokenizer
        groups = []
        for problem in problems:
            said = texts[self.agent.name][problem.id]
            ids = [tuple(tokenizer(text)["input_ids"]) for text in said]
            groups.append(
                RolloutGroup(
                    problem,
                    tuple(
                        Completion(text, tokens, (-1.0,) * len(tokens), finished(text))
                        for text, tokens in zip(said, ids, strict=True)
                    ),
                )
            )
        return groups

    monkeypatch.setattr(Trainer, "sample", say)
    data = load_problems(config.data.train)
    store, _ = open_store(f"memory://{uuid.uuid4()}", is_host=True)
    steps = {}
    with ExitStack() as stack:
        limits = limits_of(config.code)
        grader = stack.enter_context(Grader(program_limits=limits, program_workers=config.code.processes))
        golds = {p.id: grader.read(data.golds[p.id].answer, p) for p in data.problems}
        trainers = []
        for name in config.agents:
            exchange = Exchange(store, list(config.agents), name, run="test", attempt="1", dead_after=60)
            stack.enter_context(exchange)
            trainers.append(load_trainer(config, name, World(), data, golds, grader, exchange, None))

        def work(trainer):
            step = trainer.step(1)
            steps[trainer.agent.name] = {p.id: i for i, p in enumerate(step.problems)}, step

        threads = [threading.Thread(target=work, args=(trainer,)) for trainer in trainers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=120)
    assert set(steps) == set(config.agents)
    return steps


def config_of(path: Path, rows, tiny_folder, **changes):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    tree = {
        "agents": {name: {"model": str(tiny_folder("qwen2"))} for name in ("first", "second")},
        "data": {"train": {"path": str(path)}},
        "rollouts": {"problems_per_step": len(rows), "per_problem": 4, "max_tokens": 100},
        "code": CODE.model_dump(),
    }
    return Config.model_validate(tree | changes)


@pytest.mark.usefixtures("walled_machine")
@pytest.mark.parametrize("rule", ["peer_vote", "gold"])
def test_programs_vote_with_what_they_put_out(rule, tiny_folder, tmp_path, monkeypatch):
    config = config_of(tmp_path / "rows.jsonl", PROGRAMS, tiny_folder, reward={"rule": rule})
    texts = {
        "first": {i: [*written(*RIGHT[i], ENDLESS[i]), "I cannot."] for i in RIGHT},  # right by two of two
        "second": {i: written(*WRONG[i], RIGHT[i][0], ENDLESS[i]) for i in RIGHT},  # wrong by two of three
    }
    steps = one_step(config, monkeypatch, texts)
    outputs = {"largest": ('["3", "-1"]', '["2", "-1"]'), "sum": ('["3", "5"]', '["3", "3"]')}
    for problem_id, (right, wrong) in outputs.items():
        for name, vote, share in (("first", right, 1.0), ("second", wrong, 2 / 3)):
            places, step = steps[name]
            elected = step.votes[name][places[problem_id]]
            assert elected.answer is not None and elected.answer.value == vote
            assert elected.share == pytest.approx(share)
        rewards = {
            name: list(step.rewards.values[places[problem_id]]) for name, (places, step) in steps.items()
        }
        if rule == "gold":
            assert rewards == {"first": [1, 1, 0, 0], "second": [0, 0, 1, 0]}
        else:  # each by the vote of the other
            assert rewards == {"first": [0, 0, 0, 0], "second": [0, 0, 1, 0]}
    assert steps["second"][1].learning["grad_norm"] > 0


def test_a_text_that_just_stopped_votes_for_nothing(tiny_folder, tmp_path, monkeypatch):
    rows = [{"id": "sum", "question": "How much is 6 + 6?", "answer": "12"}]
    config = config_of(tmp_path / "rows.jsonl", rows, tiny_folder)
    texts = {
        "first": {"sum": ["<answer>1", r"So \boxed{1", "<answer>1", r"It is \boxed{12}, as"]},
        "second": {"sum": ["<answer>1</answer>", "<answer>12", "<answer>12</answer>", r"\boxed{12}"]},
    }
    steps = one_step(config, monkeypatch, texts, finished=lambda text: text.endswith((">", "}")))
    _, first = steps["first"]
    assert [a and a.value for a in first.answers[0]] == [None, None, None, "12"]
    assert first.votes["first"][0].answer == first.votes["second"][0].answer == first.answers[0][3]
    assert first.rewards.values[0] == [0, 0, 0, 1]


@pytest.mark.usefixtures("walled_machine")
def test_where_programs_cannot_be_walled_off_no_run_begins(tiny_folder, tmp_path, monkeypatch):
    config = config_of(tmp_path / "rows.jsonl", PROGRAMS, tiny_folder)
    require_ready(config)
    monkeypatch.setattr("mmcorl.sandbox.pool._START", "print('[\"Landlock is missing\"]')")
    with pytest.raises(MmcorlError, match=r"Landlock is missing.*code\.unprotected=true"):
        require_ready(config)
