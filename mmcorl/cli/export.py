"""`mmcorl-export RUN --agent NAME --to FOLDER`: a trained agent as a folder in the hub's format."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mmcorl.cli.command import run_command


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code: 0 done, 2 a mistake in the input, 130 interrupted."""
    options = _parser().parse_args(arguments)
    return run_command(lambda: _export(options))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mmcorl-export",
        description="Write a checkpoint of an agent as a folder that from_pretrained and mmcorl-eval read, with a model "
        "card of its cohort, method, data and results.",
        epilog="example: mmcorl-export runs/quickstart/co_rl --agent qwen --to models/qwen-co-rl --dtype bfloat16",
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a run")
    parser.add_argument("--agent", required=True, metavar="NAME", help="the agent to export")
    parser.add_argument("--to", required=True, type=Path, metavar="FOLDER", help="a new folder")
    parser.add_argument(
        "--step", type=_step, default=None, metavar="N", help="step of a checkpoint, or best (the default)"
    )
    parser.add_argument(
        "--dtype",
        choices=("float32", "bfloat16", "float16"),
        help="type of the weights; default: as in the checkpoint",
    )
    parser.add_argument(
        "--adapter", action="store_true", help="export LoRA adapters alone, not added to their model"
    )
    parser.add_argument(
        "--evaluation",
        action="append",
        default=[],
        type=Path,
        metavar="FOLDER",
        help="results of mmcorl-eval that the card lists; may be given again",
    )
    parser.add_argument("--push", metavar="REPO_ID", help="upload the folder to this repository of the hub")
    return parser


def _step(text: str) -> int | None:
    if text == "best":
        return None
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is neither a step nor best") from None


def _export(options: argparse.Namespace) -> int:
    from mmcorl.training import exporting

    source = exporting.export(
        options.run,
        options.agent,
        options.to,
        step=options.step,
        adapter=options.adapter,
        dtype=options.dtype,
        evaluations=options.evaluation,
    )
    print(f"{options.to}: {options.agent} after step {source.step}")
    if options.push:
        from huggingface_hub import HfApi

        exporting.push(options.to, options.push, HfApi())
        print(f"uploaded to {options.push}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
