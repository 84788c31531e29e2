"""`mmcorl-data`: prepare, look at and check problems before a run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mmcorl.cli.arguments import positive
from mmcorl.cli.command import run_command
from mmcorl.errors import MmcorlError

if TYPE_CHECKING:
    from mmcorl.data.leaks import Contents
    from mmcorl.data.reading import Pair
    from mmcorl.data.rows import Source
    from mmcorl.data.survey import PromptLength
    from mmcorl.graders import Grader

_COLUMNS = (
    *("id", "question", "images", "choices", "answer", "kind"),
    *("tests", "entry_point", "before", "setup", "program"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code: 0 done, 1 `check` found rows not to train on, 2 a mistake in the input."""
    options = _parser().parse_args(arguments)
    return run_command(lambda: options.command(options))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mmcorl-data",
        description="Prepare, look at and check problems before a run.",
        epilog="example: mmcorl-data prepare geometry3k data/geometry3k; "
        "`mmcorl-data COMMAND --help` has one for each command",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    scenes = commands.add_parser(
        "scenes",
        help="write built-in scenes as a prepared folder",
        epilog="example: mmcorl-data scenes data/scenes --size 1000 --tasks count,compare --choice-share 0.5",
    )
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

    prepare = commands.add_parser(
        "prepare",
        help="write the usable problems of a source as a prepared folder; goes on where it was stopped",
        epilog="example: mmcorl-data prepare open-r1 data/open_r1",
    )
    _add_source(prepare)
    prepare.add_argument("out", type=Path, metavar="OUT", help="folder to write; a finished one is refused")
    prepare.add_argument(
        "--workers", type=positive, default=2, metavar="N", help="threads that read and decode (default 2)"
    )
    prepare.add_argument("--limit", type=positive, metavar="N", help="take only the first so many rows")
    prepare.set_defaults(command=_prepare)

    show = commands.add_parser(
        "show",
        help="draw one problem with its image, options and gold answer as a PNG",
        epilog="example: mmcorl-data show data/open_r1 --row 12 --out row12.png",
    )
    _add_source(show)
    show.add_argument("--row", type=int, default=0, metavar="N", help="row to draw, from 0 (default 0)")
    show.add_argument("--out", type=Path, required=True, metavar="PNG", help="picture to write")
    show.set_defaults(command=_show)

    check = commands.add_parser(
        "check",
        help="read every row and decode every image; count what can be used and what not, by reason",
        epilog="example: mmcorl-data check data/open_r1 --model MODEL --against vlm4",
    )
    _add_source(check)
    check.add_argument(
        "--model",
        metavar="FOLDER",
        help="count prompt tokens as this model would; no weights are read",
    )
    check.add_argument(
        "--config",
        type=Path,
        metavar="YAML",
        help="with --model: take prompt and image settings from this run (default: the defaults of a run)",
    )
    check.add_argument(
        "--against",
        action="append",
        default=[],
        metavar="TEST",
        help="look for rows of a tested set: a data file or folder, or a benchmark or suite, as mathvista or "
        "mathvista=COPY; may be given several times",
    )
    check.set_defaults(command=_check)
    return parser


def _add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="a public source by name (open-r1, geometry3k, gsm8k, ...), or a prepared folder, JSONL, JSON or Parquet "
        "file, save_to_disk folder, folder of images with metadata.jsonl, or downloaded data set",
    )
    parser.add_argument(
        "--path", metavar="COPY", help="read a public source from this copy, not from the hub"
    )
    parser.add_argument("--split", metavar="NAME", help="split of a data set that has several")
    parser.add_argument(
        "--fetch-urls", action="store_true", help="fetch images that are given as http or https URLs"
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


def _prepare(options: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from mmcorl.data import preparing

    source = _source(options)
    columns = (SpinnerColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("rows", total=options.limit)

        def report(progress: preparing.Progress) -> None:
            dropped = sum(progress.dropped.values())
            bar.update(task, completed=progress.rows, description=f"rows, {dropped} dropped")

        header = preparing.prepare(source, options.out, options.workers, options.limit, report)
    print(f"wrote {header.count} problems to {options.out}")
    for reason, count in sorted(header.dropped.items(), key=lambda item: -item[1]):
        print(f"dropped {count}: {reason}")
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
            f"--row={options.row} is past the last row of {source.name}; rows are counted from 0"
        )
    page = draw_page(*read_row(row, options.row, source))
    try:
        page.save(options.out)
    except (OSError, ValueError) as error:
        raise MmcorlError(f"--out={options.out} cannot be written ({error}); name a .png file") from None
    print(f"drew row {options.row} of {source.name} to {options.out}")
    return 0


def _check(options: argparse.Namespace) -> int:
    from mmcorl.data.survey import survey
    from mmcorl.graders import Grader

    source = _source(options)
    lengths = _prompt_lengths(options)
    with Grader() as grader:
        tested = _contents(options.against, grader) if options.against else None
        counts = survey(source, grader, lengths, tested)
    print("\n".join(counts.lines()))
    return 1 if counts.refused or counts.leaks else 0


def _prompt_lengths(options: argparse.Namespace) -> PromptLength | None:
    if options.model is None:
        if options.config is not None:
            raise MmcorlError(f"--config={options.config} is for counting prompts; name their --model too")
        return None
    from mmcorl.agents.lengths import PromptLengths
    from mmcorl.config_loading import load_config

    if options.config is None:
        return PromptLengths(options.model)
    config = load_config(options.config)
    return PromptLengths(options.model, config.prompt, config.images)


def _contents(names: Sequence[str], grader: Grader) -> Contents:
    """What the tested sets hold: benchmarks and suites by name, with or without a copy, and data files."""
    from mmcorl.data.leaks import Contents
    from mmcorl.data.survey import decoded_images
    from mmcorl.evaluation.benchmarks import chosen, suites
    from mmcorl.evaluation.loading import load_benchmark

    contents = Contents()
    for given in names:
        name, _, copy = given.partition("=")
        if not copy and Path(name).exists():
            problems = [problem for problem, _ in _usable(Path(name))]
        else:
            declarations = chosen([name], []) if name in suites() else chosen([], [name])
            data = Path(copy) if copy else None
            loaded = (load_benchmark(declaration, grader, data) for declaration in declarations)
            problems = [item.problem for benchmark in loaded for item in benchmark.items]
        for problem in problems:
            contents.add(problem, decoded_images(problem))
    return contents


def _usable(path: Path) -> Iterator[Pair]:
    from mmcorl.data.bad_rows import BadRow
    from mmcorl.data.opening import open_rows
    from mmcorl.data.reading import read_rows
    from mmcorl.data.rows import Source

    source = Source(path, prefix="--against ")
    return (read for read in read_rows(open_rows(source), source) if not isinstance(read, BadRow))


def _source(options: argparse.Namespace) -> Source:
    from mmcorl.config import DataConfig
    from mmcorl.config_loading import validate
    from mmcorl.data.reading import source_of
    from mmcorl.data.sources import SOURCES, is_declared

    named = {column: getattr(options, f"column_{column}") for column in _COLUMNS}
    columns = {column: None if name == "null" else name for column, name in named.items() if name is not None}
    declared = is_declared(options.source) or options.path is not None
    if not declared and not Path(options.source).exists():
        raise MmcorlError(
            f"{options.source} does not exist, and it is no public source; those are {', '.join(SOURCES)}"
        )
    settings = {
        "source": options.source if declared else None,
        "path": options.path if declared else options.source,
        "split": options.split,
        "columns": columns,
        "fetch_urls": options.fetch_urls,
    }
    return source_of(validate(DataConfig, settings, "mmcorl-data"), prefix="--")


if __name__ == "__main__":
    sys.exit(main())
