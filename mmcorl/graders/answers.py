"""Answer: the canonical, model-independent form of what a completion concluded."""

from __future__ import annotations

from dataclasses import dataclass

from mmcorl.problems import AnswerKind


@dataclass(frozen=True)
class Answer:
    """What a completion concluded. A completion that concluded nothing has no Answer: it is None, an abstention.

    `value` is canonical text: the option's letter for a choice, an exact number such as `3/4`, LaTeX, or folded text.
    Two answers may be the same with different values; `Grader.same` decides.
    """

    kind: AnswerKind
    value: str

    def to_json(self) -> list[str]:
        return [self.kind, self.value]

    @staticmethod
    def from_json(data: object) -> Answer:
        """Read what `to_json` wrote; anything else, as from a foreign sender, raises ValueError."""
        match data:
            case ["math" | "choice" | "text" | "code" as kind, str(value)]:
                return Answer(kind, value)
            case _:
                raise ValueError(f"not an answer: {data!r}")
