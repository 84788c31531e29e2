import io
import re
import shutil
from collections import Counter
from html.parser import HTMLParser

import pytest
from PIL import Image

from mmcorl.analysis.report.page import as_html, as_markdown, as_png
from mmcorl.analysis.report.reading import read_report

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)> {{{{ 7 * 7 }}}} <answer>{}</answer>"


class Elements(HTMLParser):
    """Every start tag of a page with its attributes, and its text."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data

    def count(self, tag, **attributes):
        return sum(name == tag and attributes.items() <= found.items() for name, found in self.tags)


def page_of(*paths):
    return Elements(as_html(read_report(paths)))


def test_the_page_shows_all_parts_of_a_run_and_asks_the_network_for_nothing(make_run):
    page = as_html(read_report([make_run(alarms=[{"step": 2, "what": "too hot"}])]))
    found = Elements(page)
    assert found.count("article") == 12, "all four problems of all three steps"
    assert found.count("input", type="checkbox") == 2
    for text in (
        "Complete: 3 of 3 steps",
        "too hot",
        "80.0 [80.0, 80.0]",
        "How many",
        "problems_per_step: 4",
    ):
        assert text in found.text
    links = [
        value for _, tag in found.tags for key, value in tag.items() if key in ("src", "href", "xlink:href")
    ]
    assert links and all(link.startswith(("data:", "#")) for link in links)
    assert len(page) < 5_000_000


def test_in_markdown_a_span_of_one_step_is_that_step(make_run):
    text = as_markdown(read_report([make_run()]))
    table = text.partition("## Who corrects whom")[2]
    assert re.findall(r"^\| (\d[^|]*) \|", table, re.MULTILINE)[:3] == ["1", "2", "3"]


def test_every_chart_has_a_text_alternative_and_no_id_comes_twice(make_run):
    found = page_of(make_run())
    charts = [tag for name, tag in found.tags if name == "svg" and tag.get("role") == "img"]
    assert len(charts) > 6 and all(len(tag["aria-label"]) > 30 for tag in charts)
    ids = Counter(tag["id"] for _, tag in found.tags if "id" in tag)
    assert max(ids.values()) == 1
    labelled = {tag["for"] for _, tag in found.tags if "for" in tag}
    assert labelled <= set(ids)


def test_what_a_completion_holds_is_shown_and_never_run(make_run):
    found = page_of(make_run(text=HOSTILE, alarms=[{"step": 1, "what": HOSTILE}]))
    assert found.count("script") == 1 and found.count("img", src="x") == 0
    assert "</script><script>alert(1)</script>" in found.text and "{{ 7 * 7 }}" in found.text


def test_several_runs_lie_over_each_other_and_their_settings_are_compared(make_run):
    own = {"cohort": {"topology": "self"}}
    found = page_of(make_run(name="first"), make_run(name="second", **own))
    assert found.count("input", type="checkbox") == 4
    assert "cohort.topology" in found.text and "TTRL: own votes" in found.text
    lines = [
        tag["id"]
        for _, tag in found.tags
        if tag.get("id", "").startswith("line-") and "agreement" in tag["id"]
    ]
    assert lines == [f"line-{run}-{agent}-agreement" for run in (0, 1) for agent in (0, 1)]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"steps": 1}, "Unfinished: 1 of 3 steps"),
        ({"steps": 0, "evaluated": False, "code": None}, "Nothing has been written down yet"),
        ({"steps": 2, "code": None}, "still going on, or was killed"),
        ({"evaluated": False}, "There is no held-out evaluation"),
    ],
)
def test_runs_that_are_short_unfinished_or_not_evaluated(make_run, settings, words):
    report = read_report([make_run(**settings)])
    assert words in Elements(as_html(report)).text
    assert "# pair" in as_markdown(report)
    assert as_png(report).startswith(b"\x89PNG")


def test_a_run_whose_data_is_gone_says_so_and_shows_the_rest(make_run):
    report = read_report([make_run(data={"train": {"path": "/nowhere/at/all.jsonl"}})])
    found = Elements(as_html(report))
    assert "/nowhere/at/all.jsonl does not exist" in found.text and "nothing to judge by" in found.text
    assert found.count("article") == 12 and found.count("img") == 0
    assert "labelled answers are missing" in as_markdown(report)


def test_a_run_without_labels_is_not_judged(make_run, tmp_path):
    (tmp_path / "open.jsonl").write_text(
        "".join(f'{{"id": "count-1-{place}", "question": "How many?"}}\n' for place in range(4))
    )
    found = page_of(make_run(data={"train": {"path": str(tmp_path / "open.jsonl")}}))
    assert "nothing to judge by" in found.text and "How many?" in found.text


def test_long_completions_are_shortened_in_the_middle(make_run):
    page = as_html(read_report([make_run(text="<" * 200_000 + "<answer>{}</answer>")]))
    assert len(page) < 5_000_000
    assert "characters in the middle are not shown" in page and "&lt;answer&gt;3&lt;/answer&gt;" in page


def test_a_page_without_a_server_asks_none_and_its_script_is_the_only_one_allowed(make_run):
    report = read_report([make_run()])
    page, served = as_html(report), as_html(report, 5.0, "one")
    assert "connect-src" not in page and "data-poll-seconds" not in Elements(page).tags[0][1]
    assert "connect-src 'self'" in served and 'data-version="one"' in served
    assert re.search(r"script-src 'sha256-[A-Za-z0-9+/]{43}='", page)


def test_markdown_escapes_what_would_break_its_tables(make_run):
    text = as_markdown(read_report([make_run(alarms=[{"step": 1, "what": "a|b <b>\n# c"}])]))
    assert "a\\|b \\<b\\> \\# c" in text
    assert "| pair | Co-RL: the peer's votes | ann | 50.0 | 80.0 \\[80.0, 80.0\\] |" in text


def test_the_picture_has_all_curves(make_run):
    with Image.open(io.BytesIO(as_png(read_report([make_run()])))) as picture:
        assert picture.width > 1200 and picture.height > 800


def test_a_run_without_files_of_completions_says_where_they_would_be(make_run):
    """As of a version that wrote them elsewhere; the setting alone does not tell."""
    path = make_run()
    shutil.rmtree(path / "agents" / "ann" / "completions")
    shutil.rmtree(path / "agents" / "bob" / "completions")
    text = as_html(read_report([path]))
    assert "There are no files of completions in <code>agents/*/completions</code>" in text
