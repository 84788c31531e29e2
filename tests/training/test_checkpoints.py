import hashlib
import json
import re
import signal
import subprocess
import sys

import pytest

from mmcorl.errors import MmcorlError
from mmcorl.training import checkpoints


def a_checkpoint(folder, step, text="weights"):
    def write(path):
        (path / "model.safetensors").write_text(text)
        (path / "training").mkdir()
        (path / "training" / "optimizer.safetensors").write_text("moments")

    return checkpoints.save(folder, step, write)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def keep_best(agent_dir, checkpoint, step, score):
    note = {"step": step, "score": score, "rule": "accuracy"}
    checkpoints.keep_best(agent_dir, checkpoint, note, card="# a model")


def test_save_gives_a_folder_named_by_its_step_and_replaces_one_of_the_same_step(tmp_path):
    path = a_checkpoint(tmp_path / "checkpoints", 30)
    assert path == tmp_path / "checkpoints" / "step-000030"
    assert a_checkpoint(tmp_path / "checkpoints", 30, "newer") == path
    assert (path / "model.safetensors").read_text() == "newer"
    assert names(tmp_path / "checkpoints") == ["step-000030"]


def test_a_write_that_fails_leaves_nothing_and_keeps_the_old_checkpoint(tmp_path):
    old = a_checkpoint(tmp_path, 10)

    def fail(path):
        (path / "model.safetensors").write_text("half")
        raise OSError("disk full")

    for step in (10, 20):
        with pytest.raises(
            MmcorlError, match=r"step-0000\d0 cannot be written \(disk full\); make room there"
        ):
            checkpoints.save(tmp_path, step, fail)
    assert names(tmp_path) == ["step-000010"]
    assert (old / "model.safetensors").read_text() == "weights"


def test_a_kill_in_the_middle_of_a_write_leaves_no_checkpoint_and_the_next_save_cleans_up(tmp_path):
    program = """
import os, pathlib, signal, sys
from mmcorl.training import checkpoints
def write(path):
    (path / "model.safetensors").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
checkpoints.save(pathlib.Path(sys.argv[1]), 20, write)
"""
    a_checkpoint(tmp_path, 10)
    killed = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(names(tmp_path)) == 2, "the kill came after the write had begun"
    assert checkpoints.steps(tmp_path) == [10]
    a_checkpoint(tmp_path, 20)
    assert names(tmp_path) == ["step-000010", "step-000020"]


def test_an_old_folder_that_had_stepped_aside_when_the_process_died_comes_back(tmp_path):
    a_checkpoint(tmp_path, 10).rename(tmp_path / ".step-000010.old")
    (tmp_path / ".step-000010.new").mkdir()
    checkpoints.drop_after(tmp_path, 10)
    assert names(tmp_path) == ["step-000010"]


def test_steps_are_numbers_in_order_and_ignore_other_files(tmp_path):
    assert checkpoints.steps(tmp_path / "none") == []
    for step in (1_000_000, 5, 20):
        a_checkpoint(tmp_path, step)
    (tmp_path / "step-notes").mkdir()
    (tmp_path / "step-000007").write_text("a file")
    assert checkpoints.steps(tmp_path) == [5, 20, 1_000_000]


def test_the_common_step_is_the_last_that_every_agent_has(tmp_path):
    ann, bob = tmp_path / "ann", tmp_path / "bob"
    for step in (10, 20, 30):
        a_checkpoint(ann, step)
    assert checkpoints.common_step([ann, bob]) is None
    for step in (10, 20):
        a_checkpoint(bob, step)
    assert checkpoints.common_step([ann, bob]) == 20
    checkpoints.drop_after(ann, 20)
    assert checkpoints.steps(ann) == [10, 20]


def test_pruning_keeps_the_newest_and_never_what_the_cohort_could_resume_from(tmp_path):
    ann, bob = tmp_path / "ann", tmp_path / "bob"
    for step in (10, 20, 30, 40, 50):
        a_checkpoint(ann, step)
    checkpoints.prune(ann, 2, [bob])
    assert checkpoints.steps(ann) == [10, 20, 30, 40, 50], "bob may still die after saving step 10"
    for step in (10, 20):
        a_checkpoint(bob, step)
    checkpoints.prune(ann, 2, [bob])
    assert checkpoints.steps(ann) == [20, 30, 40, 50]
    for step in (30, 40, 50):
        a_checkpoint(bob, step)
    for agent, peer in ((ann, bob), (bob, ann)):
        checkpoints.prune(agent, 2, [peer])
        assert checkpoints.steps(agent) == [40, 50]


def test_the_best_is_replaced_and_outlives_its_checkpoint(tmp_path):
    folder = tmp_path / "checkpoints"
    first, third = (a_checkpoint(folder, step, f"weights {step}") for step in (10, 30))
    assert checkpoints.read_best(tmp_path) is None and checkpoints.best_score(tmp_path) is None
    keep_best(tmp_path, first, 10, 0.5)
    assert checkpoints.best_score(tmp_path) == 0.5
    assert checkpoints.read_best(tmp_path) == {"step": 10, "score": 0.5, "rule": "accuracy"}
    keep_best(tmp_path, third, 30, 0.75)
    checkpoints.drop_after(folder, 0)
    assert names(tmp_path / "best") == ["README.md", "best.json", "manifest.json", "model.safetensors"]
    assert checkpoints.damage(tmp_path / "best") is None
    assert (tmp_path / "best" / "model.safetensors").read_text() == "weights 30"
    assert names(tmp_path) == ["best", "checkpoints"]


def test_the_best_shares_its_files_with_the_checkpoint(tmp_path):
    source = a_checkpoint(tmp_path / "checkpoints", 10)
    keep_best(tmp_path, source, 10, 0.5)
    assert (source / "model.safetensors").samefile(tmp_path / "best" / "model.safetensors")


def test_the_manifest_has_size_and_checksum_of_every_other_file(tmp_path):
    checkpoint = a_checkpoint(tmp_path, 10)
    assert json.loads((checkpoint / "manifest.json").read_text()) == {
        "files": {
            "model.safetensors": {"bytes": 7, "sha256": hashlib.sha256(b"weights").hexdigest()},
            "training/optimizer.safetensors": {"bytes": 7, "sha256": hashlib.sha256(b"moments").hexdigest()},
        }
    }


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("model.safetensors", b"weighs", r"model\.safetensors is damaged \(6 bytes in place of 7\)"),
        ("model.safetensors", b"heights", r"model\.safetensors is damaged \(its checksum is another\)"),
        ("training/optimizer.safetensors", b"momentS", r"training/optimizer\.safetensors is damaged \(its"),
        ("training/optimizer.safetensors", None, r"optimizer\.safetensors is damaged \(No such file"),
        ("manifest.json", b'{"files": {"model', r"manifest\.json is damaged"),
        ("manifest.json", b'{"files": {"a": {}}}', r"manifest\.json is damaged"),
        ("manifest.json", None, r"manifest\.json is damaged \(No such file or directory\)$"),
    ],
)
def test_what_is_damaged_is_named(tmp_path, file, content, reason):
    checkpoint = a_checkpoint(tmp_path, 10)
    assert checkpoints.damage(checkpoint) is None
    if content is None:
        (checkpoint / file).unlink()
    else:
        (checkpoint / file).write_bytes(content)
    assert re.search(reason, checkpoints.damage(checkpoint))


@pytest.mark.parametrize("content", ['{"step": 10, "sco', '{"step": 10}', "[]"])
def test_a_damaged_note_of_the_best_is_named(tmp_path, content):
    keep_best(tmp_path, a_checkpoint(tmp_path / "checkpoints", 10), 10, 0.5)
    (tmp_path / "best" / "best.json").write_text(content)
    with pytest.raises(MmcorlError, match=r"best\.json is damaged .*; remove \S*best,"):
        checkpoints.best_score(tmp_path)
