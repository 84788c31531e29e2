import io
import json

import pytest
from PIL import Image
from rich.console import Console

from mmcorl.errors import MmcorlError
from mmcorl.training.comparison import as_table, load_comparison, summarize
from mmcorl.training.curves import draw_curves
from mmcorl.training.folders import RunFolder
from mmcorl.training.metrics import MetricsLog

BASE = """
run: {name: small, dir: DIR, steps: 20}
agents: {ann: {model: a}, bob: {model: b}}
data: {train: {scenes: {}}, eval: {scenes: {}}}
evaluation: {every: 10}
"""
COMPARISON = """
base: base.yaml
variants:
  alone: {title: own votes, overrides: [cohort.topology=self, run.steps=10]}
  together: {title: peer's votes}
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "base.yaml").write_text(
        BASE.replace("DIR", str(tmp_path / "all: runs"))
        .replace("dir: ", "dir: '")
        .replace(", steps", "', steps")
    )
    (tmp_path / "compare.yaml").write_text(COMPARISON)
    return tmp_path / "compare.yaml"


def evaluate(variant, agent, *accuracies, samples=8):
    log = MetricsLog(RunFolder.of(variant.config).metrics(agent))
    for index, accuracy in enumerate(accuracies):
        low, high = accuracy - 0.05, accuracy + 0.04
        greedy = {"accuracy": accuracy, "accuracy_low": low, "accuracy_high": high}
        sampled = {"avg": accuracy / 2, "avg_low": low / 2, "avg_high": high / 2}
        log.write("eval", 10 * index, **greedy, **sampled, samples=samples)


def launched(variant, *seconds):
    lines = [json.dumps({"from_step": 0, "seconds": each, "code": 0}) + "\n" for each in seconds]
    RunFolder.of(variant.config).launches.write_text("".join(lines))


def test_each_variant_is_the_base_with_its_changes_in_a_folder_of_its_own(file, tmp_path):
    alone, together = load_comparison(file, ["run.seed=3", "run.steps=50"])
    assert RunFolder.of(alone.config).path == tmp_path / "all: runs" / "small" / "alone"
    assert (alone.config.cohort.topology, together.config.cohort.topology) == ("self", "ring")
    assert alone.config.run.seed == together.config.run.seed == 3
    assert (alone.config.run.steps, together.config.run.steps) == (10, 50), (
        "a variant's own settings have the last word"
    )


def test_the_summary_has_start_and_end_of_every_agent_and_skips_variants_without_evaluations(file):
    alone, together = variants = load_comparison(file)
    evaluate(together, "ann", 0.5, 0.625, 0.75)
    evaluate(together, "bob", 0.25, 0.5)
    launched(together, 30.0, 12.25)
    assert summarize(variants) == {
        "together": {
            "ann": {
                "start": 0.5,
                "final": 0.75,
                "low": 0.7,
                "high": 0.79,
                "start_avg8": 0.25,
                "final_avg8": 0.375,
            },
            "bob": {
                "start": 0.25,
                "final": 0.5,
                "low": 0.45,
                "high": 0.54,
                "start_avg8": 0.125,
                "final_avg8": 0.25,
            },
            "seconds": 42.2,
            "seed": 0,
        }
    }
    assert alone.name == "alone"


def test_the_table_and_the_figure_show_every_variant(file, tmp_path):
    variants = load_comparison(file)
    for variant, gain in zip(variants, (0.0, 0.25), strict=True):
        for agent in ("ann", "bob"):
            evaluate(variant, agent, 0.5, 0.5 + gain)
    output = io.StringIO()
    Console(file=output, width=120).print(as_table(variants))
    table = output.getvalue()
    assert (
        "peer's votes" in table and "75.0 [ 70.0,  79.0]" in table and "+25.0" in table and "37.5 [" in table
    )
    draw_curves(variants, tmp_path / "curves.png")
    with Image.open(tmp_path / "curves.png") as image:
        assert image.width > image.height > 500
    assert not list(tmp_path.glob(".*")), "nothing half-written is left"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("variants: {a: {title: A}}", "base is missing"),
        ("base: base.yaml\nvariants: {}", "variants"),
        ("base: base.yaml\nvariants: {../a: {title: A}}", "variants"),
        (
            "base: base.yaml\nvariants: {a: {titel: A}}",
            "titel is not a setting; the nearest is variants.a.title",
        ),
        ("base: none.yaml\nvariants: {a: {title: A}}", "none.yaml: no such configuration file"),
        ("base: [", "not valid YAML"),
        (
            "base: base.yaml\nvariants: {a: {title: A, overrides: [evaluation.every=0]}}",
            "a has evaluation.every=0",
        ),
        (
            "base: base.yaml\nvariants: {a: {title: A, overrides: [reward.rul=gold]}}",
            "the nearest is reward.rule",
        ),
    ],
)
def test_mistakes_in_the_file_are_named(file, text, message):
    file.write_text(text)
    with pytest.raises(MmcorlError) as error:
        load_comparison(file)
    assert message in str(error.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(MmcorlError, match=r"nowhere\.yaml: no such configuration file"):
        load_comparison(tmp_path / "nowhere.yaml")
