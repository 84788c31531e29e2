"""Tiny models of the real architectures, for tests, benchmarks and the quickstart.

`make_tiny` writes a complete `from_pretrained` folder with random float32 weights: the family's real architecture,
special tokens, chat format, stop tokens and image layout, at about half a million parameters. Nothing is downloaded.

What a family needs in order to be *used* lives in `mmcorl.agents.backbones` and nowhere else. This package is the
one exception to that rule, because a model cannot be *made* without naming its family; no other module may ask it
what a family is like.
"""

from mmcorl.agents.tiny.families import FAMILIES
from mmcorl.agents.tiny.make import make_tiny
from mmcorl.agents.tiny.recipe import TinySizes

__all__ = ["FAMILIES", "TinySizes", "make_tiny"]
