from __future__ import annotations

import io
import json
from pathlib import Path

import datasets
import pytest
from PIL import Image

from mmcorl.config import DataConfig
from mmcorl.data.hub import Hub, hub_rows, snapshot_rows
from mmcorl.data.loading import load_problems
from mmcorl.errors import MmcorlError
from mmcorl.problems import Gold

PICTURE = Image.new("RGB", (6, 4), "red")
FEATURES = datasets.Features(
    {
        "problem": datasets.Value("string"),
        "images": [datasets.Image()],
        "answer": datasets.ClassLabel(names=["A", "B"]),
    }
)


def downloaded(folder: Path, **splits: int) -> Path:
    """A data set as `hf download` leaves it: Parquet files by split."""
    for split, count in splits.items():
        rows = [{"problem": f"{split} {n}", "images": [PICTURE], "answer": 1} for n in range(count)]
        data = datasets.Dataset.from_list(rows, features=FEATURES)
        data.to_parquet(folder / "data" / f"{split}-00000-of-00001.parquet")
    return folder


def test_a_downloaded_data_set(tmp_path: Path):
    rows = list(snapshot_rows(downloaded(tmp_path, train=40, test=3), "train", ()))
    assert [row["problem"] for row in rows] == [f"train {n}" for n in range(40)]
    assert rows[0]["answer"] == "B"
    assert Image.open(io.BytesIO(rows[0]["images"][0]["bytes"])).size == (6, 4)


def test_splits_and_configs_that_are_none(tmp_path: Path):
    folder = downloaded(tmp_path, train=2, test=3)
    with pytest.raises(MmcorlError, match="has the splits train, test; say which by `split`"):
        list(snapshot_rows(folder, None, ()))
    with pytest.raises(MmcorlError, match=r"Bad split: val\. Available splits: \['train', 'test'\]"):
        list(snapshot_rows(folder, "val", ()))
    with pytest.raises(MmcorlError, match="BuilderConfig 'en' not found"):
        list(snapshot_rows(folder, "train", ("en",)))
    assert len(list(snapshot_rows(downloaded(tmp_path / "one", train=2), None, ()))) == 2


def test_configs_are_read_one_after_the_other(tmp_path: Path):
    for config in ("first", "second"):
        (tmp_path / config).mkdir()
        (tmp_path / config / "train.jsonl").write_text(json.dumps({"config": config}))
    (tmp_path / "README.md").write_text(
        "---\nconfigs:\n"
        + "".join(
            f"- config_name: {name}\n  data_files:\n  - split: train\n    path: {name}/train.jsonl\n"
            for name in ("first", "second")
        )
        + "---\n"
    )
    rows = list(snapshot_rows(tmp_path, "train", ("second", "first")))
    assert [row["config"] for row in rows] == ["second", "first"]


def test_a_declared_source_from_a_download(tmp_path: Path):
    folder = downloaded(tmp_path, train=3, validation=2)
    data = load_problems(DataConfig(source="mmr1", path=str(folder), split="validation"))
    assert [problem.question for problem in data.problems] == ["validation 0", "validation 1"]
    assert data.golds["0"] == Gold("B")
    assert len(load_problems(DataConfig(source="mmr1", path=str(folder))).problems) == 3


def test_code_of_a_data_set_is_not_run(tmp_path: Path):
    (tmp_path / f"{tmp_path.name}.py").write_text("raise SystemExit('ran')")
    with pytest.raises(MmcorlError, match="cannot be read as a data set"):
        list(snapshot_rows(tmp_path, "train", ()))


def test_a_hub_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("huggingface_hub.hf_api.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(MmcorlError) as caught:
        list(hub_rows(Hub("owner/name", "train", ("main",)), "data.eval.path"))
    message = str(caught.value)
    assert message.startswith("owner/name on the hub (split train, config main) cannot be read (")
    assert message.endswith(
        "Where there is network, run `hf download owner/name --repo-type dataset --local-dir FOLDER`, "
        "then set data.eval.path=FOLDER"
    )
