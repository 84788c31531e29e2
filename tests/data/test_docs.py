"""The page on data names what there is."""

from __future__ import annotations

import re
from pathlib import Path

from mmcorl.data.sources import SOURCES

PAGE = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")


def test_the_page_names_every_source():
    table = PAGE.partition("## Public sources")[2].partition("## Files")[0]
    assert set(re.findall(r"`([\w-]+)`", table)) >= set(SOURCES)
