"""`mmcorl-eval`: run models on benchmarks, grade stored completions again, compare two results."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mmcorl.cli import eval_compare, eval_rescore
from mmcorl.cli.arguments import named, positive
from mmcorl.cli.command import run_command
from mmcorl.cli.console import wide_console
from mmcorl.errors import MmcorlError

if TYPE_CHECKING:
    from mmcorl.evaluation.declaration import Declaration
    from mmcorl.evaluation.settings import Asked

_EXAMPLES = """examples:
  mmcorl-eval --model Qwen/Qwen2.5-VL-3B-Instruct --suite vlm4 --out results/qwen
  mmcorl-eval --model runs/pair/agents/qwen/best --config runs/pair/config.yaml --benchmarks scenes --out results/pair
  mmcorl-eval --model A --model B --benchmarks gsm8k --samples 4 --temperature 0.6 --vote --out results/ensemble
  mmcorl-eval rescore results/qwen
  mmcorl-eval compare results/qwen results/pair
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code: 0 done, 2 a mistake in the input, 130 interrupted."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments and arguments[0] in ("rescore", "compare"):
        options = _commands().parse_args(arguments)
        return run_command(lambda: options.command(options))
    options = _parser().parse_intermixed_args(arguments)
    return run_command(lambda: _evaluate(options))


def _commands() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mmcorl-eval")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for module in (eval_rescore, eval_compare):
        module.add_parser(subparsers)
    return parser


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mmcorl-eval",
        description="Run models on benchmarks with the prompt, image sizes, parser and grader of training. "
        "`mmcorl-eval rescore` and `mmcorl-eval compare` work on results.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "overrides", nargs="*", default=[], metavar="key=value",
        help="settings as in training: prompt.*, images.*, code.*, dtype, attention, max_prompt_tokens, batch_tokens",
    )  # fmt: skip
    what = parser.add_argument_group("what is run")
    what.add_argument(
        "--model", action="append", default=[], metavar="[NAME=]MODEL",
        help="a folder or hub id; give several and each answers every problem",
    )  # fmt: skip
    what.add_argument(
        "--suite", action="append", default=[], metavar="NAME", help="benchmarks that belong together"
    )
    what.add_argument(
        "--benchmarks", action="append", default=[], metavar="A,B", help="single ones, or YAML files of your own"
    )  # fmt: skip
    what.add_argument("--list", action="store_true", help="print the suites and benchmarks, and leave")
    what.add_argument("--out", type=Path, metavar="DIR", help="folder of the results; run again to go on")
    what.add_argument(
        "--data", action="append", default=[], metavar="[BENCHMARK=]PATH", help="a local copy in the original schema"
    )  # fmt: skip
    what.add_argument(
        "--limit", type=positive, metavar="N", help="only the first N problems of each benchmark"
    )
    what.add_argument(
        "--config", type=Path, metavar="FILE", help="take `prompt` and `images` of a training run"
    )
    how = parser.add_argument_group(
        "how it answers (greedily, unless the benchmark is an average over samples)"
    )
    how.add_argument(
        "--samples", type=positive, metavar="N", help="completions of each problem by each model"
    )
    how.add_argument("--temperature", type=float, metavar="T", help="of several samples; 0 is greedy")
    how.add_argument("--top-p", type=float, metavar="P", help="share of the tokens drawn from (default 1)")
    how.add_argument("--max-tokens", type=positive, default=3072, metavar="N", help="longest completion (default 3072)")  # fmt: skip
    how.add_argument("--seed", type=int, default=0, metavar="S", help="of the sampling noise (default 0)")
    how.add_argument("--batch", type=positive, default=64, metavar="N", help="problems that are answered and written together (default 64)")  # fmt: skip
    how.add_argument(
        "--vote",
        action="store_true",
        help="elect one answer a problem (maj@k) and refuse a run with a single answer to vote on",
    )
    return parser


def _evaluate(options: argparse.Namespace) -> int:
    from mmcorl.evaluation.benchmarks import chosen

    if options.list:
        return _list()
    if not options.model or options.out is None:
        raise MmcorlError("--model and --out are needed, as in mmcorl-eval --model M --suite vlm4 --out DIR")
    declarations = chosen(options.suite, [n for names in options.benchmarks for n in names.split(",") if n])
    if not declarations:
        raise MmcorlError("name a --suite or --benchmarks; `mmcorl-eval --list` shows them")
    models = named(options.model, "--model")
    data = _local_copies(options.data, declarations)
    asked = _asked(options)
    if options.vote and len(models) * min(asked.sampling(d).samples for d in declarations) < 2:
        raise MmcorlError("--vote needs several answers to a problem; give --samples or several --model")

    from mmcorl.evaluation.evaluate import evaluate
    from mmcorl.evaluation.tables import as_table

    summary = evaluate(models, declarations, asked, options.out, data)
    wide_console().print(as_table(summary, votes_only=options.vote))
    print(f"written: {options.out}")
    return 0


def _asked(options: argparse.Namespace) -> Asked:
    from mmcorl.evaluation.settings import Asked, read_settings

    if options.temperature is not None and not 0 <= options.temperature < math.inf:
        raise MmcorlError(f"--temperature={options.temperature} is no number from 0 up; 0 is greedy")
    if options.top_p is not None and not 0 < options.top_p <= 1:
        raise MmcorlError(f"--top-p={options.top_p} is not above 0 and at most 1")
    return Asked(
        settings=read_settings(options.config, options.overrides),
        samples=options.samples,
        temperature=options.temperature,
        top_p=options.top_p,
        max_tokens=options.max_tokens,
        seed=options.seed,
        limit=options.limit,
        batch=options.batch,
        own_instruction=any(o.startswith("prompt.instruction=") for o in options.overrides),
    )


def _list() -> int:
    from mmcorl.evaluation.benchmarks import benchmark_names, load_declaration, suites

    for suite, members in suites().items():
        print(f"{suite + ':':12} {', '.join(members)}")
    print()
    for declaration in map(load_declaration, benchmark_names()):
        print(f"{declaration.name:16} {declaration.title}")
    return 0


def _local_copies(given: Sequence[str], declarations: Sequence[Declaration]) -> Mapping[str, Path]:
    """Benchmark -> local copy. A path alone is the copy of the only benchmark."""
    names = [declaration.name for declaration in declarations]
    copies: dict[str, Path] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not equals:
            if len(names) > 1:
                raise MmcorlError(f"--data {text}: of which benchmark? Write --data {names[0]}={text}")
            name, path = names[0], text
        if name not in names:
            raise MmcorlError(f"--data {text}: {name} is not run; the benchmarks are {', '.join(names)}")
        copies[name] = Path(path)
    return copies


if __name__ == "__main__":
    sys.exit(main())
