from __future__ import annotations

from pathlib import Path

from mmcorl.config import Config
from mmcorl.config_loading import dotted_paths
from mmcorl.config_page import describe

PAGE = Path(__file__).parents[1] / "docs" / "configuration.md"


def rows() -> dict[str, list[str]]:
    cells = [line.strip("| ").split(" | ") for line in describe().splitlines() if line.startswith("| `")]
    return {path.strip("`"): rest for path, *rest in cells}


def test_the_page_in_docs_is_that_of_the_tree():
    assert PAGE.read_text(encoding="utf-8") == describe(), (
        "run python -m mmcorl.config_page > docs/configuration.md"
    )


def test_every_setting_has_a_row_and_every_row_a_meaning():
    paths = set(dotted_paths(Config, {"agents": {"NAME": None}}))
    leaves = {path for path in paths if not any(other.startswith(f"{path}.") for other in paths)}
    leaves = {path for path in leaves if not path.startswith("data.eval.")}
    assert leaves <= set(rows())
    assert all(meaning.endswith(".") for _, _, meaning in rows().values())


def test_rows_tell_values_bounds_and_defaults():
    assert rows()["agents.NAME.model"][:2] == ["text", "required"]
    assert rows()["run.threads"][:2] == ["integer ≥ 1 or null", "null"]
    assert rows()["loss.scale"][:2] == ["`group`, `batch`, `none`", "`group`"]
    assert rows()["optimizer.betas"][:2] == ["list of 2 numbers", "`[0.9, 0.95]`"]
    assert rows()["optimizer.warmup_share"][:2] == ["number ≥ 0 and < 1", "`0.03`"]
    assert rows()["logging.completions"][:2] == ["true or false", "true"]
