"""What a launch says of its versions and devices."""

from __future__ import annotations

import json
import socket
import subprocess

import torch
import transformers

from mmcorl.training import environment as module
from mmcorl.training.environment import environment


def test_versions_and_devices_and_nothing_of_whose_machine_it_is():
    found = environment()
    assert found["torch"] == torch.__version__ and found["transformers"] == transformers.__version__
    assert found["python"].count(".") == 2 and found["devices"] and "mmcorl" in found
    assert socket.gethostname() not in json.dumps(found)


def test_the_commit_is_that_of_a_checkout_and_tells_changes(tmp_path, monkeypatch):
    package = tmp_path / "mmcorl" / "training"
    package.mkdir(parents=True)
    (package / "environment.py").write_text("x")
    monkeypatch.setattr(module, "__file__", str(package / "environment.py"))
    assert "commit" not in environment()

    def git(*arguments):
        who = ["-c", "user.name=n", "-c", "user.email=e"]
        done = subprocess.run(
            ["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "one")
    head = git("rev-parse", "--short", "HEAD")
    assert environment()["commit"] == head
    (package / "environment.py").write_text("y")
    assert environment()["commit"] == f"{head}+"
