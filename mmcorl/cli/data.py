"""`mmcorl-data`: prepare, look at and check problems before a run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mmcorl.cli.command import run_command
from mmcorl.errors import MmcorlError

if TYPE_CHECKING:
    from mmcorl.data.rows import Source

_COLUMNS = ("id", "question", "images", "choices", "answer", "kind")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code: 0 done, 1 `check` refused rows, 2 a mistake in the input."""
    options = _parser().parse_args(arguments)
    return run_command(lambda: options.command(options))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mmcorl-data", description="Prepare, look at and check problems before a run."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    scenes = commands.add_parser("scenes", help="write built-in scenes as a prepared folder")
    scenes.add_argument("out", type=Path, metavar="OUT", help="folder to write; it must not exist yet")
    scenes.add_argument("--size", type=int, default=720, metavar="N", help="number of problems (default 720)")
    scenes.add_argument(
        "--seed", type=int, default=0, metavar="S", help="seed of images and questions (default 0)"
    )
    scenes.add_argument(
        "--tasks",
        default="count",
        metavar="A,B",
        help="count, compare, add, chart; they take turns (default count)",
    )
    scenes.add_argument(
        "--choice-share",
        type=float,
        default=0.0,
        metavar="P",
        help="share asked as multiple choice (default 0)",
    )
    scenes.add_argument(
        "--image-size", type=int, default=84, metavar="PX", help="width and height (default 84)"
    )
    scenes.set_defaults(command=_scenes)

    show = commands.add_parser(
        "show", help="draw one problem with its image, options and gold answer as a PNG"
    )
    _add_source(show)
    show.add_argument("--row", type=int, default=0, metavar="N", help="row to draw, from 0 (default 0)")
    show.add_argument("--out", type=Path, required=True, metavar="PNG", help="picture to write")
    show.set_defaults(command=_show)

    check = commands.add_parser(
        "check", help="read every row and decode every image; count what can be used and what not, by reason"
    )
    _add_source(check)
    check.set_defaults(command=_check)
    return parser


def _add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "path", metavar="PATH", help="prepared folder, JSONL, JSON or Parquet file, or save_to_disk folder"
    )
    for column in _COLUMNS:
        parser.add_argument(
            f"--columns.{column}",
            dest=f"column_{column}",
            metavar="NAME",
            help=f"column of the {column}; null for none",
        )


def _scenes(options: argparse.Namespace) -> int:
    from mmcorl.config import ScenesConfig
    from mmcorl.config_loading import validate
    from mmcorl.data.scenes import scenes
    from mmcorl.data.storage import write_problems

    settings = {
        "tasks": options.tasks.split(","),
        "size": options.size,
        "seed": options.seed,
        "choice_share": options.choice_share,
        "image_size": options.image_size,
    }
    config = validate(ScenesConfig, settings, "mmcorl-data scenes")
    header = write_problems(scenes(config), options.out, source=f"scenes {config.model_dump_json()}")
    print(f"wrote {header.count} problems to {options.out}")
    return 0


def _show(options: argparse.Namespace) -> int:
    from itertools import islice

    from mmcorl.data.opening import open_rows
    from mmcorl.data.page import draw_page
    from mmcorl.data.rows import read_row

    source = _source(options)
    if options.row < 0:
        raise MmcorlError(f"--row={options.row} is negative; rows are counted from 0")
    row = next(islice(open_rows(source), options.row, None), None)
    if row is None:
        raise MmcorlError(
            f"--row={options.row} is past the last row of {source.path}; rows are counted from 0"
        )
    page = draw_page(*read_row(row, options.row, source))
    try:
        page.save(options.out)
    except (OSError, ValueError) as error:
        raise MmcorlError(f"--out={options.out} cannot be written ({error}); name a .png file") from None
    print(f"drew row {options.row} of {source.path} to {options.out}")
    return 0


def _check(options: argparse.Namespace) -> int:
    from mmcorl.data.survey import survey

    counts = survey(_source(options))
    print("\n".join(counts.lines()))
    return 1 if counts.refused else 0


def _source(options: argparse.Namespace) -> Source:
    from mmcorl.config import ColumnsConfig
    from mmcorl.config_loading import validate
    from mmcorl.data.rows import Source

    named = {column: getattr(options, f"column_{column}") for column in _COLUMNS}
    columns = {column: None if name == "null" else name for column, name in named.items() if name is not None}
    return Source(Path(options.path), validate(ColumnsConfig, columns, "--columns"), prefix="--")


if __name__ == "__main__":
    sys.exit(main())
