import json

import pytest

from mmcorl.cli.compare import main
from mmcorl.config_loading import to_yaml
from mmcorl.files import write_whole
from mmcorl.training import checkpoints
from mmcorl.training.comparison import load_comparison
from mmcorl.training.folders import RunFolder
from mmcorl.training.metrics import MetricsLog

FILES = {
    "base.yaml": """
run: {{name: small, dir: '{home}/runs', steps: 4}}
agents: {{ann: {{model: '{home}/model'}}, bob: {{model: '{home}/model'}}}}
data: {{train: {{scenes: {{}}}}, eval: {{scenes: {{}}}}}}
evaluation: {{every: 2}}
""",
    "compare.yaml": """
base: base.yaml
variants:
  alone: {{title: own votes, overrides: [cohort.topology=self]}}
  together: {{title: peer votes}}
""",
}


@pytest.fixture
def home(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    for name, text in FILES.items():
        (tmp_path / name).write_text(text.format(home=tmp_path))
    return tmp_path


def finish(variant, accuracy):
    """What a finished run of this variant leaves."""
    folder = RunFolder.of(variant.config)
    for agent in variant.config.agents:
        log = MetricsLog(folder.metrics(agent))
        for step in (0, 2, 4):
            scores = {f"{key}{end}": accuracy for key in ("accuracy", "avg") for end in ("", "_low", "_high")}
            log.write("eval", step, **scores, samples=8)
        checkpoints.save(folder.checkpoints(agent), 4, lambda path: None)
    write_whole(folder.config, to_yaml(variant.config))


def test_finished_variants_are_not_run_again_and_everything_is_reported(home, capsys):
    for variant, accuracy in zip(load_comparison(home / "compare.yaml"), (0.25, 0.75), strict=True):
        finish(variant, accuracy)
    assert main([str(home / "compare.yaml"), "--resume"]) == 0
    summary = json.loads((home / "runs" / "small" / "summary.json").read_text())
    assert {name: methods["bob"]["final"] for name, methods in summary.items()} == {
        "alone": 0.25,
        "together": 0.75,
    }
    assert (home / "runs" / "small" / "curves.png").stat().st_size > 10_000
    output = capsys.readouterr().out
    assert "own votes (1 of 2)" in output and "curves.png" in output
    assert "75.0 [ 75.0,  75.0]" in output, "a table in a file is wide enough not to be folded"


@pytest.mark.parametrize("name", ["summary.json", "curves.png"])
def test_a_result_that_cannot_be_written_is_one_message(name, home, capsys):
    for variant in load_comparison(home / "compare.yaml"):
        finish(variant, 0.5)
    (home / "runs" / "small" / name).mkdir()
    assert main([str(home / "compare.yaml"), "--resume"]) == 2
    assert f"{name} cannot be written (Is a directory)" in capsys.readouterr().err


def test_an_earlier_comparison_is_not_overwritten_unless_asked(home, capsys):
    finish(load_comparison(home / "compare.yaml")[1], 0.5)
    assert main([str(home / "compare.yaml")]) == 2
    assert "already holds a run of ann, bob" in capsys.readouterr().err
    assert not (home / "runs" / "small" / "alone").exists(), (
        "no variant starts before all are known to be able to"
    )


def test_a_mistake_in_one_variant_is_found_before_any_starts(home, capsys):
    (home / "compare.yaml").write_text(
        (home / "compare.yaml").read_text().replace("peer votes", "x, overrides: [agents.bob.model=./no]")
    )
    assert main([str(home / "compare.yaml")]) == 2
    assert "agents.bob.model=./no does not exist" in capsys.readouterr().err
    assert not (home / "runs").exists()
