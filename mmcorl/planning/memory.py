"""How many bytes each part of training takes: plain arithmetic on sizes, nothing is loaded or asked.

Sizes of layers count what PyTorch keeps for the backward pass of the transformer layers of Hugging Face transformers,
tensor by tensor, in the manner of Korthikanti et al. 2022 (Reducing Activation Recomputation in Large Transformer
Models, section 4), but for layers without dropout, with grouped queries, gated feed-forward and fused attention.
`width` is the bytes of a number in the forward pass: 4, or 2 under bfloat16, where norms and the hidden state between
layers stay at 4.
"""

from __future__ import annotations

from mmcorl.planning.shapes import Tower

FLOAT32 = 4


def layer_kept(tower: Tower, width: int, scores_row: int = 0, *, own_trained: bool = True) -> int:
    """Bytes a token that one layer keeps for its gradient.

    Kept are what norms read and, where their own weights are trained, what they have normalised; what each linear layer
    reads (one tensor for all that read the same, but a cast copy for each under bfloat16); query, key, value and output
    of attention with a float32 normaliser a head; and the feed-forward part's inner tensors, four where it is gated
    (gate, its activation, up, their product), else two. Eager attention keeps the softmax over `scores_row` positions
    for each head, in float32 and as it is multiplied.
    """
    reads = 2 * FLOAT32 if width == FLOAT32 else tower.readers * width
    scores = tower.heads * scores_row * (width if width == FLOAT32 else width + FLOAT32)
    return (
        (tower.norms + (tower.normalised if own_trained else 0)) * FLOAT32
        + reads * tower.hidden
        + tower.attention * width
        + tower.heads * FLOAT32
        + (4 if tower.gated else 2) * tower.feed_forward * width
        + scores
    )


def layer_checkpoint(tower: Tower) -> int:
    """Bytes a token that one checkpointed layer keeps: its input."""
    return tower.hidden * FLOAT32


def layer_working(tower: Tower, width: int) -> int:
    """Bytes a token for what lives only while one layer is computed or differentiated.

    That is the hidden state and what is added to it, and the widest moment: three tensors of the feed-forward part
    (gate, up and their product, or their gradients), or queries, keys, values and output of attention.
    """
    inner = max((3 if tower.gated else 2) * tower.feed_forward, 4 * tower.queries)
    return 2 * tower.hidden * FLOAT32 + inner * width


def cache(tower: Tower, width: int) -> int:
    """Bytes a token of the key-value cache of transformers; rotary positions leave keys in float32."""
    return tower.layers * tower.keys * (FLOAT32 + width)


def head_turn(tokens: int, vocabulary: int, width: int, *, backward: bool) -> int:
    """Bytes of the logits of so many tokens, with what is made of them.

    Forward: the logits, the same scaled in float32, and their exponentials. Backward: the scaled logits, and gradients
    of two of their uses with their sum.
    """
    return tokens * vocabulary * (4 * FLOAT32 if backward else width + 2 * FLOAT32)


def drawing(rows: int, vocabulary: int) -> int:
    """Bytes while a token of each row is drawn: three float32 tensors over the vocabulary, and two in float64."""
    return rows * vocabulary * (3 * FLOAT32 + 2 * 8)


def adam_state(trained: int, *, eight_bit: bool) -> int:
    """Bytes of AdamW's two moments: float32, or 8 bits with a float32 scale for every 256 numbers (bitsandbytes)."""
    return 2 * trained * FLOAT32 if not eight_bit else 2 * trained + 2 * trained * FLOAT32 // 256
