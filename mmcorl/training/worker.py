"""One rank of one agent: what the launcher starts, `python -m mmcorl.training.worker RUN/config.yaml --agent NAME ...`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from mmcorl.config_loading import load_config
from mmcorl.errors import EXIT_PEER_LOST, EXIT_USER_ERROR, MmcorlError, PeerLost
from mmcorl.training.workers import end_with_launcher


def main(arguments: Sequence[str] | None = None) -> int:
    """Train; returns the exit code that the launcher reads."""
    parser = argparse.ArgumentParser(description="one rank of one agent, started by the launcher")
    parser.add_argument("config", type=Path)
    parser.add_argument("--agent", required=True)
    parser.add_argument("--store", required=True)
    parser.add_argument("--attempt", required=True)
    parser.add_argument("--resume-step", type=int)
    options = parser.parse_args(arguments)
    try:
        secret = end_with_launcher()
        config = load_config(options.config)

        from mmcorl.training.run import run_agent

        run_agent(
            config,
            options.agent,
            store=options.store,
            attempt=options.attempt,
            secret=secret,
            resume_step=options.resume_step,
        )
    except PeerLost as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        # A thread that waits in a store which comes to life now would abort the interpreter on its way out.
        os._exit(EXIT_PEER_LOST)
    except MmcorlError as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_USER_ERROR
    return 0


if __name__ == "__main__":
    sys.exit(main())
