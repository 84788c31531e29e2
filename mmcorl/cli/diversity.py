"""`mmcorl-diversity`: how differently models err on a set of problems, and which of them would make the best partner."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmcorl.cli.arguments import named, positive
from mmcorl.cli.command import run_command
from mmcorl.cli.console import wide_console
from mmcorl.errors import MmcorlError

if TYPE_CHECKING:
    from rich.table import Table

    from mmcorl.analysis.diversity import Estimate, Pair
    from mmcorl.analysis.partners import Recommendation

_LEGEND = """
kappa  agreement of two models in being right or wrong, beyond chance; lower is more different
c      share of problems that exactly one of them gets right
w      share of problems to which both give the same wrong answer
u      share of problems that at least one gets right
"""
_EPILOG = f"""{_LEGEND}
examples:
  mmcorl-diversity --model Qwen/Qwen2.5-3B --model microsoft/Phi-3.5-mini-instruct --data math.jsonl --out diversity
  mmcorl-diversity --config configs/quickstart.yaml --model qwen=data_tools/tiny_agents/qwen2_5_vl \\
      --model internvl=data_tools/tiny_agents/internvl --data scenes --samples 8 --anchor qwen --out diversity
  mmcorl-diversity --completions a.jsonl --completions b.jsonl --out diversity
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code: 0 done, 2 a mistake in the input, 130 interrupted."""
    options = _parser().parse_intermixed_args(arguments)
    return run_command(lambda: _measure(options))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mmcorl-diversity",
        description="Sample several models on the same problems once, measure how differently each pair errs, "
        "and recommend a partner.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "overrides", nargs="*", default=[], metavar="key=value",
        help="settings as in training: prompt.*, images.*, data.*, dtype, attention, max_prompt_tokens, batch_tokens",
    )  # fmt: skip
    what = parser.add_argument_group("what is compared")
    what.add_argument(
        "--model",
        action="append",
        default=[],
        metavar="[NAME=]MODEL",
        help="a folder or hub id; give several",
    )
    what.add_argument("--data", metavar="PATH", help="labelled problems, or `scenes` for the built-in ones")
    what.add_argument("--limit", type=positive, metavar="N", help="only the first N problems")
    what.add_argument(
        "--completions", action="append", default=[], metavar="[NAME=]FILE",
        help="instead of a model: its stored completions, JSON lines with `problem`, `gold` and `completions`",
    )  # fmt: skip
    what.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="folder of the results; run again to go on"
    )
    what.add_argument(
        "--anchor", metavar="NAME", help="the model that wants a partner (default: each in turn)"
    )
    how = parser.add_argument_group("how models answer")
    how.add_argument(
        "--config", type=Path, metavar="FILE", help="take `prompt`, `images` and `rollouts` of a training run"
    )
    how.add_argument(
        "--samples", type=positive, default=4, metavar="N", help="completions of each problem (default 4)"
    )
    how.add_argument("--temperature", type=float, metavar="T", help="default: as in training, 1")
    how.add_argument(
        "--max-tokens", type=positive, metavar="N", help="longest completion (default: as in training, 1024)"
    )
    how.add_argument("--seed", type=int, default=0, metavar="S", help="of the sampling noise (default 0)")
    return parser


def _measure(options: argparse.Namespace) -> int:
    from mmcorl.analysis.completions import grade, pairs_of
    from mmcorl.analysis.heatmap import draw_heatmap
    from mmcorl.analysis.partners import anchored, by_kappa, recommend
    from mmcorl.files import writing
    from mmcorl.graders import Grader

    files = _files(options)
    if len(files) < 2:
        raise MmcorlError("diversity is of several models; give --model or --completions at least twice")
    if options.anchor is not None and options.anchor not in files:
        raise MmcorlError(f"--anchor {options.anchor} is none of {', '.join(files)}")
    with Grader() as grader:
        graded = grade(files, grader)
        levels = {"samples": pairs_of(graded.samples, grader)}
        if any(len(row.right) > 1 for rows in graded.samples.values() for row in rows):
            levels["votes"] = pairs_of(graded.votes, grader)

    console = wide_console(140)
    for level, pairs in levels.items():
        console.print(_table(f"Every pair, by {level}, the most different first", by_kappa(pairs)))
        if options.anchor:
            console.print(_table(f"{options.anchor} with each, by {level}", anchored(pairs, options.anchor)))
    console.print(_LEGEND, highlight=False)
    if graded.left_out:
        console.print(f"{graded.left_out} problems are left out, which not all models answered")
    anchors = [options.anchor] if options.anchor else list(files)
    advice = {level: [recommend(pairs, anchor) for anchor in anchors] for level, pairs in levels.items()}
    for by_samples, by_votes in zip(advice["samples"], advice.get("votes", advice["samples"]), strict=True):
        console.print(_said(by_samples), soft_wrap=True, highlight=False)
        if by_votes.partner != by_samples.partner:
            console.print(f"  by votes instead: {_said(by_votes)}", soft_wrap=True, highlight=False)
    with writing(options.out, "--out"):
        options.out.mkdir(parents=True, exist_ok=True)
        _write(options.out, levels, advice)
        draw_heatmap(levels["samples"], options.out / "heatmap.png")
    console.print(
        f"written: {options.out / 'pairs.csv'}, {options.out / 'advice.json'}, {options.out / 'heatmap.png'}"
    )
    return 0


def _files(options: argparse.Namespace) -> dict[str, Path]:
    """The file of completions of each model; those of `--model` are made now."""
    stored = {name: Path(path) for name, path in named(options.completions, "--completions").items()}
    if not options.model:
        return stored
    if options.data is None:
        raise MmcorlError(
            "--model needs --data, the problems to answer: a file, a prepared folder or `scenes`"
        )
    models = named(options.model, "--model")
    if both := models.keys() & stored.keys():
        raise MmcorlError(f"two models are called {min(both)}; name them, as in --completions other=FILE")
    return _sampled(options, models) | stored


def _sampled(options: argparse.Namespace, models: Mapping[str, str]) -> dict[str, Path]:
    from mmcorl.analysis.completions import Request, sample
    from mmcorl.config import DataConfig, RolloutsConfig
    from mmcorl.config_loading import load_config, merge_overrides, validate
    from mmcorl.data.loading import load_problems
    from mmcorl.evaluation.settings import read_settings

    if options.temperature is not None and not 0 < options.temperature < math.inf:
        raise MmcorlError(
            f"--temperature={options.temperature} is no number above 0; models are sampled as in training"
        )
    from omegaconf import OmegaConf

    about_data = [o for o in options.overrides if o.startswith("data.")]
    tree: dict[str, Any] = {"scenes": {}} if options.data == "scenes" else {"path": options.data}
    merged = merge_overrides(OmegaConf.create({"data": tree | {"limit": options.limit}}), about_data)
    plain: Any = OmegaConf.to_container(merged, resolve=False)
    config = validate(DataConfig, plain["data"], "--data")
    rollouts = RolloutsConfig() if options.config is None else load_config(options.config).rollouts
    request = Request(
        settings=read_settings(options.config, [o for o in options.overrides if o not in about_data]),
        data=config.model_dump(mode="json", exclude_defaults=True),
        samples=options.samples,
        temperature=options.temperature or rollouts.temperature,
        max_tokens=options.max_tokens or rollouts.max_tokens,
        seed=options.seed,
    )
    data = load_problems(config, "--data", require_gold=True)
    return sample(models, data, request, options.out, lambda line: print(line, file=sys.stderr, flush=True))


def _table(title: str, pairs: Sequence[Pair]) -> Table:
    from rich.table import Table

    table = Table(title=f"{title} [95 % interval over {pairs[0].problems} problems]", title_justify="left")
    table.add_column("pair")
    for head in ("accuracy %", "kappa", "c %", "w %", "u %"):
        table.add_column(head, justify="right")
    for p in pairs:
        accuracies = " / ".join(f"{100 * a:.1f}" for a in p.accuracies)
        name = f"{p.first} x itself" if p.first == p.second else f"{p.first} x {p.second}"
        table.add_row(name, accuracies, _shown(p.kappa, 1, 2), *(_shown(e, 100, 1) for e in (p.c, p.w, p.u)))
    return table


def _shown(estimate: Estimate, scale: float, digits: int) -> str:
    value, low, high = (f"{scale * v:.{digits}f}" for v in (estimate.value, estimate.low, estimate.high))
    return f"{value} \\[{low}, {high}]"


def _said(advice: Recommendation) -> str:
    if advice.partner is None:
        return f"{advice.anchor}: no partner, {advice.reason}"
    return f"{advice.anchor}: {'take' if advice.certain else 'perhaps'} {advice.partner} ({advice.reason})"


def _write(
    out: Path, levels: Mapping[str, Sequence[Pair]], advice: Mapping[str, Sequence[Recommendation]]
) -> None:
    import csv
    import io
    import json
    from dataclasses import asdict

    from mmcorl.analysis.partners import by_kappa
    from mmcorl.files import write_whole

    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    names = ("kappa", "c", "w", "u")
    ends = [f"{name}{end}" for name in names for end in ("", "_low", "_high")]
    rows.writerow(["level", "model_a", "model_b", "problems", "accuracy_a", "accuracy_b", *ends])
    for level, pairs in levels.items():
        for p in by_kappa(pairs):
            estimates = [value for name in names for value in asdict(getattr(p, name)).values()]
            rows.writerow(
                [level, p.first, p.second, p.problems, *(f"{v:.6g}" for v in (*p.accuracies, *estimates))]
            )
    write_whole(out / "pairs.csv", text.getvalue())
    listed = {level: [asdict(a) for a in given] for level, given in advice.items()}
    write_whole(out / "advice.json", json.dumps(listed, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
