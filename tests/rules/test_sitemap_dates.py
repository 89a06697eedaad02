"""The sitemap that a site had before as a source of dates: what it must look like, and what contradicts it."""

import gzip
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from crawler.cli.demo.site import Site
from crawler.model.reasons import Source
from crawler.model.survey import Build, Evidence
from crawler.rules.dated import Datable, Distrust
from crawler.rules.lastmod import DATE_SOURCES, from_sitemap, why_sitemap
from crawler.rules.record import DAY
from tests.rules.test_lastmod import crawl

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
PAGES = ["/", *(f"/{number}" for number in range(11))]
SPREAD = {path: f"2024-{1 + number:02}-02" for number, path in enumerate(PAGES)}
Found = Mapping[str, tuple[str, str] | None]


def build(
    site: Site, dates: Mapping[str, str], edited: Sequence[str] = (), header: datetime | None = None
) -> None:
    for path in PAGES:
        text = f"<p>This is {path}." + "<p>More." * (path in edited)
        site.page(path, links=PAGES if path == "/" else (), text=text, lastmod=header)
    site.sitemap("/sitemap.xml", PAGES, dates)


def from_sitemaps(dates: Found) -> dict[str, str]:
    return {path: date[0] for path, date in dates.items() if date and date[1] == "sitemap"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-01-02", "2024-01-02T00:00:00+00:00"),
        ("2024-01-02T03:04:05+01:00", "2024-01-02T02:04:05+00:00"),
        ("2026-11-24", None),  # to come
        ("2026-11-23T11:59:58Z", None),  # made for the request
        ("2026-11-23T11:59:00Z", "2026-11-23T11:59:00+00:00"),
        ("1970-01-01", None),
        ("yesterday", None),
        (None, None),
    ],
)
def test_a_date_in_a_sitemap_is_credible(text: str | None, expected: str | None) -> None:
    at = from_sitemap(text, NOW)
    assert (at.isoformat() if at else None) == expected


@pytest.mark.parametrize(
    ("within", "dated", "too_new", "announced", "is_believed"),
    [
        (1, 1, 0, 0, False),  # alike, as far as anyone can tell
        (5, 10, 0, 0, True),
        (6, 10, 0, 0, False),
        (1, 100, 50, 100, True),
        (1, 100, 51, 100, False),
        (1, 100, 9, 9, True),  # too few
        (1, 100, 10, 10, False),
    ],
)
def test_most_dates_decide_about_a_sitemap(
    within: int, dated: int, too_new: int, announced: int, is_believed: bool
) -> None:
    found = Build("https://a.example", dated, 0, 0, within, 0, 0)
    evidence = Evidence("https://a.example", 0, 0, 0, 0, announced=announced, too_new=too_new)
    assert (why_sitemap(found, evidence) is None) == is_believed


SAME, OTHER = ("one", "one"), ("two", "one")
SINCE = 100 * DAY


@pytest.mark.parametrize(
    ("content", "dated", "at", "is_used"),
    [
        ((None, None), None, 90 * DAY, True),  # a PDF
        (("one", None), None, 90 * DAY, True),  # found for the first time
        (SAME, 50 * DAY, 90 * DAY, False),  # the content is older
        (SAME, 50 * DAY, 50 * DAY, True),  # as last time
        (SAME, None, 90 * DAY, True),
        (SAME, None, SINCE + 1, False),  # nothing changed since then
        (OTHER, None, SINCE + 1, True),
        (OTHER, None, SINCE - 1, False),  # of the content before
        (OTHER, 50 * DAY, 50 * DAY, False),
    ],
)
def test_history_of_a_page_contradicts_its_date(
    content: tuple[str | None, str | None], dated: int | None, at: int, is_used: bool
) -> None:
    now, before = content
    page = Datable(None, None, SINCE + DAY, now, before, before, dated, None, at)
    found = page.date(DATE_SOURCES["auto"], Distrust(), SINCE + 0.5)
    assert (found == (at, Source.SITEMAP)) == is_used
    assert page.date(DATE_SOURCES["auto"], Distrust(sitemap=True), SINCE + 0.5) != (at, Source.SITEMAP)


def test_a_day_may_be_its_last_second() -> None:
    page = Datable(None, None, SINCE + DAY, "two", "one", "one", None, None, SINCE)
    assert page.date(DATE_SOURCES["auto"], Distrust(), SINCE + 100.5) == (SINCE, Source.SITEMAP)


@pytest.mark.system
async def test_pages_without_other_dates_take_those_of_the_sitemap(tmp_path: Path) -> None:
    site = Site()
    build(site, SPREAD)
    with site.serve() as origin:
        assert from_sitemaps(await crawl(origin, tmp_path)) == SPREAD
        text = gzip.decompress((tmp_path / "out/sitemap.xml.gz").read_bytes()).decode()
        assert "<lastmod>2024-01-02</lastmod>" in text, "a day stays a day"
        assert from_sitemaps(await crawl(origin, tmp_path)) == SPREAD
        today = datetime.now(UTC).date().isoformat()
        build(site, SPREAD, edited=["/4"])
        dates = dict(await crawl(origin, tmp_path))
        assert dates.pop("/4") == (today, "history"), "the sitemap is not kept up to date"
        assert from_sitemaps(dates) == {path: SPREAD[path] for path in PAGES if path != "/4"}
        later = dict.fromkeys(PAGES, (datetime.now(UTC) - timedelta(minutes=5)).isoformat())
        build(site, later, edited=["/4"])
        again = dict(await crawl(origin, tmp_path))
        assert again.pop("/4") == (today, "history")
        assert {path: date[0] for path, date in again.items() if date} == {
            path: SPREAD[path] for path in PAGES if path != "/4"
        }, "content that is the same keeps its date"


@pytest.mark.system
async def test_a_trusted_header_comes_first(tmp_path: Path) -> None:
    site = Site()
    build(site, SPREAD, header=datetime(2025, 1, 2, tzinfo=UTC))
    with site.serve() as origin:
        assert set((await crawl(origin, tmp_path)).values()) == {("2025-01-02", "header")}


@pytest.mark.system
@pytest.mark.parametrize("kind", ["alike", "now", "future", "within minutes"])
async def test_a_sitemap_that_says_when_it_was_made_gives_no_date(tmp_path: Path, kind: str) -> None:
    site = Site()
    now = datetime.now(UTC)
    made = now - timedelta(hours=3)
    moments = {
        "alike": ["2024-05-06T07:08:09Z"] * len(PAGES),
        "now": [now.isoformat()] * len(PAGES),
        "future": [f"2999-{1 + number:02}-01" for number in range(len(PAGES))],
        "within minutes": [
            (made - timedelta(seconds=40 * number)).isoformat() for number in range(len(PAGES))
        ],
    }
    build(site, dict(zip(PAGES, moments[kind], strict=True)))
    with site.serve() as origin:
        assert set((await crawl(origin, tmp_path)).values()) == {None}


@pytest.mark.system
async def test_what_was_published_by_us_is_no_source(tmp_path: Path) -> None:
    site = Site()
    build(site, {}, header=datetime(2025, 1, 2, tzinfo=UTC))
    site.page("/1", lastmod=datetime(2025, 3, 2, tzinfo=UTC))
    site.page("/2", lastmod=datetime(2025, 4, 2, tzinfo=UTC))
    with site.serve() as origin:
        assert set((await crawl(origin, tmp_path)).values()) > {("2025-01-02", "header")}
        published = gzip.decompress((tmp_path / "out/sitemap.xml.gz").read_bytes())
        for number, path in enumerate(PAGES):  # the times of requests: no header is believed any more
            site.page(
                path, links=PAGES if path == "/" else (), text=f"New {number}.", lastmod=datetime.now(UTC)
            )
        site.raw("/copied.xml", body=published, headers=[("Content-Type", "application/xml")])
        site.robots("Sitemap: {origin}/copied.xml")
        assert set((await crawl(origin, tmp_path)).values()) == {None}
        (tmp_path / "s.db").unlink()
        assert set((await crawl(origin, tmp_path)).values()) == {None}, "also without a state"
