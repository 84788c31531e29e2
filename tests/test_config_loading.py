from __future__ import annotations

from pathlib import Path

import pytest

from mmcorl.config import Config, ScenesConfig
from mmcorl.config_loading import dotted_paths, load_config, nearest, read_yaml, to_yaml, validate
from mmcorl.errors import MmcorlError
from mmcorl.training.comparison import load_comparison

SHIPPED = sorted((Path(__file__).parents[1] / "configs").rglob("*.yaml"))

MINIMAL = """
agents:
  first: {model: one}
  second: {model: two}
data:
  train: {path: problems.jsonl}
"""


@pytest.fixture
def minimal(tmp_path: Path) -> Path:
    return written(tmp_path / "run.yaml", MINIMAL)


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def complaint(path: Path, *overrides: str) -> str:
    with pytest.raises(MmcorlError) as caught:
        load_config(path, overrides)
    return str(caught.value)


def test_there_are_shipped_configurations():
    assert SHIPPED


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_configurations_load(path: Path):
    runs = [v.config for v in load_comparison(path)] if "variants" in read_yaml(path) else [load_config(path)]
    assert all(run.agents for run in runs)


def test_defaults_fill_what_a_file_leaves_out(minimal: Path):
    config = load_config(minimal)
    assert list(config.agents) == ["first", "second"]
    assert config.rollouts.per_problem == 8


def test_overrides_are_yaml_values(minimal: Path):
    config = load_config(
        minimal,
        [
            "agents.first.model=three",
            "agents.second.ranks=2",
            "agents.second.devices=[0,1]",
            "optimizer.lr=1e-4",
            "run.threads=null",
            "data.train.limit=5",
            "agents.first.shared_prefix=off",
            "prompt.instruction='Think: a=b'",
            "data.train.limit=6",
        ],
    )
    assert config.agents["first"].model == "three"
    assert config.agents["second"].devices == (0, 1)
    assert config.optimizer.lr == 1e-4
    assert config.run.threads is None
    assert config.data.train.limit == 6
    assert config.agents["first"].shared_prefix == "off"
    assert config.prompt.instruction == "Think: a=b"


def test_an_override_can_add_an_agent_and_null_takes_one_out(minimal: Path):
    config = load_config(minimal, ["agents.third.model=x", "agents.first=null"])
    assert list(config.agents) == ["second", "third"]


def test_the_resolved_yaml_loads_to_the_same_configuration(minimal: Path, tmp_path: Path):
    config = load_config(
        minimal,
        [
            "agents.first.shared_prefix=off",
            "prompt.system='Größe: 1\n# no'",
            "optimizer.lr=3e-6",
            "run.name=null_",
            "run.dir='on'",
        ],
    )
    assert load_config(written(tmp_path / "saved.yaml", to_yaml(config))) == config


def test_a_base_is_relative_to_the_file_that_names_it(minimal: Path, tmp_path: Path):
    (tmp_path / "sub").mkdir()
    written(
        tmp_path / "sub" / "middle.yaml",
        "base: ../run.yaml\nrun: {steps: 5, seed: 1}\nagents: {first: null}\ncohort: {topology: self}",
    )
    top = written(tmp_path / "top.yaml", "base: sub/middle.yaml\nrun: {seed: 2}")
    config = load_config(top, ["run.name=x"])
    assert (config.run.steps, config.run.seed, config.run.name) == (5, 2, "x")
    assert list(config.agents) == ["second"]


def test_lists_of_a_base_are_replaced_not_joined(tmp_path: Path):
    written(tmp_path / "base.yaml", MINIMAL + "logging: {trackers: [wandb, tensorboard]}")
    top = written(tmp_path / "top.yaml", "base: base.yaml\nlogging: {trackers: [trackio]}")
    assert load_config(top).logging.trackers == ("trackio",)


def test_bases_in_a_circle(tmp_path: Path):
    written(tmp_path / "a.yaml", "base: b.yaml")
    written(tmp_path / "b.yaml", "base: a.yaml")
    assert "circle" in complaint(tmp_path / "a.yaml")


def test_interpolations_and_environment_variables_are_plain_text(
    minimal: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MMCORL_NAME", "from the environment")
    assert load_config(minimal, ["run.name=${oc.env:MMCORL_NAME}"]).run.name == "${oc.env:MMCORL_NAME}"


def test_every_fault_is_listed_with_path_value_and_expectation(minimal: Path):
    message = complaint(
        minimal,
        "rollouts.per_problem=many",
        "optimizer.lr=-1",
        "cohort.weigh=heads",
        "run.steps=true",
        "run.seed='5'",
        "agents.third.dtype=float32",
        "evaluation=3",
    )
    assert message.splitlines()[0] == f"{minimal}:"
    for line in (
        "rollouts.per_problem='many': must be a valid integer",
        "optimizer.lr=-1: must be greater than 0",
        "cohort.weigh='heads': must be 'votes', 'share' or 'pooled'",
        "run.steps=True: must be a valid integer",
        "run.seed='5': must be a valid integer",
        "agents.third.model is missing and has no default",
        "evaluation=3: expected settings of its own (key: value)",
    ):
        assert f"  {line}" in message.splitlines()


@pytest.mark.parametrize(
    ("override", "path", "near"),
    [
        ("rollouts.per_problems=4", "rollouts.per_problems", "rollouts.per_problem"),
        ("rollout.per_problem=4", "rollout", "rollouts"),
        ("lr=1e-4", "lr", "optimizer.lr"),
        ("run.topology=self", "run.topology", "cohort.topology"),
        ("agents.first.modle=x", "agents.first.modle", "agents.first.model"),
        ("agent.first.model=x", "agent", "agents"),
        ("data.train.columns.qestion=x", "data.train.columns.qestion", "data.train.columns.question"),
        ("data.eval={path: x, limt: 3}", "data.eval.limt", "data.eval.limit"),
    ],
)
def test_unknown_keys_name_the_nearest(minimal: Path, override: str, path: str, near: str):
    assert f"  {path} is not a setting; the nearest is {near}" in complaint(minimal, override).splitlines()


def test_dotted_paths_include_the_names_of_agents():
    paths = list(dotted_paths(Config, {"agents": {"qwen": None}}))
    assert {"agents", "agents.qwen.model", "data.eval.scenes.seed", "run.seed"} <= set(paths)
    assert len(paths) == len(set(paths))


def test_the_nearest_is_never_the_section_that_was_written():
    assert nearest("run.x", ["run", "run.seed"]) == "run.seed"


def test_contradictions_are_listed_one_a_line(minimal: Path):
    message = complaint(minimal, "agents.first=null", "evaluation.every=5")
    assert len(message.splitlines()) == 3
    assert "set cohort.topology=self or add an agent" in message


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("agents:\n  a: {model: x}\n  a: {model: y}\n", "the key `a` stands twice in line 3"),
        ("run: {seed: 1, seed: 2}", "the key `seed` stands twice in line 1"),
        ("agents: [", "not valid YAML in line"),
        ("- a\n- b", "expected `key: value` settings, got a list"),
        ("just text", "just text is not a setting"),
        ("run: !!python/object/apply:os.getcwd []", "not valid YAML in line 1"),
        ("run: {name: '${'}", "unfinished `${`"),
        ("base: 3", "base=3 is not the name of a YAML file"),
        ("base: nowhere.yaml", "no such configuration file"),
        ("", "agents is missing"),
    ],
)
def test_files_that_are_no_configuration(tmp_path: Path, text: str, part: str):
    path = written(tmp_path / "bad.yaml", text)
    message = complaint(path)
    assert part in message
    assert str(tmp_path) in message


def test_paths_that_are_no_file(tmp_path: Path):
    assert "no such configuration file" in complaint(tmp_path / "none.yaml")
    assert "cannot be read" in complaint(tmp_path)
    latin = tmp_path / "latin.yaml"
    latin.write_bytes("run: {name: é}".encode("latin-1"))
    assert "cannot be read" in complaint(latin)


@pytest.mark.parametrize("override", ["run.steps", "=3", "run.=3", "a..b=3"])
def test_overrides_without_key_or_value(minimal: Path, override: str):
    assert "write key=value" in complaint(minimal, override)


@pytest.mark.parametrize("override", ["run.steps={a: 1", "run.name=${x", "agents=[1]"])
def test_overrides_that_cannot_be_read_are_quoted(minimal: Path, override: str):
    assert f"the override {override}: " in complaint(minimal, override)


def test_one_section_can_be_validated_alone():
    assert validate(ScenesConfig, {"tasks": ["count", "add"]}, "here").tasks == ("count", "add")
    with pytest.raises(MmcorlError) as caught:
        validate(ScenesConfig, {"siz": 3}, "here")
    assert str(caught.value) == "here:\n  siz is not a setting; the nearest is size"
