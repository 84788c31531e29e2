"""`mmcorl-train CONFIG [key=value ...]`: train a cohort, or one agent of it, and show how it goes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from mmcorl.cli.command import run_command
from mmcorl.errors import MmcorlError


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code: 0 done, 1 an agent failed, 2 a mistake in the input, 130 interrupted."""
    options = _parser().parse_intermixed_args(arguments)
    # torch's stores print pages of C++ frames with each warning
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    return run_command(lambda: _launch(options))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mmcorl-train",
        description="Train a cohort of models by each other's votes.",
        epilog="example: mmcorl-train configs/quickstart.yaml run.steps=100 run.seed=1",
    )
    parser.add_argument("config", type=Path, metavar="CONFIG", help="YAML file of the run")
    parser.add_argument(
        "overrides",
        nargs="*",
        default=[],
        metavar="key=value",
        help="settings that replace those of the file",
    )
    parser.add_argument(
        "--print-config", action="store_true", help="print the resolved configuration and leave"
    )
    start = parser.add_mutually_exclusive_group()
    start.add_argument(
        "--resume", action="store_true", help="continue from the last step that all agents saved"
    )
    start.add_argument("--overwrite", action="store_true", help="replace a run of the same name")
    parser.add_argument(
        "--agent", metavar="NAME", help="train this agent alone; start the others likewise elsewhere"
    )
    parser.add_argument(
        "--store", metavar="URL", help="tcp://host:port of the machine of the cohort's first agent"
    )
    return parser


def _launch(options: argparse.Namespace) -> int:
    from mmcorl.config_loading import load_config, to_yaml

    config = load_config(options.config, options.overrides)
    if options.print_config:
        print(to_yaml(config), end="")
        return 0
    if options.agent is not None and options.agent not in config.agents:
        raise MmcorlError(f"--agent {options.agent} is none of the run's agents: {', '.join(config.agents)}")

    from mmcorl.training.launcher import launch
    from mmcorl.training.preflight import require_ready

    agents = [options.agent] if options.agent else None
    require_ready(config, agents)
    return launch(
        config, agents=agents, store=options.store, resume=options.resume, overwrite=options.overwrite
    )


if __name__ == "__main__":
    sys.exit(main())
