"""The sources of dates, for single pages and over several runs."""

import gzip
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from crawler.app.job import open_job
from crawler.app.preflight import preflight
from crawler.app.report import each
from crawler.cli.demo.site import Site
from crawler.errors import ConfigError
from crawler.model.reply import Headers
from crawler.model.survey import Evidence
from crawler.ports import reads
from crawler.rules.lastmod import from_header, from_page, is_fresh, why_stated, why_unreliable
from crawler.settings.sections import Dates, Http, Output, Pace, Scope, Settings, State

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([], None),
        (["2024-01-02"], "2024-01-02T00:00:00"),
        (["2024-01-02T03:04:05+02:00"], "2024-01-02T01:04:05"),
        (["2024-01-02 03:04:05"], "2024-01-02T03:04:05"),
        (["2024-01-02T03:04:05"], "2024-01-02T03:04:05"),
        (["2024-01-02T03:04:05+0200"], "2024-01-02T01:04:05"),
        (["2024-01-02", "2025-01-02", "2023-01-02"], "2025-01-02T00:00:00"),
        (["2199-01-02", "2025-01-02"], "2025-01-02T00:00:00"),
        (["1980-01-01", "soon", "02.01.2024", "x" * 9_999], None),
    ],
)
def test_the_newest_credible_date_of_a_page(texts: list[str], expected: str | None) -> None:
    at = from_page(texts, NOW)
    assert (at.replace(tzinfo=None).isoformat() if at else None) == expected


@pytest.mark.parametrize(
    ("behind", "server", "fresh"),
    [(0, None, True), (4, None, True), (6, None, False), (3_600, 3_600, True), (3_600, 0, False)],
)
def test_the_time_of_the_request_is_recognised_by_either_clock(
    behind: int, server: int | None, fresh: bool
) -> None:
    headers = (
        [] if server is None else [("Date", format_datetime(NOW - timedelta(seconds=server), usegmt=True))]
    )
    assert is_fresh(NOW - timedelta(seconds=behind), Headers(headers), NOW) is fresh


@pytest.mark.parametrize(
    ("counts", "believed"),
    [
        ((0, 0, 0, 0), True),
        ((10, 5, 0, 0), True),
        ((10, 6, 0, 0), False),
        ((20, 0, 10, 5), True),
        ((20, 0, 10, 6), False),
        ((20, 0, 9, 9), True),  # too few to tell of the others
        ((3, 3, 0, 0), False),
    ],
)
def test_most_pages_decide(counts: tuple[int, int, int, int], believed: bool) -> None:
    assert (why_unreliable(Evidence("https://a.example", *counts)) is None) is believed


@pytest.mark.parametrize(
    ("days", "age", "believed"),
    [
        (0, None, True),
        (0.9, None, True),  # a zone that was taken for UTC
        (-0.9, None, True),
        (365, None, False),
        (-365, None, False),
        (-3, None, False),
        (-30, "2592000", True),  # from a cache
        (-30, "60", False),
        (-30, "9" * 40, False),
        (-30, "soon", False),
    ],
)
def test_a_server_whose_clock_is_wrong_dates_nothing(days: float, age: str | None, believed: bool) -> None:
    at = NOW + timedelta(days=days)
    fields = [
        ("Date", format_datetime(at, usegmt=True)),
        ("Last-Modified", format_datetime(OLD, usegmt=True)),
    ]
    headers = Headers([*fields, ("Age", age)] if age else fields)
    assert from_header(headers, NOW) == (OLD if believed else None)


# -- whole crawls ----------------------------------------------------------------------------------------

pytestmark = pytest.mark.anyio
PAGES = [f"/{number}" for number in range(11)]
OLD = datetime(2024, 1, 2, tzinfo=UTC)
Header = Callable[[str], Any]


def build(
    site: Site,
    header: Header,
    text: Callable[[str], str] = lambda path: f"<p>This is {path}.",
    head: str = "",
) -> None:
    for path in ["/", *PAGES]:
        site.page(path, links=PAGES if path == "/" else (), text=text(path), head=head, lastmod=header(path))


def published_dates(folder: Path) -> list[str]:
    sitemap = gzip.decompress((folder / "out/sitemap.xml.gz").read_bytes()).decode()
    return re.findall(r"<lastmod>([^<]*)<", sitemap)


async def crawl(origin: str, folder: Path, **dates: Any) -> dict[str, tuple[str, str] | None]:
    """The date and source of each listed page, by path."""
    settings = Settings(
        scope=Scope(start=(origin + "/",)),
        pace=Pace(rate=0.0),
        http=Http(retries=0),
        dates=Dates(**dates),
        output=Output(output=str(folder / "out")),
        state=State(state=str(folder / "s.db")),
    )
    found: dict[str, tuple[str, str] | None] = {}
    async with open_job(settings) as job:
        await job.crawl()
        await job.publish()
        async for entry in each(job.frontier.stream(reads.ListedEntries())):
            record = await job.frontier.read(reads.RecordOf(entry.url))
            assert record
            assert record.facts
            dated = record.facts.lastmod
            assert (dated.at if dated else None) == entry.lastmod
            date = (dated.at.date().isoformat(), dated.source.value) if dated else None
            found[entry.url.removeprefix(origin)] = date
    return found


def now(_: str = "") -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


@pytest.mark.system
async def test_correct_headers_are_trusted(tmp_path: Path) -> None:
    site = Site()
    build(site, lambda _: OLD)
    with site.serve() as origin:
        assert set((await crawl(origin, tmp_path)).values()) == {("2024-01-02", "header")}


@pytest.mark.system
async def test_headers_with_request_time_yield_to_stated_dates(
    tmp_path: Path,
) -> None:
    site = Site()
    build(site, now)
    site.page("/1", lastmod=now(), head='<meta property="article:modified_time" content="2025-03-04">')
    site.page("/2", lastmod=OLD)
    with site.serve() as origin:
        dates = await crawl(origin, tmp_path)
    assert dates.pop("/1") == ("2025-03-04", "page")
    assert set(dates.values()) == {None}, "also the page whose header may be true: nobody can tell"


@pytest.mark.system
async def test_a_single_page_that_just_changed_is_trusted(tmp_path: Path) -> None:
    site = Site()
    build(site, lambda path: now() if path == "/3" else OLD)
    with site.serve() as origin:
        dates = await crawl(origin, tmp_path)
    assert dates["/3"] == (now().date().isoformat(), "header")


@pytest.mark.system
async def test_header_that_changes_without_content_keeps_its_date(tmp_path: Path) -> None:
    site = Site()
    build(site, lambda _: OLD)
    with site.serve() as origin:
        await crawl(origin, tmp_path)
        build(site, lambda _: OLD + timedelta(days=30))
        assert set((await crawl(origin, tmp_path)).values()) == {("2024-01-02", "history")}
        build(
            site,
            lambda _: OLD + timedelta(days=60),
            lambda path: f"<p>This is {path}." + "<p>More." * (path == "/4"),
        )
        dates = await crawl(origin, tmp_path)
    assert dates.pop("/4") == (now().date().isoformat(), "history")
    assert set(dates.values()) == {("2024-01-02", "history")}


@pytest.mark.system
async def test_header_that_moved_alone_was_never_true(tmp_path: Path) -> None:
    """On some pages only; those of the others are believed."""
    site, dates = Site(), []
    first, later = now() - timedelta(days=30), now() - timedelta(days=20)
    with site.serve() as origin:
        for lying in (first, later, first):
            build(site, lambda path, at=lying: at if path in PAGES[:3] else OLD)  # type: ignore[misc]
            dates.append(await crawl(origin, tmp_path))
    assert dates[0]["/1"] == (first.date().isoformat(), "header")
    assert dates[1] == dates[2]
    assert [dates[1].pop(path) for path in PAGES[:3]] == [None] * 3
    assert set(dates[1].values()) == {("2024-01-02", "header")}


@pytest.mark.system
async def test_what_many_pages_state_at_first_is_that_of_a_build(tmp_path: Path) -> None:
    site = Site()
    for path in ["/", *PAGES]:
        at = OLD if path in PAGES[:2] else now()
        head = f'<meta property="article:modified_time" content="{at.isoformat()}">'
        site.page(path, links=PAGES if path == "/" else (), text=f"<p>This is {path}.", head=head)
    with site.serve() as origin:
        for _ in range(2):
            dates = await crawl(origin, tmp_path)
            assert [dates.pop(path) for path in PAGES[:2]] == [("2024-01-02", "page")] * 2
            assert set(dates.values()) == {None}


def with_menu(site: Site, header: Header, night: int, *edited: str) -> None:
    """The site of one night: each page has a menu, that names a page more each night."""
    menu = "".join(f"<li><a href=/n{number}>News {number}</a>" for number in range(night))
    build(
        site,
        header,
        lambda path: (
            f"<ul class=menu>{menu}</ul><h1>{path}</h1><p>This is it." + "<p>More." * (path in edited)
        ),
    )


@pytest.mark.system
async def test_header_that_follows_the_menu_is_unreliable(tmp_path: Path) -> None:
    site = Site()
    dates = []
    with site.serve() as origin:
        for night in range(1, 5):
            moved = OLD + timedelta(days=night)
            with_menu(site, dict.fromkeys(["/", *PAGES], moved).get, night, *["/4"] * (night == 4))
            dates.append(await crawl(origin, tmp_path))
    assert set(dates[0].values()) == {("2024-01-03", "header")}
    # In the second run most pages are compared by their bytes only; the others keep their first date.
    assert set(dates[2].values()) == {None, ("2024-01-03", "history")}
    assert dates[3].pop("/4") == (now().date().isoformat(), "history")
    assert set(dates[3].values()) <= {None, ("2024-01-03", "history")}


@pytest.mark.system
async def test_menu_that_changes_on_all_pages_dates_none(tmp_path: Path) -> None:
    site = Site()
    with site.serve() as origin:
        for night in range(1, 4):
            with_menu(site, lambda _: None, night)
            assert set((await crawl(origin, tmp_path)).values()) == {None}
        with_menu(site, lambda _: None, 4, "/4")
        today = (now().date().isoformat(), "history")
        for night in (4, 4, 5):
            with_menu(site, lambda _: None, night, "/4")
            dates = await crawl(origin, tmp_path)
            assert dates.pop("/4") == today, "and keeps its date when only the menu changes"
            assert set(dates.values()) == {None}


@pytest.mark.system
@pytest.mark.parametrize("header", [None, OLD])
async def test_links_are_content_of_a_page_that_alone_changes_them(
    tmp_path: Path, header: datetime | None
) -> None:
    site = Site()
    with site.serve() as origin:
        for more in ("", "<ul><li><a href=/1>One</a>", "<ul><li><a href=/1>One</a><li><a href=/2>Two</a>"):
            moved = header and header + timedelta(days=len(more))
            build(site, lambda _: header)
            site.page("/5", text=f"<h1>Links</h1><p>Some links.{more}", lastmod=moved)
            dates = await crawl(origin, tmp_path)
    expected = (moved.date().isoformat(), "header") if moved else (now().date().isoformat(), "history")
    assert dates.pop("/5") == expected
    assert set(dates.values()) == {("2024-01-02", "header") if header else None}


@pytest.mark.system
async def test_without_headers_the_date_comes_from_history(tmp_path: Path) -> None:
    site = Site()
    build(site, lambda _: None)
    with site.serve() as origin:
        assert set((await crawl(origin, tmp_path)).values()) == {None}, (
            "nobody knows yet, and nothing is invented"
        )
        assert set((await crawl(origin, tmp_path)).values()) == {None}
        build(site, lambda _: None, lambda path: f"<p>This is {path}. Views: 3" + "<p>More." * (path == "/5"))
        dates = await crawl(origin, tmp_path)
        assert dates.pop("/5") == (now().date().isoformat(), "history")
        assert set(dates.values()) == {None}
        site.page("/5", status=500)
        await crawl(origin, tmp_path)
        build(site, lambda _: None, lambda path: f"<p>This is {path}. Views: 4" + "<p>More." * (path == "/5"))
        assert (await crawl(origin, tmp_path))["/5"] == (now().date().isoformat(), "history"), (
            "an outage forgets nothing"
        )


@pytest.mark.system
@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ("auto", ("2024-01-02", "header")),
        ("header", ("2024-01-02", "header")),
        ("page", ("2025-03-04", "page")),
        ("none", None),
    ],
)
async def test_the_sources_of_dates_can_be_chosen(
    tmp_path: Path, chosen: str, expected: tuple[str, str] | None
) -> None:
    site = Site()
    build(site, lambda _: OLD, head='<meta property="article:modified_time" content="2025-03-04">')
    with site.serve() as origin:
        assert set((await crawl(origin, tmp_path, lastmod=chosen)).values()) == {expected}


@pytest.mark.system
@pytest.mark.parametrize(
    ("stated", "written"),
    [
        ("2025-03-04", "2025-03-04"),
        ("2025-03-04T05:06:07Z", "2025-03-04T05:06:07+00:00"),
        ("2025-03-04T23:00:00-01:00", "2025-03-05"),
    ],
)
async def test_a_day_stated_without_a_time_is_published_without_one(
    tmp_path: Path, stated: str, written: str
) -> None:
    site = Site()
    site.page("/", head=f'<meta property="article:modified_time" content="{stated}">')
    with site.serve() as origin:
        await crawl(origin, tmp_path)
    assert published_dates(tmp_path) == [written]


@pytest.mark.system
async def test_a_header_at_midnight_keeps_its_time(tmp_path: Path) -> None:
    site = Site()
    site.page("/", lastmod=datetime(2024, 1, 2, tzinfo=UTC))
    with site.serve() as origin:
        await crawl(origin, tmp_path)
    assert published_dates(tmp_path) == ["2024-01-02T00:00:00+00:00"]


COUNTER = '<p>This is {path}.<div class="visitors"><p>Visitors from {place}</div>'


@pytest.mark.system
async def test_changes_of_ignored_parts_give_no_date(tmp_path: Path) -> None:
    site = Site()
    chosen = {"lastmod_ignore": (".visitors", "#clock")}

    def place(name: str) -> None:
        build(
            site,
            lambda _: None,
            lambda path: COUNTER.format(path=path, place=name if path < "/2" else "Rome"),
        )

    with site.serve() as origin:
        place("Oslo")
        await crawl(origin, tmp_path, **chosen)
        place("Kyoto")
        assert set((await crawl(origin, tmp_path, **chosen)).values()) == {None}
        build(
            site,
            lambda _: None,
            lambda path: COUNTER.format(path=path, place="Rome") + "<p>More." * (path == "/5"),
        )
        dates = await crawl(origin, tmp_path, **chosen)
    assert dates.pop("/5") == (now().date().isoformat(), "history")
    assert set(dates.values()) == {None}


@pytest.mark.system
async def test_what_is_read_in_another_way_has_not_changed(tmp_path: Path) -> None:
    """The first run that ignores a part compares what it reads with what an earlier run read with it."""
    site = Site()
    build(
        site, lambda _: None, lambda path: COUNTER.format(path=path, place="Rome") if path == "/4" else path
    )
    with site.serve() as origin:
        await crawl(origin, tmp_path)
        assert set((await crawl(origin, tmp_path, lastmod_ignore=(".visitors",))).values()) == {None}
        build(
            site,
            lambda _: None,
            lambda path: COUNTER.format(path=path, place="Bonn") if path == "/4" else path,
        )
        assert set((await crawl(origin, tmp_path, lastmod_ignore=(".visitors",))).values()) == {None}


@pytest.mark.parametrize("selector", ["p >", "..x", ":unknown"])
def test_text_that_is_no_selector_is_refused(selector: str) -> None:
    with pytest.raises(ConfigError, match="is not a CSS selector"):
        preflight(
            Settings(scope=Scope(start=("https://a.example/",)), dates=Dates(lastmod_ignore=(selector,)))
        )


@pytest.mark.parametrize(
    ("restated", "is_trusted"), [(0, True), (21, True), (32, True), (33, False), (40, False)]
)
def test_half_of_stated_dates_may_move_alone(restated: int, is_trusted: bool) -> None:
    """These tell of themselves, and those of the other pages may be right."""
    evidence = Evidence("https://example.com", 0, 0, 0, 0, stating=40, restated=restated)
    assert (why_stated(evidence, None) is None) is is_trusted
