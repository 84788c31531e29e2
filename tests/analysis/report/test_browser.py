"""The page in a real browser. Needs Playwright and a Chromium: its own, or one on the PATH."""

import shutil

import pytest

from mmcorl.analysis.report.page import as_html
from mmcorl.analysis.report.reading import read_report

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

HOSTILE = "</script><script>document.title='broken'</script><b>bold</b> <answer>{}</answer>"


@pytest.fixture(scope="module")
def browser():
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with playwright.sync_playwright() as engine:
        try:
            chromium = engine.chromium.launch(executable_path=found, args=["--no-sandbox"])
        except playwright.Error as error:
            pytest.skip(f"no Chromium starts: {error.message.splitlines()[0]}")
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def report(write_run, tmp_path_factory):
    """The report of two runs, on disk."""
    home = tmp_path_factory.mktemp("report")
    own = {"cohort": {"topology": "self"}}
    runs = [write_run(home, name="first", text=HOSTILE), write_run(home, name="second", **own)]
    (home / "report.html").write_text(as_html(read_report(runs)), encoding="utf-8")
    return home / "report.html"


@pytest.fixture
def open_page(browser, report):
    """`open_page(width, scheme)`: the report, opened from disk; it must leave the console empty."""
    said, contexts = [], []

    def open_it(width=1280, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on(
            "request", lambda request: said.append(request.url) if request.url.startswith("http") else None
        )
        page.goto(report.as_uri())
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert said == [], "no message, no error, no request to the network"


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_its_window_in_light_and_dark(open_page, width, scheme):
    page = open_page(width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in background[4:-1].split(",")) / 3
    assert (brightness > 200) == (scheme == "light")
    line = page.locator("#line-0-0-agreement path").first
    assert line.evaluate("path => getComputedStyle(path).stroke") != "none"


def test_samples_are_turned_by_keyboard_alone(open_page):
    page = open_page()
    assert page.locator(".sample:visible").count() == 1
    button = page.get_by_role("button", name="Next problem")
    button.focus()
    page.keyboard.press("Enter")
    assert page.locator("#place").inner_text() == "2 of 24"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    assert page.locator("#place").inner_text() == "3 of 24"
    select = page.get_by_label("Problem", exact=True)
    select.focus()
    page.keyboard.press("End")
    assert page.locator("#place").inner_text() == "24 of 24"
    assert page.locator(".sample:visible h3").inner_text() == "second, step 3, problem count-1-3"
    address = page.url
    assert address.endswith("#" + page.locator(".sample:visible").get_attribute("id"))
    page.reload()
    assert page.locator("#place").inner_text() == "24 of 24", "the address remembers the sample"


def test_lines_of_runs_and_agents_can_be_hidden(open_page):
    page = open_page()
    page.get_by_role("checkbox", name="second").focus()
    page.keyboard.press("Space")
    page.get_by_role("checkbox", name="bob").uncheck()
    shown = [
        page.locator(f"#line-{run}-{agent}-agreement").is_visible() for run in (0, 1) for agent in (0, 1)
    ]
    assert shown == [True, False, False, False]


def test_hostile_completions_are_text(open_page):
    page = open_page()
    assert page.title() == "Report: first and second"
    assert "</script><script>" in page.locator(".completions .text").first.inner_text()


def test_every_control_has_a_name(open_page):
    page = open_page()
    controls = page.locator("button, select, input, summary").all()
    unnamed = [
        control.evaluate("e => e.outerHTML")
        for control in controls
        if not (control.evaluate("e => (e.labels?.[0]?.innerText ?? '') + (e.innerText ?? '')")).strip()
    ]
    assert len(controls) > 10 and unnamed == []
