"""A worker for the launcher's tests: keeps the command-line contract of `mmcorl.training.worker`, and trains one number.

Agents meet after every step, here in files, so that a worker starts without torch. How it misbehaves is told by the name of its model:
`crash@3` raises in step 3, `mistake@3` ends with a message to the user, `slow` takes its time,
`deaf` does not listen when asked to stop and hangs in its second step,
`nervous` gives its peers half a second, `late@3` crashes in step 3 but takes a second over it.
"""

import argparse
import json
import signal
import socket
import sys
import time
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from mmcorl.config_loading import load_config
from mmcorl.errors import EXIT_PEER_LOST, EXIT_USER_ERROR
from mmcorl.files import write_whole
from mmcorl.training import checkpoints
from mmcorl.training.folders import RunFolder
from mmcorl.training.metrics import MetricsLog
from mmcorl.training.workers import end_with_launcher


def save_weight(weight, path):
    (path / "weight.json").write_text(json.dumps(weight))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("config", type=Path)
    parser.add_argument("--agent")
    parser.add_argument("--store")
    parser.add_argument("--attempt")
    parser.add_argument("--resume-step", type=int)
    options = parser.parse_args()
    end_with_launcher()
    config = load_config(options.config)
    folder = RunFolder.of(config)
    habit, _, when = config.agents[options.agent].model.partition("@")
    stop_asked = []
    signal.signal(signal.SIGTERM, signal.SIG_IGN if habit == "deaf" else lambda *_: stop_asked.append(True))
    print(f"{options.agent} begins")

    place = urlsplit(options.store)
    socket.create_connection((place.hostname, place.port), timeout=10).close()  # somebody hosts it
    meeting = folder.path / "meeting" / options.attempt
    meeting.mkdir(parents=True, exist_ok=True)
    home = folder.checkpoints(options.agent)
    start = options.resume_step or 0
    weight = json.loads((checkpoints.step_folder(home, start) / "weight.json").read_text()) if start else 0
    log = MetricsLog(folder.metrics(options.agent), options.resume_step)
    if not start:
        log.write("eval", 0, accuracy=0.5, samples=0)
    for step in range(start + 1, config.run.steps + 1):
        if when == str(step) and habit == "crash":
            raise RuntimeError("the weights ran away")
        if when == str(step) and habit == "late":
            time.sleep(1.5)
            raise RuntimeError("out of numbers")
        if when == str(step) and habit == "mistake":
            print("error: the picture of problem p7 is broken", file=sys.stderr)
            return EXIT_USER_ERROR
        time.sleep({"slow": 0.1, "deaf": 3600.0}.get(habit, 0.0) if step > 1 else 0.0)
        weight = (weight * 31 + step) % 1009
        write_whole(meeting / f"{step}-{options.agent}", str(len(stop_asked)))
        notes = [meeting / f"{step}-{name}" for name in config.agents]
        deadline = time.monotonic() + (0.5 if habit == "nervous" else 60.0)
        while not all(note.exists() for note in notes):
            if time.monotonic() > deadline:
                print("error: lost a peer", file=sys.stderr)
                return EXIT_PEER_LOST
            time.sleep(0.005)
        log.write("train", step, reward=weight / 1009, seconds_update=time.monotonic())
        stop = any(int(note.read_text()) for note in notes)
        if stop or step % config.checkpoints.every == 0 or step == config.run.steps:
            checkpoints.save(home, step, partial(save_weight, weight))
        if stop:
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
