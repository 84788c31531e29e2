"""mmcorl-check: does this model keep the contract of an agent?"""

from __future__ import annotations

import argparse
import sys

from mmcorl.cli.command import run_command


def main(argv: list[str] | None = None) -> int:
    """Print each point of the contract with what was measured; exit code 1 where one does not hold."""
    parser = argparse.ArgumentParser(
        prog="mmcorl-check",
        description="Check that a model can be an agent: image tokens, stop tokens, log-probabilities, gradients, reload.",
        epilog="example: mmcorl-check data_tools/tiny_agents/internvl",
    )
    parser.add_argument("model", help="a local folder or a hub id")
    parser.add_argument("--attention", choices=["sdpa", "eager"], default="sdpa")
    arguments = parser.parse_args(argv)
    return run_command(lambda: _check(arguments.model, arguments.attention))


def _check(model: str, attention: str) -> int:
    from rich.console import Console
    from rich.markup import escape
    from transformers.utils.logging import disable_progress_bar

    from mmcorl.agents.agent import Agent
    from mmcorl.agents.contract import check
    from mmcorl.config import AgentConfig

    disable_progress_bar()
    console = Console()
    broken = 0
    agent = Agent.load("check", AgentConfig.model_validate({"model": model, "attention": attention}))
    for outcome in check(agent):
        mark = "[green]holds [/]" if outcome.holds else "[red]broken[/]"
        detail = escape(outcome.detail)  # errors of models are full of brackets
        console.print(f"{mark}  {outcome.point}: [dim]{detail}[/]", highlight=False, soft_wrap=True)
        broken += not outcome.holds
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
