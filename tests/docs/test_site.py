"""The site: built without a warning, whole, and readable from disk. Needs Sphinx, MyST and furo."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

sphinx = pytest.importorskip("sphinx.application", reason="Sphinx is not installed")
pytest.importorskip("myst_parser", reason="MyST is not installed")
pytest.importorskip("furo", reason="furo is not installed")

pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of MyST, about Sphinx

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_LOADED = re.compile(r"<(?:script|link|img)\b[^>]*?(?:src|href)=\"([^\"]+)\"")
_LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory):
    """`build(source)`: the built folder, and what the build warned of."""
    counter = iter(range(100))

    def do(source: Path, confdir: Path = DOCS) -> tuple[Path, str]:
        from io import StringIO

        home, warnings = tmp_path_factory.mktemp(f"site{next(counter)}"), StringIO()
        app = sphinx.Sphinx(
            source, confdir, home / "out", home / "trees", "html", status=None, warning=warnings
        )
        app.build()
        return home / "out", warnings.getvalue()

    return do


@pytest.fixture(scope="module")
def site(build):
    return build(DOCS)


def test_the_build_warns_of_nothing(site):
    assert site[1] == ""


def test_every_page_is_there_and_in_the_navigation(site):
    index = (site[0] / "index.html").read_text(encoding="utf-8")
    for page in DOCS.glob("*.md"):
        assert (site[0] / f"{page.stem}.html").is_file()
        assert page.stem == "index" or f'href="{page.stem}.html"' in index


def test_nothing_is_loaded_from_the_network(site):
    for page in site[0].glob("*.html"):
        assert [url for url in _LOADED.findall(page.read_text(encoding="utf-8")) if "//" in url] == []
    for sheet in site[0].rglob("*.css"):
        assert "url(http" not in sheet.read_text(encoding="utf-8").replace(" ", "")


def test_a_link_without_its_target_is_a_warning(build, tmp_path):
    (tmp_path / "index.md").write_text(
        "# Start\n\n[a](nowhere.md) [b](#no-such-heading) [c](index.md#nor-this)\n"
    )
    _, warnings = build(tmp_path)
    assert all(name in warnings for name in ("nowhere.md", "no-such-heading", "nor-this"))


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "eval/README.md"])
def test_files_that_are_linked_outside_the_site_exist(page):
    links = _LINK.findall((ROOT / page).read_text(encoding="utf-8"))
    missing = [
        link for link in links if "//" not in link and not (ROOT / page).parent.joinpath(link).exists()
    ]
    assert links and missing == []
