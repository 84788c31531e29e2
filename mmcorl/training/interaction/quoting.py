"""What agents wrote, put before an agent: made harmless, and cut where the prompt would be too long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mmcorl.agents.agent import Agent
from mmcorl.agents.endpoint import Endpoint
from mmcorl.agents.processors import PromptBuilder, question_text
from mmcorl.config import PromptConfig
from mmcorl.errors import PromptTooLong
from mmcorl.problems import IMAGE_MARKER, Problem

_CUT = " [...]"


@dataclass(frozen=True)
class Ask:
    """A problem to be put to an agent in a role: `write` makes the question of the task and of what others wrote.

    `id` tells it from all else that is asked in the same step: sampling noise hangs on it.
    """

    problem: Problem
    id: str
    write: Callable[[str, Sequence[str]], str]
    texts: tuple[str, ...] = ()


class Reader:
    """Puts asks to one agent. Its instruction is left out of the prompts, as not every role answers the problem.

    Special tokens of the agent's tokenizer and image markers within the texts of others are broken up by a space, so
    that nobody can pretend to a turn or an image.
    """

    def __init__(self, agent: Agent | Endpoint, prompt: PromptConfig) -> None:
        self._prompt = prompt.model_copy(update={"instruction": ""})
        special = {IMAGE_MARKER}
        if isinstance(agent, Agent):
            own = agent.prompts
            prompts = PromptBuilder(
                agent.model, agent.processor, agent.backbone, self._prompt, own.images, own.max_tokens
            )
            agent = replace(agent, prompts=prompts)
            added = prompts.tokenizer.added_tokens_decoder.values()
            special |= {token.content for token in added if token.special}
        else:
            agent = replace(agent, prompt=self._prompt)
        self.agent = agent
        self._special = sorted(special, key=len, reverse=True)

    def read(self, ask: Ask) -> tuple[Problem, bool]:
        """The problem as this agent is asked it, images included, and whether texts of others had to be cut.

        All that are longer are cut to the same number of tokens; the task and the request never are. Raises
        PromptTooLong where these alone do not fit. How long a prompt may be an endpoint has to know itself.
        """
        texts = [self._harmless(text) for text in ask.texts]
        whole = self._asked(ask, texts)
        if not texts or not isinstance(self.agent, Agent):
            return whole, False
        if self._fits(whole):
            return whole, False
        bare = self._asked(ask, [""] * len(texts))
        room = self.agent.prompts.max_tokens - len(self.agent.encode(bare).ids)
        tokenizer = self.agent.prompts.tokenizer
        rows = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
        while room > 0:
            most = water_level([len(row) for row in rows], room)
            cut = [
                text if len(row) <= most else self._harmless(tokenizer.decode(row[:most])) + _CUT
                for text, row in zip(texts, rows, strict=True)
            ]
            shortened = self._asked(ask, cut)
            if self._fits(shortened):
                return shortened, True
            room = (
                room * 9 // 10 - 1
            )  # the marks of the cuts take room, and words that are cut in two take more
        return bare, True

    def _asked(self, ask: Ask, texts: Sequence[str]) -> Problem:
        task = question_text(ask.problem, self._prompt)
        return replace(ask.problem, id=ask.id, question=ask.write(task, texts), choices=None)

    def _fits(self, problem: Problem) -> bool:
        assert isinstance(self.agent, Agent)
        try:
            self.agent.encode(problem)
        except PromptTooLong:
            return False
        return True

    def _harmless(self, text: str) -> str:
        for token in self._special:
            text = text.replace(token, f"{token[0]} {token[1:]}")
        return text


def water_level(sizes: Sequence[int], room: int) -> int:
    """The largest `most` with `sum(min(size, most)) <= room`: what each may have where all share alike."""
    left = room
    for place, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - place)
        if size > share:
            return share
        left -= size
    return max(sizes, default=0)
