"""What this machine makes of the package: one command, under eight minutes on one GPU.

    python scripts/gpu_check.py [--parameters 1b]

Needs torch, transformers, accelerate and the package. It makes a vision-language model of the Qwen2.5-VL shape with
random weights and a vocabulary of the real size, and measures: the card's matrix rate, tokens a second of rollouts and
updates, a shared prefix against repeated prompts, the output head in turns against all at once, gradient checkpointing,
kinds of attention, and the planned peak of memory against the real one. Nothing is downloaded. A part that fails, takes
too long or lacks a library says so, and the next one begins.
"""

from __future__ import annotations

import argparse
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

import torch
from torch import Tensor
from transformers import PreTrainedModel, Qwen2_5_VLForConditionalGeneration
from transformers.utils import is_flash_attn_2_available
from transformers.utils.logging import set_verbosity_error

from mmcorl.agents.agent import Agent
from mmcorl.agents.backbones import backbone_for
from mmcorl.agents.batches import TokenGroup
from mmcorl.agents.engines.transformers import TransformersEngine
from mmcorl.agents.policy import Policy
from mmcorl.agents.processors import PromptBuilder
from mmcorl.agents.tiny import FAMILIES, TinySizes
from mmcorl.config import Config, ScenesConfig
from mmcorl.data.scenes import scenes
from mmcorl.errors import MmcorlError
from mmcorl.planning.plan import plan_agent
from mmcorl.planning.shapes import shape_of
from mmcorl.problems import RolloutGroup
from mmcorl.training.learner import Learner
from mmcorl.training.world import World

PART_SECONDS = 75
"""Longest time of one part: with six parts and the making of the model it stays below eight minutes."""
NEVER = -1
"""No token: completions go on to the longest length, so that every run does the same work."""

PEAK_TFLOPS = {
    "H200": 989, "H100 PCIe": 756, "H100": 989, "H800": 989, "H20": 148, "B200": 2250, "A100": 312, "A800": 312,
    "L40S": 362, "L40": 181, "L4": 121, "A40": 150, "A10": 125, "A6000": 155, "4090": 165, "3090": 71,
}  # fmt: skip
"""Dense bfloat16 rates by a part of the card's name, from the makers' data sheets, in 10^12 operations a second."""


@dataclass(frozen=True)
class Size:
    """A model and the work that it is given."""

    model: TinySizes
    vocabulary: int
    image: int
    """Side of the images in pixels."""
    problems: int
    tokens: int
    """Tokens of a completion."""
    matrix: int
    """Rows of the matrices whose product is timed."""


SIZES = {
    "small": Size(TinySizes(), 1024, 84, 2, 6, 256),
    "1b": Size(TinySizes(1536, 24, 12, 2, 6144, 1024, 12, 16), 152064, 448, 8, 256, 8192),
    "2b": Size(TinySizes(2048, 28, 16, 2, 8192, 1280, 16, 16), 152064, 448, 8, 256, 8192),
    "3b": Size(TinySizes(2048, 36, 16, 2, 11008, 1280, 32, 16), 152064, 448, 8, 256, 8192),
}
SAMPLES = 8


def main() -> int:
    """Run every part; returns 0, also where some could not be run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--parameters", choices=SIZES, help="size of the model; by default what the device holds"
    )
    size = SIZES[parser.parse_args().parameters or _fitting_size()]
    set_verbosity_error()
    warnings.simplefilter("ignore", FutureWarning)
    torch.manual_seed(0)
    check = Check(size)
    print(f"{check.device_name}, torch {torch.__version__}")
    parts: dict[str, Callable[[], list[str]]] = {
        "matrix product": check.matrix_rate,
        "model": check.make,
        "rollout": check.rollout,
        "update": check.update,
        "shared prefix": check.shared_prefix,
        "output head": check.head,
        "gradient checkpointing": check.checkpointing,
        "attention": check.attention,
        "memory": check.memory,
    }
    for name, part in parts.items():
        for line in _guarded(part):
            print(f"{name:22}  {line}", flush=True)
    return 0


def _fitting_size() -> str:
    if not torch.cuda.is_available():
        return "small"
    gib = torch.cuda.get_device_properties(0).total_memory / 2**30
    return "2b" if gib > 60 else "1b"


def _guarded(part: Callable[[], list[str]]) -> list[str]:
    """What a part found, or why it did not."""
    started = time.perf_counter()
    try:
        with _limited(PART_SECONDS):
            found = part()
    except (RuntimeError, ImportError, ValueError, AttributeError, MmcorlError, TimeoutError) as error:
        found = [f"not measured: {type(error).__name__}: {str(error).strip().partition(chr(10))[0][:160]}"]
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return [*found[:-1], f"{found[-1]}  [{time.perf_counter() - started:.1f} s]"]


@contextmanager
def _limited(seconds: int) -> Iterator[None]:
    """Raise TimeoutError in the main thread once the time is over."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"took longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Check:
    """A model on the device, and rollouts of it, that the parts measure one after the other."""

    def __init__(self, size: Size) -> None:
        self.size, self.is_gpu = size, torch.cuda.is_available()
        self.device = torch.device("cuda" if self.is_gpu else "cpu")
        self.device_name = torch.cuda.get_device_name() if self.is_gpu else "CPU"
        self.rate = 0.0
        self.agent: Agent | None = None
        self.groups: list[RolloutGroup] = []

    def matrix_rate(self) -> list[str]:
        """The reference of all shares: the rate of one large product in bfloat16."""
        n = self.size.matrix
        a = torch.randn(n, n, device=self.device, dtype=torch.bfloat16)
        seconds = self._seconds(lambda: a @ a, repeats=5)
        self.rate = 2 * n**3 / seconds
        named = next((rate for part, rate in PEAK_TFLOPS.items() if part in self.device_name), None)
        of = f", {self.rate / named / 1e10:.0f} % of the {named} that the maker states" if named else ""
        return [f"{self.rate / 1e12:.2f} TFLOP/s in bfloat16 ({n} x {n}){of}"]

    def make(self) -> list[str]:
        """The model, in float32 with a bfloat16 forward pass as in training."""
        recipe = FAMILIES["qwen2_5_vl"]
        tokenizer = recipe.chat.tokenizer()
        assert recipe.processor is not None
        processor = recipe.processor(self.size.model, tokenizer)
        with torch.device("meta"):
            config = recipe.model(self.size.model, tokenizer).config
        config.get_text_config().vocab_size = self.size.vocabulary
        with self.device:
            model = Qwen2_5_VLForConditionalGeneration._from_config(
                config, attn_implementation="sdpa"
            ).float()
        self.agent = self._agent(model, processor)
        weights = sum(p.numel() for p in model.parameters())
        return [f"{weights / 1e6:,.1f} M parameters, {self.size.vocabulary} words"]

    def _agent(self, model: PreTrainedModel, processor: object) -> Agent:
        config, backbone = self._config(), backbone_for(model.config)
        banned = sorted(
            {*backbone.placeholder_ids(), *range(len(backbone.tokenizer(processor)), self.size.vocabulary)}
        )
        prompts = PromptBuilder(model, processor, backbone, config.prompt, config.images, 4096)
        policy = Policy(model, backbone, temperature=1.0, banned=banned, autocast=torch.bfloat16)
        engine = TransformersEngine(
            model, stop_ids=[NEVER], banned=banned, batch_tokens=config.rollouts.batch_tokens, autocast=torch.bfloat16
        )  # fmt: skip
        model.train()
        return Agent("check", backbone, model, processor, prompts, policy, engine)

    def _config(self, prompt_tokens: int = 4096, checkpointing: bool = False) -> Config:
        size = self.size
        row = prompt_tokens + SAMPLES * size.tokens
        agent = {
            "model": "check",
            "dtype": "bfloat16",
            "batch_tokens": 2 * row,
            "gradient_checkpointing": checkpointing,
        }
        rollouts = {
            "problems_per_step": size.problems,
            "per_problem": SAMPLES,
            "max_tokens": size.tokens,
            "max_prompt_tokens": prompt_tokens,
        }
        return Config.model_validate(
            {
                "agents": {"check": agent},
                "data": {"train": {"scenes": {"size": size.problems, "image_size": size.image}}},
                "cohort": {"topology": "self"},
                "rollouts": rollouts,
            }
        )

    def rollout(self) -> list[str]:
        """Sampling with the transformers engine."""
        agent, size = self._made(), self.size
        problems = [p for p, _ in scenes(ScenesConfig(size=size.problems, image_size=size.image))]
        self._sync()
        started = time.perf_counter()
        self.groups = agent.rollout(problems, samples=SAMPLES, max_tokens=size.tokens, noise_key=("check",))
        self._sync()
        seconds = time.perf_counter() - started
        tokens = sum(len(c.token_ids) for g in self.groups for c in g.completions)
        prompt = len(agent.encode(problems[0]).ids)
        return [
            f"{tokens / seconds:,.0f} tokens/s: {size.problems} prompts of {prompt} tokens, {SAMPLES} completions of "
            f"{size.tokens}"
        ]

    def update(self) -> list[str]:
        """Forward and backward of two groups; six operations a weight and token, and those of attention."""
        agent, groups = self._made(), self._two_groups()
        seconds, _ = self._step(agent.policy.shared_logprobs, groups)
        text = agent.model.config.get_text_config()
        rows = [len(g.prompt.ids) + sum(len(c) - 1 for c in g.completions) for g in groups]
        shape = shape_of(agent.model, agent.backbone)
        patches = [int(g.prompt.vision["image_grid_thw"].prod()) for g in groups]
        targets = sum(len(c) for g in groups for c in g.completions)
        operations = 6 * shape.text.layers * shape.text.linear * sum(rows) + 6 * shape.head * targets
        operations += 12 * text.num_hidden_layers * shape.text.queries * sum(row**2 for row in rows)
        if shape.vision is not None:
            operations += 6 * shape.linear["vision"] * sum(patches)
        share = f", {operations / seconds / self.rate:.0%} of the measured matrix rate" if self.rate else ""
        return [f"{sum(rows) / seconds:,.0f} tokens/s, {operations / seconds / 1e12:.3g} TFLOP/s{share}"]

    def shared_prefix(self) -> list[str]:
        """Prompts once a group against once a completion: time, memory, and rounding against float32."""
        policy, groups = self._made().policy, self._two_groups()
        shared, plain = (self._step(way, groups) for way in (policy.shared_logprobs, policy.plain_logprobs))
        with torch.no_grad():
            rounded = [way(groups) for way in (policy.shared_logprobs, policy.plain_logprobs)]
            policy.autocast = None
            try:
                exact = policy.plain_logprobs(groups)
            finally:
                policy.autocast = torch.bfloat16
        errors = [float((values - exact).abs().max()) for values in rounded]
        return [
            _compared("shared", shared, "repeated", plain),
            f"largest error of a log-probability in bfloat16: shared {errors[0]:.3f}, repeated {errors[1]:.3f} nats",
        ]

    def head(self) -> list[str]:
        """Logits of 1,024 tokens at a time against those of the whole batch."""
        policy, groups = self._made().policy, self._two_groups()
        turns = self._step(policy.shared_logprobs, groups)
        policy.head_in_turns = False
        try:
            whole = self._step(policy.shared_logprobs, groups)
        finally:
            policy.head_in_turns = True
        return [_compared("in turns", turns, "at once", whole)]

    def checkpointing(self) -> list[str]:
        """Recomputed activations against kept ones."""
        agent, groups = self._made(), self._two_groups()
        kept = self._step(agent.policy.shared_logprobs, groups)
        agent.model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        try:
            again = self._step(agent.policy.shared_logprobs, groups)
        finally:
            agent.model.gradient_checkpointing_disable()
        return [_compared("recomputed", again, "kept", kept)]

    def attention(self) -> list[str]:
        """Kinds of attention on repeated prompts, as not all of them take the mask of a shared prefix."""
        agent, groups = self._made(), self._two_groups()
        lines = []
        for kind in ("sdpa", "eager", "flash_attention_2"):
            if kind == "flash_attention_2" and not is_flash_attn_2_available():
                lines.append(f"{kind}: skipped, flash-attn is not installed or the device is not its kind")
                continue
            agent.model.set_attn_implementation(kind)
            try:
                taken = self._step(agent.policy.plain_logprobs, groups)
                lines.append(f"{kind}: {_cost(*taken)}")
            except RuntimeError as error:
                lines.append(f"{kind}: not measured: {str(error).partition(chr(10))[0][:120]}")
            finally:
                agent.model.set_attn_implementation("sdpa")
        return lines

    def memory(self) -> list[str]:
        """The plan of a step against the allocator's peak."""
        agent, groups = self._made(), self.groups
        prompt = max(len(agent.encode(g.problem).ids) for g in groups)
        config = self._config(prompt, checkpointing=True)
        agent.model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        learner = Learner(
            agent, World(), config.loss, config.optimizer, total_updates=2,
            batch_tokens=config.agents["check"].batch_tokens,
        )  # fmt: skip
        advantages = torch.tensor([[1.0, -1.0] * (SAMPLES // 2)] * len(groups))
        weights = torch.full_like(advantages, 1 / advantages.numel())
        total = torch.cuda.get_device_properties(0).total_memory if self.is_gpu else None
        plan = plan_agent(config, "check", shape_of(agent.model, agent.backbone), total)
        self._forget_peak()
        for update in range(2):
            learner.learn(groups, advantages, weights, update)
        moments = ("forward", "backward", "stepping")
        context = sum(item.forward for item in plan.items if item.name.startswith("CUDA"))
        planned = (max(map(plan.total, moments)) - context) / 2**30
        if not self.is_gpu:
            return [f"planned {planned:.3f} GiB; the peak is measured on a GPU only"]
        measured = torch.cuda.max_memory_allocated() / 2**30
        return [f"planned {planned:.2f} GiB, measured {measured:.2f} GiB: {planned / measured:.2f} of it"]

    def _made(self) -> Agent:
        if self.agent is None:
            raise RuntimeError("there is no model")
        return self.agent

    def _two_groups(self) -> list[TokenGroup]:
        if not self.groups:
            raise RuntimeError("there are no rollouts")
        agent = self._made()
        return [
            TokenGroup(agent.encode(g.problem), [torch.tensor(c.token_ids) for c in g.completions])
            for g in self.groups[:2]
        ]

    def _step(
        self, logprobs: Callable[[list[TokenGroup]], Tensor], groups: list[TokenGroup]
    ) -> tuple[float, float | None]:
        """Seconds and peak GiB (on a GPU) of a forward and backward pass."""
        model = self._made().model

        def step() -> None:
            model.zero_grad()
            logprobs(groups).mean().backward()

        step()
        self._forget_peak()
        seconds = self._seconds(step, repeats=2)
        model.zero_grad()
        return seconds, torch.cuda.max_memory_allocated() / 2**30 if self.is_gpu else None

    def _seconds(self, work: Callable[[], object], repeats: int) -> float:
        work()
        self._sync()
        started = time.perf_counter()
        for _ in range(repeats):
            work()
        self._sync()
        return (time.perf_counter() - started) / repeats

    def _sync(self) -> None:
        if self.is_gpu:
            torch.cuda.synchronize()

    def _forget_peak(self) -> None:
        if self.is_gpu:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()


def _cost(seconds: float, gib: float | None) -> str:
    return f"{seconds:.3f} s" + ("" if gib is None else f" and {gib:.2f} GiB at most")


def _compared(
    name: str, one: tuple[float, float | None], other_name: str, other: tuple[float, float | None]
) -> str:
    return f"{name} {_cost(*one)}, {other_name} {_cost(*other)}: ratio {other[0] / one[0]:.2f}"


if __name__ == "__main__":
    raise SystemExit(main())
