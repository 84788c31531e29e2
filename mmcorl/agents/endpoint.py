"""Endpoint: an agent behind an OpenAI-compatible server, that answers and votes and is never trained."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any

from PIL import Image

from mmcorl.agents.processors import content_parts
from mmcorl.config import AgentConfig, ImagesConfig, PromptConfig
from mmcorl.data.images import shown_image
from mmcorl.errors import MmcorlError
from mmcorl.problems import Completion, Problem, RolloutGroup

_AT_ONCE = 16  # requests
_TIMEOUT_SECONDS = 600.0  # of one request: a long completion of a busy server
_PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # seconds before each further try
_LONGEST_PAUSE = 120.0  # that a server may ask for
_PASSING = {408, 409, 425, 429}  # and all of 500 and above


@dataclass(frozen=True)
class Endpoint:
    """A model that a server holds under the name `model`, asked through `POST url/chat/completions`.

    Its completions have text and no tokens. They depend on the noise key as far as the server keeps to a request's
    `seed`.
    """

    name: str
    url: str
    model: str
    prompt: PromptConfig
    images: ImagesConfig
    key: str | None = field(default=None, repr=False)

    @staticmethod
    def load(
        name: str,
        agent: AgentConfig,
        prompt: PromptConfig = PromptConfig(),
        images: ImagesConfig = ImagesConfig(),
    ) -> Endpoint:
        """The endpoint that `agent` names.

        Raises MmcorlError for what is no URL, and where the variable of its key is not set or holds no key.
        """
        assert agent.endpoint is not None
        if not _is_url(agent.endpoint):
            raise MmcorlError(f"agents.{name}.endpoint={agent.endpoint!r} is no URL; write https://host/v1")
        key = None
        if agent.api_key_env is not None and not (key := os.environ.get(agent.api_key_env)):
            raise MmcorlError(
                f"agents.{name}.api_key_env={agent.api_key_env}: this environment variable is not set; put the "
                "endpoint's key in it"
            )
        if key is not None and not (key.isascii() and key.isprintable()):
            raise MmcorlError(
                f"agents.{name}.api_key_env={agent.api_key_env}: this environment variable holds line ends or other "
                "characters that no key has"
            )
        return Endpoint(name, agent.endpoint.rstrip("/"), agent.model, prompt, images, key)

    def rollout(
        self,
        problems: Sequence[Problem],
        *,
        samples: int,
        max_tokens: int,
        noise_key: tuple[int | str, ...] | None,
        temperature: float = 1.0,
    ) -> list[RolloutGroup]:
        """As `Agent.rollout`. Raises MmcorlError when the server refuses, or does not answer after some tries."""
        settings = {"max_tokens": max_tokens, "temperature": 0.0 if noise_key is None else temperature}
        count = samples if noise_key is not None else 1

        def answered(problem: Problem) -> RolloutGroup:
            messages = self._messages(problem)
            completions: list[Completion] = []
            while len(completions) < count:  # some servers give one at a time, whatever `n` says
                wanted = {"n": count - len(completions)} if count - len(completions) > 1 else {}
                if noise_key is not None:
                    wanted["seed"] = _seed((*noise_key, problem.id, len(completions)))
                completions += self._ask({"messages": messages, **settings, **wanted})
            return RolloutGroup(problem, tuple(completions[:count]))

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(answered, problems))

    def _messages(self, problem: Problem) -> list[dict[str, Any]]:
        pictures = [
            shown_image(source, self.images, f"image {k} of problem {problem.id!r}")
            for k, source in enumerate(problem.images, start=1)
        ]
        urls = iter([data_url(picture) for picture in pictures])
        content = [
            {"type": "image_url", "image_url": {"url": next(urls)}} if part["type"] == "image" else part
            for part in content_parts(problem, len(pictures), self.prompt)
        ]
        user = {"role": "user", "content": content if pictures else "".join(p["text"] for p in content)}
        system = {"role": "system", "content": self.prompt.system}
        return [system, user] if self.prompt.system else [user]

    def _ask(self, body: dict[str, Any]) -> list[Completion]:
        """One request, tried again while what hinders it may pass; at least one completion."""
        request = urllib.request.Request(
            f"{self.url}/chat/completions",
            data=json.dumps({"model": self.model, **body}).encode(),
            headers={"Content-Type": "application/json"},
        )
        if self.key is not None:
            # Not to be handed on to wherever the server may redirect.
            request.add_unredirected_header("Authorization", f"Bearer {self.key}")
        for pause in (*_PAUSES, None):
            try:
                with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as response:
                    return self._completions(response.read())
            except urllib.error.HTTPError as error:
                trouble = f"HTTP {error.code}: {error.read(300).decode(errors='replace').strip()}"
                if error.code not in _PASSING and error.code < 500:
                    raise self._error(
                        f"refuses: {trouble}; mind agents.{self.name}.model and its key"
                    ) from None
                asked = error.headers.get("Retry-After", "")
                pause = pause and max(pause, min(float(asked) if asked.isdecimal() else 0.0, _LONGEST_PAUSE))
            except (OSError, HTTPException) as error:  # no connection, or one that broke or timed out
                trouble = str(error) or type(error).__name__
            if pause is None:
                raise self._error(f"does not answer after {len(_PAUSES) + 1} tries: {trouble}")
            time.sleep(pause)
        raise AssertionError("unreachable: the last try returns or raises")

    def _completions(self, reply: bytes) -> list[Completion]:
        try:
            choices = json.loads(reply)["choices"]
            completions = [
                Completion(
                    _text(choice["message"]["content"]), (), (), choice.get("finish_reason") != "length"
                )
                for choice in choices
            ]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise self._error(f"gives no chat completion ({error!r}): {reply[:300]!r}") from None
        if not completions:
            raise self._error("gives no choices")
        return completions

    def _error(self, what: str) -> MmcorlError:
        return MmcorlError(f"agents.{self.name}.endpoint={self.url} {what}")


def data_url(picture: Image.Image) -> str:
    """A picture inside a URL, without loss."""
    file = io.BytesIO()
    picture.save(file, format="PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def _is_url(text: str) -> bool:
    try:
        parts = urllib.parse.urlsplit(text)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # of a broken address or port
        return False
    return bool(usable) and text.isprintable() and " " not in text


def _text(content: Any) -> str:
    if not isinstance(content, str | None):
        raise TypeError(f"the content is of type {type(content).__name__}, not text")
    return (content or "").encode(errors="replace").decode()  # JSON can hold halves of characters


def _seed(key: tuple[int | str, ...]) -> int:
    """31 bits that depend on the key alone."""
    return int.from_bytes(hashlib.blake2b(json.dumps(key).encode(), digest_size=4).digest(), "big") >> 1
