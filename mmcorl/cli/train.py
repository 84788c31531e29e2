"""`mmcorl-train CONFIG [key=value ...]`: train a cohort, or one agent of it, and show how it goes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from mmcorl.errors import MmcorlError, PeerLost
from mmcorl.training.workers import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_PEER_LOST, EXIT_USER_ERROR


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code: 0 done, 1 an agent failed, 2 a mistake in the input, 130 interrupted."""
    options = _parser().parse_intermixed_args(arguments)
    os.environ.setdefault(
        "TORCH_CPP_LOG_LEVEL", "ERROR"
    )  # stores print pages of C++ frames with each warning
    try:
        return _work(options) if options.attempt else _launch(options)
    except PeerLost as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        if options.attempt:
            # A thread that waits in a store which comes to life now would abort the interpreter on its way out.
            os._exit(EXIT_PEER_LOST)
        return EXIT_FAILED
    except MmcorlError as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_USER_ERROR
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mmcorl-train", description="Train a cohort of models by each other's votes."
    )
    parser.add_argument("config", type=Path, metavar="CONFIG", help="YAML file of the run")
    parser.add_argument(
        "overrides", nargs="*", metavar="key=value", help="settings that replace those of the file"
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
    parser.add_argument(
        "--attempt", help=argparse.SUPPRESS
    )  # these two are the launcher's words to its workers
    parser.add_argument("--resume-step", type=int, help=argparse.SUPPRESS)
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


def _work(options: argparse.Namespace) -> int:
    """One rank of one agent, started by the launcher with the resolved configuration."""
    from mmcorl.config_loading import load_config
    from mmcorl.training.workers import end_with_launcher

    end_with_launcher()
    config = load_config(options.config)

    from mmcorl.training.run import run_agent

    run_agent(
        config,
        options.agent,
        store=options.store,
        attempt=options.attempt,
        resume_step=options.resume_step,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
