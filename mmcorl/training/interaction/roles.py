"""What agents are asked in each role, in one place: prompts, tags and how a score is read.

A prompt begins with the task, which is the question with its options and images; what other agents wrote comes after
it in tags, and the request last.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

SCORES = (1, 2, 3)
"""What a scorer may give: wrong, partly right, right."""

_REFERENCE = """\
<attempt>
{solution}
</attempt>
<review>
{evaluation}
</review>
"""

_SOLVE_WITH_REFERENCES = """\
{task}

Others have worked on this problem before, and their attempts were reviewed. Both may be wrong.

{references}
Solve the problem yourself, making use of what holds up.
{instruction}"""

_EVALUATE = """\
{task}

Somebody solved this problem as follows.

<solution>
{solution}
</solution>

Check this solution critically, step by step. List every error that you find with the reason why it is one; if there \
is none, say what you checked. Do not write a new solution."""

_SCORE = """\
{task}

Somebody solved this problem, and somebody else reviewed the solution.

<solution>
{solution}
</solution>
<review>
{evaluation}
</review>

Judge the solution in the light of the review, which may itself be mistaken. Give a whole number: 3 for a right \
solution, 2 for one that is partly right or whose errors are minor, 1 for a wrong one. End with the number in tags, \
as in <score>2</score>."""

_DEBATE = """\
{task}

This is what you answered before.

<own>
{own}
</own>

This is what others answered. They may be right or wrong, and so may you.

{others}
Weigh all answers and reason again, then answer the problem.
{instruction}"""

_OTHER = """\
<other>
{answer}
</other>
"""

_SCORE_TAG = re.compile(r"<score>(.*?)</score>", re.DOTALL)


def solve(task: str, instruction: str, references: Sequence[tuple[str, str]] = ()) -> str:
    """The solver's prompt; `references` are solutions with their evaluations. Without any it is that of a lone agent."""
    if not references:
        return f"{task}\n{instruction}" if instruction else task
    shown = "\n".join(_REFERENCE.format(solution=s, evaluation=e) for s, e in references)
    return _SOLVE_WITH_REFERENCES.format(task=task, references=shown, instruction=instruction).rstrip()


def evaluate(task: str, solution: str) -> str:
    """The evaluator's prompt."""
    return _EVALUATE.format(task=task, solution=solution)


def score(task: str, solution: str, evaluation: str) -> str:
    """The scorer's prompt."""
    return _SCORE.format(task=task, solution=solution, evaluation=evaluation)


def debate(task: str, instruction: str, own: str, others: Sequence[str]) -> str:
    """A debater's prompt after the first turn."""
    shown = "\n".join(_OTHER.format(answer=answer) for answer in others)
    return _DEBATE.format(task=task, own=own, others=shown, instruction=instruction).rstrip()


def read_score(text: str) -> int | None:
    """The score in the last `<score>` tags of a scorer's text; None where it is none of `SCORES`. Nothing is guessed."""
    given = _SCORE_TAG.findall(text)
    value = given[-1].strip() if given else ""
    return next((number for number in SCORES if value == str(number)), None)
