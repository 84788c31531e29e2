"""`mmcorl-train CONFIG [key=value ...]`: train a cohort, or one agent of it, and show how it goes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mmcorl.cli.command import run_command
from mmcorl.errors import EXIT_FAILED, MmcorlError

if TYPE_CHECKING:
    from mmcorl.config import Config


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
    add_start(parser)
    parser.add_argument(
        "--print-config", action="store_true", help="print the resolved configuration and leave"
    )
    parser.add_argument(
        "--plan",
        action="store_true",
        help="print what each process will hold in memory, from the models' configurations alone, and leave",
    )
    parser.add_argument(
        "--dry-run",
        nargs="?",
        type=int,
        const=64,
        metavar="N",
        help="answer the first N problems (64) without learning or writing anything; print what is asked, answered and "
        "rewarded, the memory plan, and what to look into",
    )
    parser.add_argument(
        "--gpu-gib",
        type=float,
        metavar="GIB",
        help="with --plan and --dry-run: memory of a GPU, in place of that of this machine",
    )
    parser.add_argument(
        "--placement",
        choices=["here", "ray"],
        default="here",
        help="where agents run: on this machine, or on those of a Ray cluster (docs/cluster.md)",
    )
    return parser


def add_start(parser: argparse.ArgumentParser, agent_required: bool = False) -> None:
    """The options of every command that starts agents."""
    parser.add_argument("config", type=Path, metavar="CONFIG", help="YAML file of the run")
    parser.add_argument(
        "overrides",
        nargs="*",
        default=[],
        metavar="key=value",
        help="settings that replace those of the file",
    )
    start = parser.add_mutually_exclusive_group()
    start.add_argument(
        "--resume", action="store_true", help="continue from the last step that all agents saved"
    )
    start.add_argument("--overwrite", action="store_true", help="replace a run of the same name")
    parser.add_argument(
        "--agent",
        metavar="NAME",
        required=agent_required,
        help="train this agent alone; start the others likewise elsewhere",
    )
    parser.add_argument(
        "--store", metavar="URL", help="tcp://host:port of the machine of the cohort's first agent"
    )


def read_config(options: argparse.Namespace) -> Config:
    """The configuration that `add_start` has options for."""
    from mmcorl.config_loading import load_config

    config = load_config(options.config, options.overrides)
    if options.agent is not None and options.agent not in config.agents:
        raise MmcorlError(f"--agent {options.agent} is none of the run's agents: {', '.join(config.agents)}")
    return config


def _launch(options: argparse.Namespace) -> int:
    from mmcorl.config_loading import to_yaml

    config = read_config(options)
    if options.print_config:
        print(to_yaml(config), end="")
        return 0
    if options.plan:
        return _plan(config, options)

    from mmcorl.training.preflight import require_ready

    agents = [options.agent] if options.agent else None
    require_ready(config, agents)
    if options.dry_run is not None:
        return _dry_run(config, options)

    from mmcorl.training.launcher import launch

    return launch(
        config,
        agents=agents,
        store=options.store,
        resume=options.resume,
        overwrite=options.overwrite,
        placement=options.placement,
    )


def _dry_run(config: Config, options: argparse.Namespace) -> int:
    """Try the first problems of the run, and plan its memory; 0 where that could be done, whatever it shows."""
    if options.dry_run < 1:
        raise MmcorlError(f"--dry-run {options.dry_run} is no number of problems; give 1 or more")

    from mmcorl.cli.console import wide_console
    from mmcorl.training.dry_run import rehearse
    from mmcorl.training.dry_run_page import print_dry_run

    found = rehearse(config, options.dry_run, lambda line: print(line, file=sys.stderr))
    _plan(config, options)
    print_dry_run(config, found, wide_console())
    return 0


def _plan(config: Config, options: argparse.Namespace) -> int:
    """Show what the run will hold; 1 where it does not fit."""
    from transformers.utils.logging import set_verbosity_error

    from mmcorl.cli.console import wide_console
    from mmcorl.planning.table import device_here, print_plan
    from mmcorl.training.preflight import require_model

    set_verbosity_error()
    names = [options.agent] if options.agent else list(config.agents)
    for name, agent in config.agents.items():
        if name in names and agent.endpoint is None:
            require_model(agent.model, f"agents.{name}.model")
    fits = print_plan(config, names, device_here(options.gpu_gib), wide_console())
    return 0 if fits else EXIT_FAILED


if __name__ == "__main__":
    sys.exit(main())
