"""Layouts on a group small enough to write down."""

from __future__ import annotations

import torch

from mmcorl.agents.batches import TokenGroup, plain_batch, prompt_batch, tree_batch, tree_mask
from mmcorl.agents.processors import Prompt


def prompt(ids: list[int], name: str = "p", types: list[int] | None = None) -> Prompt:
    return Prompt(
        problem_id=name,
        text="",
        images=(),
        ids=torch.tensor(ids),
        tokens={"kind": torch.tensor(types or [0] * len(ids))},
        vision={},
        positions=torch.arange(len(ids)),
    )


SHORT = TokenGroup(prompt([11, 12]), [torch.tensor([21, 22, 23]), torch.tensor([31])])
LONG = TokenGroup(prompt([13, 14, 15], types=[0, 1, 1]), [torch.tensor([41, 42])])


def test_prompts_are_padded_on_the_left():
    batch = prompt_batch([SHORT.prompt, LONG.prompt])
    assert batch.ids.tolist() == [[0, 11, 12], [13, 14, 15]]
    assert batch.mask.tolist() == [[0, 1, 1], [1, 1, 1]]
    assert batch.next_position.tolist() == [2, 3]
    assert batch.tokens["kind"].tolist() == [[0, 0, 0], [0, 1, 1]]


def test_a_tree_row_holds_the_prompt_once_and_no_last_tokens():
    batch = tree_batch([SHORT, LONG])
    assert batch.ids.tolist() == [[0, 11, 12, 21, 22], [13, 14, 15, 41, 0]]
    assert batch.segment.tolist() == [[-1, 0, 0, 1, 1], [0, 0, 0, 1, -1]]
    assert batch.positions.tolist() == [[0, 0, 1, 2, 3], [0, 1, 2, 3, 3]]
    assert batch.logits_kept == 3
    assert batch.target.tolist() == [21, 22, 23, 31, 41, 42]
    assert batch.row.tolist() == [0, 0, 0, 0, 1, 1]
    # 21, 31 and 41 are predicted at the end of their prefix; 22 at 21, 23 at 22, 42 at 41.
    assert batch.logit.tolist() == [0, 1, 2, 0, 0, 1]


def test_completions_do_not_see_each_other():
    group = TokenGroup(prompt([11, 12]), [torch.tensor([21, 22]), torch.tensor([31, 32, 33])])
    seen = tree_mask(tree_batch([group]))[0, 0]
    #             11 12 21 31 32
    assert seen.int().tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 1, 0, 1, 0],
        [1, 1, 0, 1, 1],
    ]


def test_a_window_counts_along_prefix_and_completion():
    group = TokenGroup(prompt([11, 12]), [torch.tensor([21, 22]), torch.tensor([31, 32, 33])])
    seen = tree_mask(tree_batch([group]), window=2)[0, 0]
    assert seen[3].int().tolist() == [0, 1, 0, 1, 0]  # 31 follows 12, whatever lies between them in the row
    assert seen[4].int().tolist() == [0, 0, 0, 1, 1]


def test_tokens_of_one_image_see_each_other():
    image = torch.tensor([[False, True, True, False, True]])
    group = TokenGroup(prompt([1, 2, 3, 4, 5]), [torch.tensor([9])])
    seen = tree_mask(tree_batch([group]), image_tokens=image)[0, 0]
    assert seen[1].int().tolist() == [1, 1, 1, 0, 0]
    assert seen[4].int().tolist() == [1, 1, 1, 1, 1]
    assert not seen[1, 4]  # another image


def test_plain_rows_repeat_the_prompt_and_pad_on_the_right():
    batch = plain_batch([SHORT, LONG])
    assert batch.ids.tolist() == [[11, 12, 21, 22, 23], [11, 12, 31, 0, 0], [13, 14, 15, 41, 42]]
    assert batch.mask.sum(1).tolist() == [5, 3, 5]
    assert batch.target.tolist() == [21, 22, 23, 31, 41, 42]
    first_kept = batch.ids.shape[1] - batch.logits_kept
    assert (batch.logit + first_kept).tolist() == [1, 2, 3, 1, 2, 3]
