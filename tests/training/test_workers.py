import time
from pathlib import Path

import psutil

from mmcorl.training.workers import LocalProcess

SECRET = bytes(range(32))
TELL = """
import sys, time
from mmcorl.training.workers import end_with_launcher
print(end_with_launcher() == bytes(range(32)), flush=True)
time.sleep(60)
"""


def test_a_worker_gets_the_secret_where_nobody_else_can_read_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    log = tmp_path / "log"
    log.write_text("earlier\n")
    process = LocalProcess(["-c", TELL], {"RANK": "0"}, log, SECRET)
    try:
        assert process.log_start == len("earlier\n")
        while len(log.read_text().splitlines()) < 2 and process.poll() is None:
            time.sleep(0.05)
        assert log.read_text() == "earlier\nTrue\n"
        [child] = [c for c in psutil.Process().children() if TELL in c.cmdline()]
        seen = " ".join([*child.cmdline(), *child.environ().values()])
        assert SECRET.hex() not in seen and child.environ()["RANK"] == "0"
    finally:
        process.signal_group(9)
        process.close()
    assert process.poll() == -9


def test_a_worker_that_ends_at_once_is_no_error(tmp_path):
    process = LocalProcess(["-c", "raise SystemExit(4)"], {}, tmp_path / "log", SECRET)
    process.close()
    assert process.poll() == 4
