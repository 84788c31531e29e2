"""Text training sets."""

from __future__ import annotations

from mmcorl.config import ColumnsConfig
from mmcorl.data.hub import Hub
from mmcorl.data.sources.declaration import Declaration

_MATH_COLUMNS = ColumnsConfig(id=None, question="prompt", images=None, choices=None)
_MATH_QUIRKS = (
    ("first_of", "prompt", "problem"),
    ("boxed", "solution"),
    ("first_of", "answer", "solution"),
)
_MATH_FACTS = (
    "Columns `prompt` and `answer`, taken from a training program that reads them. Also reads MATH itself (`problem`, "
    "`solution` with the gold in a box, `level`)"
)

TEXT = (
    Declaration(
        name="math-level345",
        hub=Hub("q1716523669/MATH-Level345"),
        columns=_MATH_COLUMNS,
        quirks=(("only", "level", *("None", "3", "4", "5", "Level 3", "Level 4", "Level 5")), *_MATH_QUIRKS),
        facts=f"MATH (MIT) without its two easiest levels, about 7.5k rows. {_MATH_FACTS}, of which it keeps the levels.",
    ),
    Declaration(
        name="math-12345",
        hub=Hub("q1716523669/MATH-Level12345"),
        columns=_MATH_COLUMNS,
        quirks=_MATH_QUIRKS,
        facts=f"MATH (MIT), all levels. {_MATH_FACTS}.",
    ),
    Declaration(
        name="dapo-math-17k",
        hub=Hub("open-r1/DAPO-Math-17k-Processed", configs=("all",)),
        columns=ColumnsConfig(id=None, question="prompt", images=None, choices=None, answer="solution"),
        quirks=(("stripped", "solution"),),
        facts="17k competition problems without repeats, golds are integers. Columns taken from the program that made the "
        "set; it has the configs all, en and cn.",
    ),
    Declaration(
        name="gsm8k",
        hub=Hub("openai/gsm8k", configs=("main",)),
        columns=ColumnsConfig(id=None, images=None, choices=None),
        quirks=(("after_hashes", "answer"),),
        facts="7473 rows (test 1319) of grade-school problems, the gold after '####'. MIT. Test rows were read.",
    ),
    Declaration(
        name="comas",
        hub=None,
        columns=ColumnsConfig(id=None, images=None, choices=None),
        quirks=(
            ("first_of", "question", "query", "problem", "prompt"),
            ("first_of", "answer", "gt", "solution", "ground_truth"),
            ("first_of", "source", "tag", "domain", "data_source"),
            ("first_of", "tests", "test", "test_list", "unit_tests", "test_cases"),
            ("kind_where", "code", "source", "code", "coding", "programming"),
        ),
        facts="The mixture of math, science and code questions of CoMAS, given out as files with its code; name a copy by "
        "`path`. Its evaluation files have `query`, `gt`, `tag`; that the training files have the same columns, and "
        "which words mark code, is unverified, and so is where its code has tests: they are looked for in `tests`, `test`, "
        "`test_list`, `unit_tests` and `test_cases`, and without any the text of a program is its answer.",
    ),
)
