"""One GRPO update with the prompt computed once per group, against once per completion: time, peak memory, exactness.

    python bench/shared_prefix.py [--family qwen2_5_vl] [--image 168] [--tokens 16]

Both ways compute the same loss on the same completions of a tiny vision-language model with random weights: log-probs,
backward through text model, projector and vision tower. Peak memory is the growth of the resident set while one
update runs in a fresh process.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor
from transformers.utils.logging import disable_progress_bar

from mmcorl.agents.agent import Agent
from mmcorl.agents.batches import TokenGroup
from mmcorl.agents.tiny import make_tiny
from mmcorl.config import AgentConfig, ImagesConfig, RolloutsConfig
from mmcorl.problems import Problem

REPEATS = 5


def main() -> None:
    disable_progress_bar()
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--family", default="qwen2_5_vl")
    parser.add_argument("--problems", type=int, default=24)
    parser.add_argument("--samples", type=int, default=8, help="completions a problem (K)")
    parser.add_argument("--tokens", type=int, default=8, help="longest completion")
    parser.add_argument("--image", type=int, default=84, help="width and height of the image, in pixels")
    parser.add_argument("--memory", choices=["shared", "plain"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        agent, groups = setting(arguments, Path(folder))
        if arguments.memory:
            print(growth(agent, groups, arguments.memory))
            return
        compare(agent, groups)
    for way in ("plain", "shared"):
        out = subprocess.run(
            [sys.executable, __file__, *sys.argv[1:], "--memory", way], capture_output=True, check=True
        )
        print(f"  peak memory of one update, {way:6}: {float(out.stdout):7.1f} MB")


def setting(arguments: argparse.Namespace, folder: Path) -> tuple[Agent, list[TokenGroup]]:
    """A random tiny model, and groups of completions that it sampled."""
    model = make_tiny(arguments.family, folder / "model", seed=0)
    size = arguments.image
    agent = Agent.load(
        "bench", AgentConfig(model=str(model)), images=ImagesConfig(max_pixels=size**2),
        rollouts=RolloutsConfig(max_tokens=arguments.tokens),
    )  # fmt: skip
    pixels = torch.randint(
        0, 255, (arguments.problems, size, size, 3), generator=torch.Generator().manual_seed(0)
    )
    problems = [
        Problem(str(i), "How many red shapes are there?", (Image.fromarray(image.byte().numpy()),))
        for i, image in enumerate(pixels)
    ]
    rollouts = agent.rollout(
        problems, samples=arguments.samples, max_tokens=arguments.tokens, noise_key=("bench",)
    )
    return agent, [
        TokenGroup(agent.encode(p), [torch.tensor(c.token_ids) for c in r.completions])
        for p, r in zip(problems, rollouts, strict=True)
    ]


def update(agent: Agent, groups: list[TokenGroup], way: str) -> Tensor:
    """Log-probs and gradients of one update; the loss weights completion tokens unevenly, as advantages do."""
    agent.model.zero_grad()
    logprobs = {"shared": agent.policy.shared_logprobs, "plain": agent.policy.plain_logprobs}[way](groups)
    (logprobs * torch.linspace(-1, 1, len(logprobs))).mean().backward()
    return logprobs.detach()


def compare(agent: Agent, groups: list[TokenGroup]) -> None:
    seconds: dict[str, list[float]] = {"plain": [], "shared": []}
    logprobs, gradients = {}, {}
    for way in seconds:
        logprobs[way] = update(agent, groups, way)
        gradients[way] = {n: p.grad.clone() for n, p in agent.model.named_parameters() if p.grad is not None}
    for _ in range(REPEATS):  # the two ways take turns, so that a busy machine slows both
        for way, taken in seconds.items():
            started = time.perf_counter()
            update(agent, groups, way)
            taken.append(time.perf_counter() - started)
    best = {way: min(taken) for way, taken in seconds.items()}
    largest = max(float(g.abs().max()) for g in gradients["plain"].values())
    gradient_gap = max(float((gradients["shared"][n] - g).abs().max()) for n, g in gradients["plain"].items())
    images = int(
        torch.isin(groups[0].prompt.ids, torch.tensor(sorted(agent.backbone.placeholder_ids()))).sum()
    )
    print(
        f"{type(agent.model).__name__}, {sum(p.numel() for p in agent.model.parameters()) / 1e6:.2f} M parameters: "
        f"{len(groups)} prompts of {len(groups[0].prompt.ids)} tokens ({images} image), K = {len(groups[0].completions)}, "
        f"{max(len(c) for g in groups for c in g.completions)} new tokens, one thread, float32"
    )
    print(
        f"  plain {best['plain']:.3f} s   shared {best['shared']:.3f} s   ratio {best['plain'] / best['shared']:.1f}x"
    )
    print(
        f"  largest log-prob difference {float((logprobs['shared'] - logprobs['plain']).abs().max()):.1e} nats"
    )
    print(f"  largest gradient difference {gradient_gap:.1e}, of a largest gradient of {largest:.1e}")


def growth(agent: Agent, groups: list[TokenGroup], way: str) -> float:
    """Growth of the peak resident set by one update, MB (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew from what is resident now
    before = status("VmRSS")
    update(agent, groups, way)
    return (status("VmHWM") - before) / 1024


def status(field: str) -> int:
    """A field of this process's status, kB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1])


if __name__ == "__main__":
    main()
