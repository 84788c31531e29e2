"""mmcorl-check: does this model keep the contract of an agent? And what does one need that has no backbone yet?"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmcorl.cli.command import run_command
from mmcorl.errors import MmcorlError

if TYPE_CHECKING:
    from rich.console import Console

    from mmcorl.agents.agent import Agent
    from mmcorl.agents.contract import Outcome


def main(argv: list[str] | None = None) -> int:
    """Print each point of the contract with what was measured; exit code 1 where one does not hold."""
    arguments = _parser().parse_args(argv)
    return run_command(lambda: _check(arguments))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mmcorl-check",
        description="Check that a model can be an agent: image tokens, stop tokens, log-probabilities, gradients, reload. "
        "Of a family without a backbone it tells what was found, and writes a file to begin with.",
        epilog="example: mmcorl-check data_tools/tiny_agents/internvl",
    )
    parser.add_argument("model", help="a local folder or a hub id")
    parser.add_argument("--attention", choices=["sdpa", "eager"], default="sdpa")
    parser.add_argument("--device", default="cpu", help="where the model is put, in float32; default: cpu")
    parser.add_argument(
        "--backbone",
        type=Path,
        metavar="FILE",
        help="take the backbone from this Python file, not the registry",
    )
    parser.add_argument(
        "--skeleton", type=Path, metavar="FILE", help="write a backbone to begin with to this file, and stop"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    return parser


def _check(arguments: argparse.Namespace) -> int:
    from rich.console import Console
    from transformers import AutoConfig
    from transformers.utils import logging

    from mmcorl.agents.adapter_files import base_of
    from mmcorl.agents.agent import Agent
    from mmcorl.agents.backbones import BACKBONES, find_backbone
    from mmcorl.agents.backbones.skeleton import backbone_from
    from mmcorl.agents.contract import check
    from mmcorl.config import AgentConfig

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    warnings.simplefilter("ignore", FutureWarning)
    console = Console(highlight=False, soft_wrap=True)
    try:
        config = AutoConfig.from_pretrained(base_of(arguments.model) or arguments.model)
    except (OSError, ValueError):
        config = None  # the agent says it in its own words
    if arguments.skeleton is not None:
        return _write_skeleton(console, arguments.model, arguments.skeleton)
    if config is not None and arguments.backbone is not None:
        BACKBONES[config.model_type] = backbone_from(arguments.backbone)
    if config is not None and find_backbone(config) is None:
        return _introduce(console, arguments.model)
    _require_device(arguments.device)
    settings = {"model": arguments.model, "attention": arguments.attention}
    with redirect_stdout(sys.stderr):  # libraries may have something to say
        agent = Agent.load("check", AgentConfig.model_validate(settings), device=arguments.device)
    header = Header.of(agent, arguments.model)
    if arguments.json:
        with redirect_stdout(sys.stderr):
            outcomes = list(check(agent))
        print(json.dumps({**asdict(header), "points": [asdict(outcome) for outcome in outcomes]}, indent=2))
    else:
        header.show(console)
        outcomes = _show(console, agent)
    return 0 if all(outcome.holds for outcome in outcomes) else 1


def _require_device(device: str) -> None:
    import torch

    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # the latter where torch is built without it
        reason = str(error).partition("\n")[0]
        raise MmcorlError(f"--device {device} is not to be had: {reason}") from error


@dataclass(frozen=True)
class Header:
    """What is checked, and with what. `parameters` are counted by part."""

    model: str
    family: str
    backbone: str
    file: str
    parameters: dict[str, int]
    transformers: str
    torch: str
    device: str
    dtype: str
    attention: str | None

    @staticmethod
    def of(agent: Agent, model: str) -> Header:
        import torch
        import transformers

        from mmcorl.agents.contract import backbone_file

        parameters: dict[str, int] = {}
        for name, parameter in agent.model.named_parameters():
            part = agent.backbone.part_of(name)
            parameters[part] = parameters.get(part, 0) + parameter.numel()
        return Header(
            model=model,
            family=agent.backbone.config.model_type,
            backbone=type(agent.backbone).__name__,
            file=str(backbone_file(agent.backbone)),
            parameters=parameters,
            transformers=transformers.__version__,
            torch=torch.__version__,
            device=str(agent.model.device),
            dtype=str(agent.model.dtype).removeprefix("torch."),
            attention=agent.model.config._attn_implementation,
        )

    def show(self, console: Console) -> None:
        from rich.markup import escape

        parts = ", ".join(f"{part} {count / 1e6:.2f} M" for part, count in self.parameters.items())
        for name, value in (
            ("model", self.model),
            ("family", f"{self.family}, backbone {self.backbone} in {self.file}"),
            ("parameters", parts),
            (
                "computed with",
                f"transformers {self.transformers}, torch {self.torch}, {self.device}, {self.dtype}, "
                f"{self.attention} attention",
            ),
        ):
            console.print(f"{name:<14} {escape(value)}")
        console.print()


_MARKS = {"holds": "[green]holds  [/]", "skipped": "[dim]skipped[/]", "broken": "[red]broken [/]"}


def _show(console: Console, agent: Agent) -> list[Outcome]:
    """A line for each point as it is done, and one that sums up."""
    from rich.markup import escape

    from mmcorl.agents.contract import POINTS, check

    outcomes = []
    for outcome in check(agent):
        outcomes.append(outcome)
        # Errors of models are full of brackets.
        console.print(f"{_MARKS[outcome.state]}  {outcome.point}: [dim]{escape(outcome.detail)}[/]")
        if outcome.hint:
            console.print(f"         [yellow]{escape(outcome.hint)}[/]")
    held = sum(outcome.state == "holds" for outcome in outcomes)
    skipped = sum(outcome.state == "skipped" for outcome in outcomes)
    summary = f"{held} of {len(POINTS) - skipped} points hold"
    if skipped:
        summary += f", {skipped} not asked of this model"
    if broken := [outcome for outcome in outcomes if not outcome.holds]:
        where = broken[0].mend or "the model's files"
        summary += f"; begin with {where}"
    console.print(f"\n{escape(summary)}")
    return outcomes


def _introduce(console: Console, model: str) -> int:
    """A family without a backbone: what was found in it, and a file to begin with."""
    from mmcorl.agents.backbones.skeleton import skeleton

    found = _found(console, model)
    console.print("\nIt has no backbone. One to begin with (--skeleton FILE writes it):\n")
    console.print(skeleton(found), markup=False)
    return 1


def _write_skeleton(console: Console, model: str, file: Path) -> int:
    from mmcorl.agents.backbones.skeleton import skeleton

    if file.exists():
        raise MmcorlError(f"--skeleton {file} exists already; give a new name")
    found = _found(console, model)
    try:
        file.write_text(skeleton(found), encoding="utf-8")
    except OSError as error:
        raise MmcorlError(f"--skeleton {file} cannot be written: {error.strerror}") from error
    console.print(f"\nwrote {file}; next: mmcorl-check {model} --backbone {file}", markup=False)
    return 0


def _found(console: Console, model: str) -> Any:
    from mmcorl.agents.backbones.survey import survey

    found = survey(model)
    console.print(f"{'model':<16} {model}", markup=False)
    console.print(f"{'family':<16} {found.model_type}", markup=False)
    for line in found.lines():
        console.print(line, markup=False)
    return found


if __name__ == "__main__":
    sys.exit(main())
