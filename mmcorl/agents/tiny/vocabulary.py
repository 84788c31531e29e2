"""The words of the tiny models: a byte-level BPE tokenizer trained on a few lines of text.

Every word of the rendered scenes is one token, which keeps their completions short; any other text (Chinese, LaTeX,
emoji) falls apart into smaller pieces and bytes but is always encoded and decoded without loss.
"""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

# As in the real tokenizers of these families words carry their leading space; unlike there, so do single digits.
_PIECES = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)| ?\p{L}+| ?\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"

_SCENE_WORDS = (
    "red blue green yellow purple orange circle circles square squares triangle triangles shape shapes bar bars "
    "many more than are there is the in this picture chart of or and together Which taller shorter value "
    "colour both count number difference between highest lowest what equal 0 1 2 3 4 5 6 7 8 9"
)
_OPENINGS = ("How many", "What is", "Which", "Think", "Is")
_CHAT = (
    "system\nYou are a helpful assistant.\nuser\nassistant\nmodel\n"
    "Think, then answer.\nThink step by step, then put your final answer in \\boxed{}.\n"
    "A. B. C. D. E. (A) (B) (C) (D) Options: Choices: Answer: Question: Image: The answer is Therefore, so that"
)
_MATHS = (
    "Find the value of x if $\\frac{1}{2} + \\sqrt{3} = 0$. Let ABC be a triangle with angle $90^\\circ$ and area "
    "$\\pi r^2$. Compute the sum of all positive integers n such that $n \\leq 10$. What is the length of the side? "
    "As shown in the figure, the line is parallel to the plane, then the area of the rectangle is $\\cdot$ "
    "$\\begin{matrix} a & b \\end{matrix}$ \\left( \\right) \\text{ } \\sin \\cos \\log \\times"
)
_REASONING_TAGS = ("<think>", "</think>", "<answer>", "</answer>")
_VOCABULARY_LIMIT = 576


def train_tokenizer(specials: Sequence[str], *, specials_first: bool, bos: str | None) -> Tokenizer:
    """A byte-level BPE tokenizer whose special tokens are `specials`.

    `specials_first` gives them the ids from 0 on, in order (as in Gemma), else they follow the vocabulary (as in
    Qwen and Llama). With `bos` every encoded text starts with it unless the caller asks for no special tokens.
    The tags of reasoning and answer are single tokens but not special: decoding must show them to the grader.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=_VOCABULARY_LIMIT,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        special_tokens=list(specials) if specials_first else [],
        show_progress=False,
    )
    # Scenes come often, so that each of their words is merged whole before the limit cuts the rest.
    scenes = [" " + _SCENE_WORDS, *_OPENINGS] * 50
    tokenizer.train_from_iterator([*scenes, *[_CHAT] * 20, *[_MATHS] * 2], trainer)
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in specials])
    tokenizer.add_tokens([AddedToken(tag, special=False, normalized=False) for tag in _REASONING_TAGS])
    if bos is not None:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", special_tokens=[(bos, tokenizer.token_to_id(bos))]
        )
    return tokenizer
