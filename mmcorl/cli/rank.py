"""`torchrun ... -m mmcorl.cli.rank CONFIG [key=value ...] --agent NAME --store URL`: one rank of one agent."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from mmcorl.cli.command import run_command
from mmcorl.cli.train import add_start, read_config
from mmcorl.errors import EXIT_PEER_LOST, PeerLost


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code: 0 done or stopped as asked, 1 failed, 2 a mistake, 3 a peer was lost."""
    parser = argparse.ArgumentParser(
        prog="mmcorl.cli.rank",
        description="One rank of one agent, started by torchrun, accelerate launch or srun: see docs/cluster.md.",
        epilog="example: torchrun --nproc-per-node 8 -m mmcorl.cli.rank run.yaml agents.qwen.ranks=8 --agent qwen "
        "--store tcp://host1:29500",
    )
    add_start(parser, agent_required=True)
    options = parser.parse_intermixed_args(arguments)
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    return run_command(lambda: _train(options))


def _train(options: argparse.Namespace) -> int:
    config = read_config(options)

    from mmcorl.training.preflight import require_ready
    from mmcorl.training.rank import train_as_rank

    require_ready(config, [options.agent])
    try:
        train_as_rank(
            config, options.agent, store=options.store, resume=options.resume, overwrite=options.overwrite
        )
    except PeerLost as error:
        print(f"error: {options.agent}: {error}", file=sys.stderr, flush=True)
        # A thread that waits in a store which comes to life now would abort the interpreter on its way out.
        os._exit(EXIT_PEER_LOST)
    return 0


if __name__ == "__main__":
    sys.exit(main())
