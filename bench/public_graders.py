"""The graders that `graders.py` compares, each as one function of a case: does the answer count as the gold?

A case has `input` ("response" for a whole completion, else a bare answer), `pred`, `gold`, `question`, `choices` and
`mcq`. Every grader is called as its documentation does, with its own way of finding the answer in a completion.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Item = dict[str, Any]
Judge = Callable[[Item], bool]


def boxed(item: Item) -> str:
    """What a grader of completions is shown: a bare answer goes into a box."""
    return item["pred"] if item["input"] == "response" else rf"\boxed{{{item['pred']}}}"


def mmcorl(as_scored: bool) -> Judge:
    """As in training; or as a benchmark is scored, by its convention and with the last number where nothing is marked."""
    from mmcorl.graders import Extraction, Grader
    from mmcorl.graders.conventions import CONVENTIONS, STRICT, convention
    from mmcorl.problems import Problem

    grader = Grader(Extraction(last_number=as_scored))
    grader.warm()  # what the others import is not in their time either

    def judge(item: Item) -> bool:
        choices = tuple(item["choices"]) if item["choices"] else None
        problem = Problem("0", item["question"] or "", (), choices, "choice" if item["mcq"] else "math")
        rule, row = STRICT, item.get("meta") or {}
        if as_scored:
            name = next((c for c in CONVENTIONS if c in item.get("file", item.get("kind", ""))), STRICT.name)
            precision = None if row.get("precision") is None else int(row["precision"])
            if "precision" not in row and name == "mathvista" and "." in item["gold"]:
                precision = len(
                    item["gold"].partition(".")[2]
                )  # a case asks for as many decimals as its gold has
            rule = convention(
                name, precision=precision, unit=row.get("unit"), answer_type=item.get("answer_type")
            )
        read = grader.answer if item["input"] == "response" else grader.read
        answer, gold = read(item["pred"], problem, rule), grader.read(item["gold"], problem)
        return grader.correct(answer, gold, problem, rule)

    return judge


def math_verify() -> Judge:
    from math_verify import ExprExtractionConfig, LatexExtractionConfig, StringExtractionConfig, parse, verify

    open_ended = (LatexExtractionConfig(boxed_match_priority=0), ExprExtractionConfig())

    def judge(item: Item) -> bool:
        letters = (StringExtractionConfig(strings=tuple("ABCDEFGHIJ")),) if item["mcq"] else ()
        gold = parse(rf"\boxed{{{item['gold']}}}", (*letters, *open_ended))
        return bool(verify(gold, parse(boxed(item), (*letters, *open_ended))))

    return judge


def trl() -> Judge:
    from trl.rewards import accuracy_reward

    def judge(item: Item) -> bool:
        return accuracy_reward([[{"role": "assistant", "content": boxed(item)}]], [item["gold"]]) == [1.0]

    return judge


def mathruler() -> Judge:
    from mathruler.grader import extract_boxed_content, grade_answer  # type: ignore[import-not-found]

    def judge(item: Item) -> bool:
        response = item["input"] == "response"
        return grade_answer(extract_boxed_content(item["pred"]) if response else item["pred"], item["gold"])

    return judge


def tinker_cookbook() -> Judge:
    from tinker_cookbook.recipes.math_rl.math_grading import (  # type: ignore[import-not-found]
        extract_boxed,
        grade_answer,
    )

    def judge(item: Item) -> bool:
        try:
            answer = extract_boxed(item["pred"]) if item["input"] == "response" else item["pred"]
        except ValueError:  # its way of saying that there is no box
            return False
        return grade_answer(answer, item["gold"])

    return judge


def lm_eval() -> Judge:
    from lm_eval.tasks.hendrycks_math.utils import process_results  # type: ignore[import-not-found]

    def judge(item: Item) -> bool:
        solution = rf"\boxed{{{item['gold']}}}"
        return process_results({"solution": solution}, [item["pred"]])["exact_match"] == 1

    return judge


def evalscope() -> Judge:
    from evalscope.metrics.math import extract_answer, math_equal  # type: ignore[import-not-found]

    def judge(item: Item) -> bool:
        response = item["input"] == "response"
        return math_equal(extract_answer(item["pred"]) if response else item["pred"], item["gold"])

    return judge


GRADERS: dict[str, Callable[[], Judge]] = {
    "mmcorl": lambda: mmcorl(as_scored=False),
    "mmcorl as scored": lambda: mmcorl(as_scored=True),
    "math-verify": math_verify,
    "trl": trl,
    "mathruler": mathruler,
    "tinker-cookbook": tinker_cookbook,
    "lm-eval": lm_eval,
    "evalscope": evalscope,
}
