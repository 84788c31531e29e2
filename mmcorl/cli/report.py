"""`mmcorl-report RUN [RUN ...]`: what runs did, on one page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mmcorl.cli.arguments import port
from mmcorl.cli.command import run_command


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code: 0 done, 2 a mistake in the input, 130 interrupted."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.watch and (options.output or options.format != "html"):
        parser.error("--watch writes no file; leave --output and --format out")
    return run_command(lambda: _watch(options) if options.watch else _write(options))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mmcorl-report",
        description="Write what runs did on one self-contained page: method, results, curves, alarms, samples.",
        epilog="example: mmcorl-report runs/pair",
    )
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN", help="folder of a run, or one that holds several"
    )
    parser.add_argument(
        "--format",
        choices=("html", "md", "png"),
        default="html",
        help="a page (html, the default), its text (md) or its curves (png)",
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="default: report.html, .md or .png in the first RUN"
    )
    parser.add_argument(
        "--watch",
        action="store_true",
        help="show the page in a browser on this machine, renewed while runs go on",
    )
    parser.add_argument("--port", type=port, default=0, help="of --watch; default: any free one")
    return parser


def _write(options: argparse.Namespace) -> int:
    from mmcorl.analysis.report.page import as_html, as_markdown, as_png
    from mmcorl.analysis.report.reading import read_report
    from mmcorl.files import replacing, writing

    report = read_report(options.runs, with_samples=options.format == "html")
    match options.format:
        case "html":
            content = as_html(report).encode()
        case "md":
            content = as_markdown(report).encode()
        case _:
            content = as_png(report)
    path = options.output or options.runs[0] / f"report.{options.format}"
    with writing(path, setting="--output"), replacing(path) as temporary:
        temporary.write_bytes(content)
    print(f"written: {path}")
    return 0


def _watch(options: argparse.Namespace) -> int:
    from mmcorl.analysis.report.serve import serve

    serve(options.runs, options.port, say=lambda text: print(text, flush=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
