"""Settings, alarms and metrics that the pages name are ones that there are."""

from __future__ import annotations

import re
from pathlib import Path

from mmcorl.config import Config
from mmcorl.config_loading import dotted_paths
from mmcorl.training import monitors

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
SECTIONS = "|".join(Config.model_fields)


def test_every_setting_on_a_page_is_one():
    known = set(dotted_paths(Config, {"agents": {"NAME": None}}))
    unknown = {}
    for page in PAGES:
        for name in re.findall(
            rf"`((?:{SECTIONS})(?:\.[\w*]+)+)(?:=[^`]*)?`", page.read_text(encoding="utf-8")
        ):
            setting = re.sub(r"^agents\.[\w*]+", "agents.NAME", name)
            if setting not in known and not setting.endswith((".*", ".json", ".yaml", ".py", ".jsonl")):
                unknown[name] = page.name
    assert unknown == {}


def test_every_alarm_has_its_place_on_the_pages():
    alarms = {rule.name for rule in monitors._RULES}
    for page in ("footguns.md", "metrics.md"):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        assert alarms <= set(re.findall(r"`(\w+)`", text)), page
