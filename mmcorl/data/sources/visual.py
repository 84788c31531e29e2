"""Visual training sets. Image places are marked by `<image>` as the sets have them; options are split off the question."""

from __future__ import annotations

from mmcorl.config import ColumnsConfig
from mmcorl.data.hub import Hub
from mmcorl.data.sources.declaration import Declaration

_SPLIT_OPTIONS = ("split_options", "problem", "choices")
_R1V_COLUMNS = ColumnsConfig(id=None, question="problem", images="image", answer="solution")

VISUAL = (
    Declaration(
        name="open-r1",
        hub=Hub("lmms-lab/multimodal-open-r1-8k-verified"),
        columns=_R1V_COLUMNS,
        quirks=(
            ("answer_tag", "solution", "original_answer"),
            ("image_markers", "problem", "image"),
            _SPLIT_OPTIONS,
        ),
        facts="7.69k rows. The gold is in the <answer> tag of `solution` and may be a letter, a value or a sentence; "
        "`original_answer` is prose. Columns taken from the program that made the set; rows were not seen.",
    ),
    Declaration(
        name="mmr1",
        hub=Hub("MMR1/MMR1-Math-RL-Data-v0"),
        columns=ColumnsConfig(id=None, question="problem"),
        quirks=(("stripped", "answer"), ("image_markers", "problem", "images"), _SPLIT_OPTIONS),
        facts="About 6k rows, a list of images each. Columns taken from two training programs that read them; the type "
        "of the image column and the layout of options are unverified.",
    ),
    Declaration(
        name="geometry3k",
        hub=Hub("hiyouga/geometry3k"),
        columns=ColumnsConfig(question="problem", choices=None),
        quirks=(("stripped", "answer"), ("image_markers", "problem", "images")),
        facts="2101 rows (validation 300, test 601), asked as open questions whose gold is the value in LaTeX. MIT. "
        "Columns taken from the data card.",
    ),
    Declaration(
        name="geometry3k-choice",
        hub=Hub("hiyouga/geometry3k"),
        columns=ColumnsConfig(question="problem", answer="ground_truth"),
        quirks=(("image_markers", "problem", "images"),),
        facts="Geometry3K with its four choices and the letter as gold; needs a revision that has `choices`.",
    ),
    Declaration(
        name="geoqa",
        hub=Hub("leonardPKU/GEOQA_R1V_Train_8K"),
        columns=_R1V_COLUMNS,
        quirks=(
            ("first_of", "problem", "question"),
            ("first_of", "solution", "answer_value", "ground_truth"),
            ("first_of", "image", "image_path"),
            ("answer_tag", "solution"),
            ("image_markers", "problem", "image"),
            _SPLIT_OPTIONS,
        ),
        facts="8k rows of R1-V; the gold is a value in an <answer> tag. Also reads the test prompts of R1-V and the rows "
        "of G-LLaVA (with choices), which name images that are given out elsewhere.",
    ),
    Declaration(
        name="clevr-count",
        hub=Hub("leonardPKU/clevr_cogen_a_train"),
        columns=_R1V_COLUMNS,
        quirks=(
            ("first_of", "problem", "question"),
            ("first_of", "solution", "ground_truth"),
            ("first_of", "image", "image_path"),
            ("answer_tag", "solution"),
            ("image_markers", "problem", "image"),
        ),
        facts="70k rows of R1-V: how many items an image of CLEVR holds, the count in an <answer> tag. Also reads the "
        "Super-CLEVR test prompts of R1-V.",
    ),
    Declaration(
        name="mmk12",
        hub=Hub("FanqingM/MMK12"),
        columns=ColumnsConfig(question="question", images="image"),
        quirks=(
            ("first_of", "image", "image_path"),
            ("stripped", "answer"),
            ("image_markers", "question", "image"),
            ("split_options", "question", "choices"),
        ),
        facts="15.6k training rows with free answers, 2000 test rows with options in the question and a letter as gold. "
        "Apache-2.0. Columns taken from programs that read the set; the names of those of the hub are unverified.",
    ),
    Declaration(
        name="openmmreasoner-rl",
        hub=Hub(
            "OpenMMReasoner/OpenMMReasoner-RL-74K",
            configs=(
                *("virl39k", "thinklite_vl_hard", "tqa_train", "wemath_standard"),
                *("mmk12", "wemath_pro", "algopuzzle"),
            ),
        ),
        columns=ColumnsConfig(id=None, question="problem"),
        quirks=(
            ("said_by_user", "problem", "prompt"),
            ("inner", "answer", "reward_model", "ground_truth"),
            ("image_markers", "problem", "images"),
            _SPLIT_OPTIONS,
        ),
        facts="74k rows in seven configs: the question is the user's turn of a chat, the gold `reward_model.ground_truth`. "
        "Columns taken from a training program that reads them; rows were not seen, and instructions inside the "
        "questions stay.",
    ),
    Declaration(
        name="mmfinereason",
        hub=Hub("OpenDataArena/MMFineReason-1.8M-Qwen3-VL-235B-Thinking", split="rl"),
        columns=ColumnsConfig(id=None, images="image"),
        quirks=(
            ("only", "is_consistent", "True"),
            ("between", "pass_rate", "0", "1"),
            ("stripped", "answer"),
            ("image_markers", "question", "image"),
            ("split_options", "question", "choices"),
        ),
        facts="The split `rl`, of which rows are kept that its two judges agree on and that a model solves sometimes but "
        "not always. Ids repeat between its parts. Columns taken from a training program that reads them.",
    ),
    Declaration(
        name="zwz-37k",
        hub=Hub("williamium/zwz-37k", configs=("37k",)),
        columns=ColumnsConfig(id=None, question="problem"),
        quirks=(("stripped", "answer"), ("image_markers", "problem", "images"), _SPLIT_OPTIONS),
        facts="37k fine-grained questions about photographs (a part of ZwZ-RL-VQA, Apache-2.0). A second column of full "
        "images is not read. Columns taken from a training program that reads them; rows were not seen.",
    ),
)
