"""Seconds that training stands still for a checkpoint: written in the background against written at once.

The model is a random Qwen2 of about `--millions` parameters with AdamW's state, 12 bytes a parameter. Prints the rate
at which checkpoints are hashed too.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM, logging

from mmcorl.training import checkpoints
from mmcorl.training.optimizer_state import snapshot_optimizer
from mmcorl.training.saving import Saver


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--millions", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    logging.disable_progress_bar()
    model, optimizer = a_trained_model(options.millions)
    names = dict(model.named_parameters())

    def snapshot() -> Callable[[Path], None]:
        weights = {name: weight.to("cpu", copy=True) for name, weight in model.state_dict().items()}
        write_state = snapshot_optimizer(optimizer, names)

        def write(folder: Path) -> None:
            model.save_pretrained(folder, state_dict=dict(weights))
            write_state(folder / "optimizer.safetensors")

        return write

    with tempfile.TemporaryDirectory() as scratch:
        blocked, whole = {}, {}
        for background in (False, True):
            blocked[background], whole[background] = saved(
                Path(scratch), snapshot, options.rounds, background
            )
        checkpoint = checkpoints.step_folder(Path(scratch), 1)
        size = sum(file.stat().st_size for file in checkpoint.rglob("*") if file.is_file())
        start = time.monotonic()
        assert checkpoints.damage(checkpoint) is None
        hashing = time.monotonic() - start
    parameters = sum(p.numel() for p in model.parameters())
    print(
        f"{parameters / 1e6:.1f} M parameters, a checkpoint of {size / 2**20:.0f} MiB, best of {options.rounds}"
    )
    print(f"at once:        training waits {blocked[False]:.3f} s")
    print(f"in background:  training waits {blocked[True]:.3f} s; on disk after {whole[True]:.3f} s")
    print(f"ratio {blocked[False] / blocked[True]:.1f}x; verified at {size / 2**20 / hashing:.0f} MiB/s")


def a_trained_model(millions: int) -> tuple[Qwen2ForCausalLM, torch.optim.AdamW]:
    """A random model of about so many parameters, after one step of AdamW."""
    layers = max(1, round(millions * 1e6 / 3.2e6))
    config = Qwen2Config(
        vocab_size=1000, hidden_size=512, intermediate_size=1408, num_hidden_layers=layers,
        num_attention_heads=8, num_key_value_heads=8,
    )  # fmt: skip
    model = Qwen2ForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    optimizer.zero_grad()
    return model, optimizer


def saved(
    folder: Path, snapshot: Callable[[], Callable[[Path], None]], rounds: int, background: bool
) -> tuple[float, float]:
    """Seconds until training could go on, and until the checkpoint was there; the best of `rounds`."""
    saver, times = Saver(background), []
    for _ in range(rounds):
        start = time.monotonic()
        saver.start(partial(checkpoints.save, folder, 1, snapshot()))
        blocked = time.monotonic() - start
        saver.wait()
        times.append((blocked, time.monotonic() - start))
    saver.close()
    return min(b for b, _ in times), min(w for _, w in times)


if __name__ == "__main__":
    main()
