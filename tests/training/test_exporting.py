import json
import shutil
from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import load_file
from transformers import AutoModelForImageTextToText

from mmcorl.agents.agent import Agent
from mmcorl.config import AgentConfig, Config
from mmcorl.config_loading import to_yaml
from mmcorl.errors import MmcorlError
from mmcorl.training import checkpoints, exporting
from mmcorl.training.folders import RunFolder
from mmcorl.training.metrics import MetricsLog

QWEN = Path(__file__).parents[2] / "data_tools" / "tiny_agents" / "qwen2_5_vl"
NOTE = {"step": 2, "score": 0.75, "rule": "held-out greedy accuracy"}


def make_run(home, lora=None):
    """A run of one agent with checkpoints of steps 1 and 2, of which the second is the best."""
    config = Config.model_validate(
        {
            "run": {"dir": str(home), "name": "alone"},
            "agents": {"qwen": {"model": str(QWEN), "lora": lora}},
            "cohort": {"topology": "self"},
            "data": {"train": {"scenes": {"size": 24}}},
        }
    )
    folder = RunFolder.of(config)
    folder.path.mkdir(parents=True)
    folder.config.write_text(to_yaml(config))
    agent = Agent.load("qwen", AgentConfig(model=str(QWEN), lora=config.agents["qwen"].lora))
    metrics = MetricsLog(folder.metrics("qwen"))
    for step, accuracy in enumerate((0.5, 0.625, 0.75)):
        bounds = {"accuracy_low": accuracy - 0.2, "accuracy_high": accuracy + 0.2}
        metrics.write("eval", step, accuracy=accuracy, **bounds, samples=0, problems=8)
        if step == 0:
            continue
        with torch.no_grad():
            for parameter in agent.model.parameters():
                if parameter.requires_grad:
                    parameter.add_(0.01)
        write = agent.snapshot()

        def write_all(path, write=write):
            write(path)
            (path / "training").mkdir()
            (path / "training" / "optimizer.safetensors").write_bytes(b"moments")

        checkpoint = checkpoints.save(folder.checkpoints("qwen"), step, write_all)
    checkpoints.keep_best(folder.agent("qwen"), checkpoint, NOTE, card="# old")
    metrics.close()
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("plain"))


def weights(folder):
    return load_file(folder / "model.safetensors")


def test_the_best_is_exported_with_a_card_of_its_results(run, tmp_path):
    scores = {"benchmark": "geo3k", "model": "qwen", "samples": 4}
    scores["accuracy"] = {"value": 0.4, "low": 0.3, "high": 0.5, "problems": 60}
    (tmp_path / "summary.json").write_text(json.dumps({"scores": [scores]}))
    out = tmp_path / "new" / "qwen"
    source = exporting.export(run.path, "qwen", out, evaluations=[tmp_path])
    assert source.step == 2
    best = run.agent("qwen") / "best"
    assert all(torch.equal(w, weights(best)[name]) for name, w in weights(out).items())
    names = {path.name for path in out.iterdir()}
    assert names == {path.name for path in best.iterdir()} - {"best.json", "manifest.json"}
    _, header, body = (out / "README.md").read_text().split("---\n", 2)
    assert yaml.safe_load(header)["base_model"] == str(QWEN)
    assert "| greedy accuracy | 0 | 8 | 0.500 | 0.300 to 0.700 |" in body
    assert "| greedy accuracy | 2 | 8 | 0.750 | 0.550 to 0.950 |" in body
    assert "0.625" not in body
    assert "| geo3k | qwen | 60 | 4 | 0.400 | 0.300 to 0.500 |" in body
    assert "step 2, chosen by held-out greedy accuracy" in body


def test_a_step_in_half_precision_is_read_by_transformers(run, tmp_path):
    exporting.export(run.path, "qwen", tmp_path / "half", step=1, dtype="bfloat16")
    model = AutoModelForImageTextToText.from_pretrained(tmp_path / "half")
    assert model.dtype == torch.bfloat16
    full = weights(run.checkpoints("qwen") / "step-000001")
    assert all(torch.equal(w, full[name].bfloat16()) for name, w in weights(tmp_path / "half").items())
    Agent.load("qwen", AgentConfig(model=str(tmp_path / "half")))


def test_adapters_are_added_to_the_model_or_exported_alone(tmp_path):
    pytest.importorskip("peft")
    run = make_run(tmp_path / "lora", lora={"rank": 2})
    exporting.export(run.path, "qwen", tmp_path / "whole")
    exporting.export(run.path, "qwen", tmp_path / "adapters", adapter=True)
    assert (tmp_path / "adapters" / "adapter_config.json").exists()
    assert not (tmp_path / "whole" / "adapter_config.json").exists()
    assert "library_name: transformers" in (tmp_path / "whole" / "README.md").read_text()
    assert "library_name: peft" in (tmp_path / "adapters" / "README.md").read_text()
    whole, merged = (
        Agent.load("qwen", AgentConfig(model=str(tmp_path / name))).model.state_dict()
        for name in ("whole", "adapters")
    )
    start = Agent.load("qwen", AgentConfig(model=str(QWEN))).model.state_dict()
    assert all(torch.equal(w, merged[name]) for name, w in whole.items())
    assert any(not torch.equal(w, start[name]) for name, w in whole.items())


def test_a_model_that_adapters_are_for_and_that_is_not_there_is_named(tmp_path):
    pytest.importorskip("peft")
    run = make_run(tmp_path / "lora", lora={"rank": 2})
    home = run.checkpoints("qwen")

    def write(new):
        ignore = shutil.ignore_patterns(checkpoints.MANIFEST)
        shutil.copytree(checkpoints.step_folder(home, 1), new, dirs_exist_ok=True, ignore=ignore)
        file = new / "adapter_config.json"
        settings = json.loads(file.read_text()) | {"base_model_name_or_path": "a/folder/elsewhere"}
        file.write_text(json.dumps(settings))

    checkpoints.save(home, 3, write)
    with pytest.raises(
        MmcorlError, match=r"a/folder/elsewhere cannot be loaded .*--adapter exports them alone"
    ):
        exporting.export(run.path, "qwen", tmp_path / "new", step=3)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"agent": "bob"}, "the run's agents are qwen"),
        ({"step": 7}, "no checkpoint of step 7; kept are 1, 2"),
        ({"adapter": True}, r"trained without agents\.qwen\.lora"),
        ({"evaluations": [Path("/nowhere")]}, "holds no results of mmcorl-eval"),
    ],
)
def test_what_cannot_be_exported_is_told_and_nothing_written(run, tmp_path, options, reason):
    with pytest.raises(MmcorlError, match=reason):
        exporting.export(run.path, **{"agent": "qwen", "to": tmp_path / "new"} | options)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_exists_is_never_overwritten(run, tmp_path):
    with pytest.raises(MmcorlError, match="exists; choose another folder"):
        exporting.export(run.path, "qwen", tmp_path)


def test_a_damaged_checkpoint_is_not_exported(run, tmp_path):
    copy = shutil.copytree(run.path, tmp_path / "copy")
    file = copy / "agents" / "qwen" / "best" / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.unlink()
    file.write_bytes(content)
    with pytest.raises(MmcorlError, match=r"model\.safetensors is damaged .*--step, of 1, 2"):
        exporting.export(copy, "qwen", tmp_path / "new")
    (copy / "agents" / "qwen" / "checkpoints" / "step-000002" / "config.json").unlink()
    with pytest.raises(MmcorlError, match=r"config\.json is damaged .*--step, of 1$"):
        exporting.export(copy, "qwen", tmp_path / "new", step=2)


class Recorder:
    """A hub that notes what it is asked for."""

    def __init__(self, error=None):
        self.asked, self.error = [], error

    def create_repo(self, repo_id, *, exist_ok):
        self.asked.append((repo_id, exist_ok))

    def upload_folder(self, *, repo_id, folder_path, commit_message):
        if self.error is not None:
            raise self.error
        self.asked.append((repo_id, folder_path))


def test_pushing_asks_the_hub_for_a_repository_and_gives_it_the_folder(tmp_path):
    hub = Recorder()
    exporting.push(tmp_path, "someone/model", hub)
    assert hub.asked == [("someone/model", True), ("someone/model", tmp_path)]


def test_a_hub_that_cannot_be_reached_is_told(tmp_path):
    with pytest.raises(MmcorlError, match=r"was not uploaded to someone/model \(no route\).*hf upload"):
        exporting.push(tmp_path, "someone/model", Recorder(OSError("no route")))
