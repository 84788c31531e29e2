import argparse

import pytest

from mmcorl.cli.arguments import named, positive
from mmcorl.errors import MmcorlError


def test_what_has_no_name_is_called_by_the_last_part_of_its_path():
    given = ["Qwen/Qwen2.5-VL-3B", "base=runs/a", "out/gemma.jsonl", "models/m/"]
    assert named(given, "--model") == {
        "Qwen2.5-VL-3B": "Qwen/Qwen2.5-VL-3B",
        "base": "runs/a",
        "gemma": "out/gemma.jsonl",
        "m": "models/m/",
    }


def test_two_of_one_name_are_told_apart_by_the_user():
    with pytest.raises(MmcorlError, match=r"two models are called m; .* --model one=x/m --model other=y/m"):
        named(["x/m", "y/m"], "--model")


def test_a_count_is_at_least_one():
    assert positive("3") == 3
    with pytest.raises(argparse.ArgumentTypeError, match="0 is below 1"):
        positive("0")
