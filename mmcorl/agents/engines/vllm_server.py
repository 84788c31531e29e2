"""Sampling with a vLLM server over HTTP, on devices of its own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from mmcorl.agents.adapters import snapshot_adapters
from mmcorl.agents.endpoint import data_url
from mmcorl.agents.engines import Sampled
from mmcorl.agents.engines.vllm import ADAPTERS, VLLMModel, request_seed, require_vllm
from mmcorl.agents.engines.weights import write_weights
from mmcorl.agents.processors import Prompt
from mmcorl.errors import MmcorlError

_AT_ONCE = 64  # requests; vLLM batches what it has
_START_SECONDS = 1800.0  # a large model is read and compiled
_TICK_SECONDS = 0.2
_BANNED = -100.0  # the lowest bias that the protocol has

# Prompts are rendered already, so that server and policy cannot disagree about a chat template.
_AS_IT_IS = "{% for part in messages[0]['content'] %}{% if part['type'] == 'text' %}{{ part['text'] }}{% endif %}{% endfor %}"


class VLLMServerEngine:
    """Asks a server that was started with the options in docs/vllm.md, as `start_server` does.

    It hands over new weights through a folder that both see: the agent's first rank writes them, and the server's
    development interface (`/collective_rpc`) reads them in place.
    """

    def __init__(self, name: str, served: VLLMModel, server: str, devices: Sequence[int] | None) -> None:
        self.name, self.served, self.server, self.devices = name, served, server, devices
        self.url = ""
        self._model: str | None = None

    @contextmanager
    def awake(self) -> Iterator[None]:
        """See `Engine.awake`. The server never sleeps: its devices are its own."""
        is_first = not dist.is_initialized() or dist.get_rank() == 0
        first_time = self._model is None
        if first_time:
            self.url = self._find_server(is_first).rstrip("/")
            self._model = self._get("/v1/models")["data"][0]["id"]
        if self.served.trained or first_time:
            if is_first:
                self._load_weights(first_time)
            else:  # weights that lie over ranks become whole where all ranks ask for them
                deque(self.served.weights(), maxlen=0)
        if dist.is_initialized():
            dist.barrier()
        yield

    def sample(
        self,
        prompts: Sequence[Prompt],
        seeds: Sequence[int] | None,
        samples: int,
        max_tokens: int,
        temperature: float,
        top_p: float = 1.0,
    ) -> list[list[Sampled]]:
        """See `Engine.sample`. Greedy log-probabilities are those at temperature 1."""
        common = self.served.sampling(temperature if seeds else 0.0, max_tokens, top_p)
        model = self._model if self.served.rank is None else ADAPTERS
        common |= {"model": model, "return_token_ids": True}
        common["logit_bias"] = {str(token): _BANNED for token in self.served.banned} or None

        def ask(i: int) -> list[Sampled]:
            own = {"n": samples, "seed": request_seed(seeds[i])} if seeds else {}
            return self._complete(prompts[i], common | own)

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(ask, range(len(prompts))))

    def _complete(self, prompt: Prompt, body: dict[str, Any]) -> list[Sampled]:
        """The completions of one prompt."""
        if prompt.images:
            pictures = [{"type": "image_url", "image_url": {"url": data_url(i)}} for i in prompt.images]
            content = [*pictures, {"type": "text", "text": prompt.text}]
            reply = self._post(
                "/v1/chat/completions",
                body
                | {
                    "messages": [{"role": "user", "content": content}],
                    "chat_template": _AS_IT_IS,
                    "add_special_tokens": False,
                    "logprobs": True,
                },
                prompt,
            )
            self.served.check_prompt(prompt, reply["prompt_token_ids"])
            logprobs = [[t["logprob"] for t in c["logprobs"]["content"]] for c in reply["choices"]]
        else:
            reply = self._post(
                "/v1/completions", body | {"prompt": prompt.ids.tolist(), "logprobs": 0}, prompt
            )
            logprobs = [c["logprobs"]["token_logprobs"] for c in reply["choices"]]
        rows = [
            (choice["index"], Sampled(torch.tensor(choice["token_ids"]), torch.tensor(row), choice["finish_reason"] == "stop"))
            for choice, row in zip(reply["choices"], logprobs, strict=True)
        ]  # fmt: skip
        return [sampled for _, sampled in sorted(rows, key=lambda row: row[0])]

    def _find_server(self, is_first: bool) -> str:
        """Its URL; the first rank starts it where that is asked, and tells the others."""
        if self.server != "start":
            return self.server
        url = ""
        if is_first:
            process, url = start_server(self.served, self.devices)
            weakref.finalize(self, _stop, process)
        if not dist.is_initialized():
            return url
        told = torch.zeros(64, dtype=torch.uint8, device=self.served.model.device)
        told[: len(url)] = torch.tensor(list(url.encode()), dtype=torch.uint8)
        dist.broadcast(told, 0)
        return bytes(told.tolist()).rstrip(b"\0").decode()

    def _load_weights(self, first_time: bool) -> None:
        """Write the weights, have them read, and empty every cache of what was made with the old ones."""
        if self.served.rank is None or first_time:
            with self._shared_folder() as folder:
                write_weights(self.served.weights(), folder)
                body = {"method": "reload_weights", "kwargs": {"weights_path": str(folder)}}
                self._post("/collective_rpc", body)
        if self.served.rank is not None:
            if not first_time:
                self._post("/v1/unload_lora_adapter", {"lora_name": ADAPTERS})
            with self._shared_folder() as folder:
                snapshot_adapters(self.served.model)(folder)
                self._post("/v1/load_lora_adapter", {"lora_name": ADAPTERS, "lora_path": str(folder)})
        self._post("/reset_mm_cache")
        self._post("/reset_encoder_cache")
        if not self._post("/reset_prefix_cache")["success"]:
            raise MmcorlError(f"{self.url} is at work for somebody else; give every agent its own server")

    @contextmanager
    def _shared_folder(self) -> Iterator[Path]:
        """A folder that the server sees too, while open."""
        parent = self.served.settings.sync_dir
        with tempfile.TemporaryDirectory(prefix="mmcorl-weights-", dir=parent) as folder:
            yield Path(folder)

    def _get(self, path: str) -> Any:
        return self._ask(urllib.request.Request(self.url + path))

    def _post(self, path: str, body: dict[str, Any] | None = None, prompt: Prompt | None = None) -> Any:
        data = json.dumps(body or {}).encode()
        request = urllib.request.Request(
            self.url + path, data=data, headers={"Content-Type": "application/json"}
        )
        return self._ask(request, "" if prompt is None else f" for problem {prompt.problem_id!r}")

    def _ask(self, request: urllib.request.Request, about: str = "") -> Any:
        try:
            with urllib.request.urlopen(request) as response:
                answer = response.read()
                is_json = response.headers.get_content_type() == "application/json"
                return json.loads(answer) if answer and is_json else None
        except urllib.error.HTTPError as error:
            said = error.read(500).decode(errors="replace").strip()
            raise MmcorlError(
                f"the vLLM server refuses {request.full_url}{about}: HTTP {error.code}: {said}. A server that trains "
                "needs the options in docs/vllm.md, and has to see rollouts.vllm.sync_dir"
            ) from None
        except OSError as error:
            raise MmcorlError(f"the vLLM server at {self.url} does not answer{about}: {error}") from None


def start_server(served: VLLMModel, devices: Sequence[int] | None) -> tuple[subprocess.Popen[bytes], str]:
    """Start a server on this machine, on the GPUs `devices`, and wait until it answers: its process and its URL.

    What it prints goes where this process prints. Raises MmcorlError when it ends instead.
    """
    require_vllm()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--host", "127.0.0.1"]
    command += ["--port", str(port), *_FLAGS, *_flags(served.options())]
    environment = dict(os.environ) | {
        "VLLM_SERVER_DEV_MODE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1",
    }
    if devices is not None:
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, devices))
    for name in _OF_THIS_RANK:
        environment.pop(name, None)
    process = subprocess.Popen(command, env=environment)
    url = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + _START_SECONDS
    while not _answers(f"{url}/health"):
        if process.poll() is not None or time.monotonic() > deadline:
            process.terminate()
            raise MmcorlError(
                f"the vLLM server of {served.source} did not start (exit code {process.poll()}); its last lines say why"
            )
        time.sleep(_TICK_SECONDS)
    return process, url


_FLAGS = ("--trust-request-chat-template", "--chat-template-content-format", "openai")
_OF_THIS_RANK = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait()


def _flags(options: dict[str, Any]) -> list[str]:
    """The engine's arguments as the server's command line takes them."""
    flags: list[str] = []
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            flags += [flag if value else f"--no-{name.replace('_', '-')}"]
        else:
            flags += [flag, json.dumps(value) if isinstance(value, dict) else str(value)]
    return flags


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except OSError:
        return False
