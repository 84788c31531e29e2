"""The launcher with the tests' worker as a program of its own: `lockstep_launch.py CONFIG [AGENT STORE]`."""

import sys
from pathlib import Path

from mmcorl.config_loading import load_config
from mmcorl.training.launcher import launch

if __name__ == "__main__":
    path, *alone = sys.argv[1:]
    options = {"agents": [alone[0]], "store": alone[1]} if alone else {}
    sys.exit(launch(load_config(Path(path)), worker_module="lockstep_worker", **options))
