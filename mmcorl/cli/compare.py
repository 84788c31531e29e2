"""`mmcorl-compare FILE [key=value ...]`: train every variant of a comparison, then print, save and draw how they did."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from mmcorl.cli.command import run_command
from mmcorl.cli.console import wide_console


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code: 0 done, 1 a run failed, 2 a mistake in the input, 130 interrupted."""
    options = _parser().parse_intermixed_args(arguments)
    # torch's stores print pages of C++ frames with each warning
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    return run_command(lambda: _compare(options))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mmcorl-compare",
        description="Train variants of a run and compare them.",
        epilog="example: mmcorl-compare configs/compare_quickstart.yaml run.steps=20",
    )
    parser.add_argument(
        "comparison", type=Path, metavar="FILE", help="YAML file with a base and its variants"
    )
    parser.add_argument(
        "overrides", nargs="*", default=[], metavar="key=value", help="settings that hold for every variant"
    )
    start = parser.add_mutually_exclusive_group()
    start.add_argument(
        "--resume", action="store_true", help="keep finished variants and continue the interrupted one"
    )
    start.add_argument("--overwrite", action="store_true", help="replace earlier runs of this comparison")
    return parser


def _compare(options: argparse.Namespace) -> int:
    from mmcorl.files import write_whole, writing
    from mmcorl.training.checkpoints import common_step
    from mmcorl.training.comparison import as_table, load_comparison, summarize
    from mmcorl.training.folders import RunFolder
    from mmcorl.training.launcher import launch
    from mmcorl.training.preflight import require_ready
    from mmcorl.training.starting import require_new

    variants = load_comparison(options.comparison, options.overrides)
    for variant in variants:
        require_ready(variant.config)
        if not options.resume and not options.overwrite:
            require_new(variant.config, list(variant.config.agents))

    home = RunFolder.of(variants[0].config).path.parent
    summary, curves = home / "summary.json", home / "curves.png"
    for number, variant in enumerate(variants, start=1):
        print(f"{variant.title} ({number} of {len(variants)})", flush=True)
        folder = RunFolder.of(variant.config)
        saved = common_step(folder.checkpoints(name) for name in variant.config.agents)
        go_on = options.resume and saved is not None
        code = launch(variant.config, resume=go_on, overwrite=options.resume or options.overwrite)
        if code != 0:
            return code
        with writing(summary):
            write_whole(summary, json.dumps(summarize(variants[:number]), indent=2) + "\n")

    from mmcorl.training.curves import draw_curves

    with writing(curves):
        draw_curves(variants, curves)
    wide_console().print(as_table(variants))
    print(f"written: {summary}, {curves}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
