"""Teacher: a slow copy of an agent, the moving average of its weights, that samples, votes and is the KL reference."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from mmcorl.agents.agent import Agent
from mmcorl.agents.whole import in_host_memory, whole
from mmcorl.errors import MmcorlError

_FILE = "teacher.safetensors"


def update_rate(step: int, total_steps: int, start: float, end: float) -> float:
    """The share of the agent's weights that the teacher takes over before step 1, 2, ...: half a cosine (Co-rewarding).

    It is `start` at step 1 and would be `end` at step `total_steps` + 1.
    """
    return end + 0.5 * (start - end) * (1 + math.cos(math.pi * (step - 1) / total_steps))


class Teacher:
    """The moving average of `student`, held by `agent`, a second copy of the same model in float32.

    Weights that the student does not train are shared with it. Never trained itself.
    """

    def __init__(self, agent: Agent, student: Agent, *, start: float, end: float, total_steps: int) -> None:
        self.agent, self._student, self._rates = agent, student, (start, end, total_steps)
        agent.model.requires_grad_(False)
        own, students = dict(agent.model.named_parameters()), dict(student.model.named_parameters())
        assert own.keys() == students.keys()
        for name, weight in students.items():
            if not weight.requires_grad:
                own[name].data = weight.data
        self._own = {name: own[name] for name, weight in students.items() if weight.requires_grad}
        assert all(weight.dtype == torch.float32 for weight in self._own.values())

    @torch.no_grad()
    def follow(self, step: int) -> None:
        """Move towards the student, before it makes `step` (1, 2, ...): `teacher += rate * (student - teacher)`.

        In half precision a small rate would round to no movement at all.
        """
        start, end, total_steps = self._rates
        rate = update_rate(step, total_steps, start, end)
        students = dict(self._student.model.named_parameters())
        for name, weight in self._own.items():
            weight.lerp_(whole(students[name]), rate)

    def snapshot(self) -> Callable[[Path], None]:
        """Copy the weights that are not the student's into host memory; what is returned writes them into a folder."""
        tensors = {name: in_host_memory(weight) for name, weight in self._own.items()}
        return lambda folder: save_file(tensors, folder / _FILE)

    def load(self, folder: Path) -> None:
        """Take up the weights of a checkpoint, bit for bit.

        Raises MmcorlError when the file is missing, damaged or of another model.
        """
        path = folder / _FILE
        try:
            tensors = load_file(path)
        except (OSError, SafetensorError) as error:
            raise MmcorlError(
                f"{path} cannot be read ({error}); remove its checkpoint to resume from the one before"
            ) from None
        if odd := sorted(tensors.keys() ^ self._own.keys()):
            raise MmcorlError(
                f"{path} holds other weights than the teacher has (for instance {', '.join(odd[:3])}); resume with "
                "the same model and `freeze` as the run was started with"
            )
        with torch.no_grad():
            for name, tensor in tensors.items():
                self._own[name].copy_(tensor)
