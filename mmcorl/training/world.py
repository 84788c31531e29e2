"""World: the data-parallel ranks of one agent. They share nothing with other agents' worlds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from accelerate import PartialState
from torch import Tensor


class World:
    """An agent's ranks. With one rank every operation is the identity.

    Problem i of a step belongs to rank `i % size`. What ranks tell each other is JSON or tensors, never pickled.
    """

    def __init__(self) -> None:
        state = PartialState(cpu=not torch.cuda.is_available())
        self.rank: int = state.process_index
        self.size: int = state.num_processes
        self.device = torch.device(state.device or "cpu")
        self._state = state

    @property
    def is_first(self) -> bool:
        """Whether this rank speaks and writes for its agent."""
        return self.rank == 0

    def share(self, items: Sequence[Any]) -> list[Any]:
        """This rank's part of items that all ranks have."""
        return list(items[self.rank :: self.size])

    def gather(self, mine: Sequence[Any]) -> list[Any]:
        """All items in order from each rank's share of them; JSON values. The inverse of `share`."""
        if self.size == 1:
            return list(mine)
        shares = [json.loads(part) for part in self._all_gather_bytes(json.dumps(mine).encode())]
        items: list[Any] = [None] * sum(map(len, shares))
        for rank, share in enumerate(shares):
            items[rank :: self.size] = share
        return items

    def broadcast(self, value: Any) -> Any:
        """The first rank's JSON value, on every rank."""
        return value if self.size == 1 else json.loads(self._all_gather_bytes(json.dumps(value).encode())[0])

    def sum(self, tensors: Iterable[Tensor]) -> None:
        """Add up tensors over the ranks, in place."""
        if self.size > 1:
            for work in [dist.all_reduce(tensor, async_op=True) for tensor in tensors]:
                assert work is not None
                work.wait()

    def largest(self, number: int) -> int:
        """The largest of the ranks' numbers."""
        found = torch.tensor([number], device=self.device)
        if self.size > 1:
            dist.all_reduce(found, dist.ReduceOp.MAX)
        return int(found)

    def connect(self) -> None:
        """Open a process group also for a rank that is alone; a library that spreads weights over ranks wants one."""
        if not dist.is_initialized():
            backend = "nccl" if self.device.type == "cuda" else "gloo"
            dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)

    def close(self) -> None:
        """Let go of the other ranks."""
        self._state.destroy_process_group()

    def _all_gather_bytes(self, data: bytes) -> list[bytes]:
        length = torch.tensor([len(data)], device=self.device)
        lengths = [torch.zeros_like(length) for _ in range(self.size)]
        dist.all_gather(lengths, length)
        buffer = torch.zeros(int(torch.cat(lengths).max()), dtype=torch.uint8, device=self.device)
        buffer[: len(data)] = torch.frombuffer(bytearray(data), dtype=torch.uint8).to(self.device)
        buffers = [torch.zeros_like(buffer) for _ in range(self.size)]
        dist.all_gather(buffers, buffer)
        return [bytes(b[: int(n)].cpu().numpy()) for b, n in zip(buffers, lengths, strict=True)]
