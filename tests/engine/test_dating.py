"""Dates over many nights: what an ill, refused or abandoned night saw changes no date. And headers that tell of a build."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from crawler.cli.crawl import _closing
from crawler.cli.demo.site import Site
from crawler.cli.summary import _dates
from crawler.engine.finish import dating
from crawler.frontier.sqlite.frontier import SqliteFrontier
from crawler.model.facts import Facts
from crawler.model.outcome import Failed, Listed
from crawler.model.reasons import Cause
from crawler.model.robots import RobotsFile
from crawler.model.rows import PublicationRow
from crawler.model.settlement import Settlement, Verdict
from crawler.model.survey import Build, Evidence
from crawler.model.visit import Visit
from crawler.parse.url import Url
from crawler.rules import builds
from crawler.rules.lastmod import LADDERS, mass_change, why_unreliable
from crawler.settings.sections import Settings
from tests.rules.test_lastmod import crawl

SITE = "https://a.example"
PAGES = [Url(f"{SITE}/{number}") for number in range(5)]
DAY = 86_400
FAILED = Failed(Cause.SERVER_ERROR, "500")
START = 1_800_000_000
Shown = Mapping[Url, str | None]  # content of each page; None: it fails
Dates = dict[Url, int | None]  # day of each listed page's date


class Nights:
    """A site over many nights, without a network."""

    def __init__(self) -> None:
        self.now = float(START)
        self.frontier = SqliteFrontier(":memory:", clock=lambda: self.now, keep_runs=1_000)
        self.night = 0

    async def run(self, shown: Shown, ending: str = "published", header: int | None = None) -> Dates:
        """One crawl of what the site shows. `header`: Last-Modified of all pages."""
        self.night += 1
        self.now += DAY
        # Settings that were changed give an unfinished run up.
        await self.frontier.begin(f"settings {self.night if ending == 'abandoned' else ''}")
        await self.frontier.meet(SITE, RobotsFile("none", fetched=self.now), 0)
        await self.frontier.add([Visit(url) for url in PAGES])
        at = None if header is None else datetime.fromtimestamp(header, UTC)
        for lease in (await self.frontier.lease(100)).leases:
            content = shown[lease.visit.url]
            verdict = (
                Verdict(Listed(), Facts(200, header=at, content=content)) if content else Verdict(FAILED)
            )
            await self.frontier.settle([Settlement(lease, verdict)])
        if ending == "abandoned":
            return {}
        await dating.date(self.frontier, LADDERS["auto"])
        await self.frontier.keep()
        await self.frontier.finish()
        dates = {
            entry.url: None if entry.lastmod is None else (int(entry.lastmod.timestamp()) - START) // DAY
            async for chunk in self.frontier.entries()
            for entry in chunk
        }
        if ending == "published":
            await self.frontier.mark_published(PublicationRow(len(dates)))
        await self.frontier.conclude(refused=ending == "refused")
        return dates


def good(**edits: int) -> Shown:
    """Each page as it is; `p3=2` is the third page after two edits."""
    return {url: f"{url} {edits.get(f'p{number}', 0)}" for number, url in enumerate(PAGES)}


ILL: Shown = dict.fromkeys(PAGES, "down for maintenance")
ENDINGS = st.sampled_from(["published", "published", "refused", "abandoned"])
EDITS = st.sets(st.integers(0, len(PAGES) - 1))
NIGHTS = st.lists(st.tuples(st.sampled_from(["good", "good", "ill", "failing"]), EDITS, ENDINGS), max_size=12)


@limits(deadline=None, max_examples=150)
@given(NIGHTS)
def test_a_date_is_that_of_the_night_which_saw_the_edit_or_absent(
    nights: Sequence[tuple[str, set[int], str]],
) -> None:
    anyio.run(_hold_to_what_is_true, nights)


async def _hold_to_what_is_true(nights: Sequence[tuple[str, set[int], str]]) -> None:
    site = Nights()
    versions = [0] * len(PAGES)
    first_seen: dict[tuple[int, int], int] = {}  # the published night that saw a version first
    dated: dict[tuple[int, int], int] = {}
    published: Dates = {}
    last: list[int] | None = None  # what the last good night before saw, if that was published
    for kind, edits, ending in nights:
        for number in edits:
            versions[number] += 1
        shown = good(**{f"p{number}": version for number, version in enumerate(versions)})
        shown = {"good": shown, "ill": ILL, "failing": dict.fromkeys(PAGES)}[kind]
        dates = await site.run(shown, ending)
        if kind == "failing":
            assert dates.items() <= published.items(), "a page that fails for now has the date it had"
        published = dates if ending == "published" else published
        if ending != "published" or kind == "failing":
            continue
        if kind == "ill":
            assert set(dates.values()) <= {None}, "what an ill site says has no date"
            last = None
            continue
        for number, url in enumerate(PAGES):
            version = (number, versions[number])
            seen = first_seen.setdefault(version, site.night)
            assert dates[url] in {None, seen}
            assert dated.get(version) in {None, dates[url]}, "a date that was known is not forgotten"
            if dates[url] is not None:
                dated[version] = seen
        edited = [number for number in range(len(PAGES)) if last and last[number] != versions[number]]
        if 2 * len(edited) <= len(PAGES):
            assert all(dates[PAGES[number]] == site.night for number in edited), "few edits are dated"
        last = versions.copy()
    await site.frontier.close()


async def test_two_ill_nights_that_were_refused_give_no_date() -> None:
    site = Nights()
    await site.run(good())
    await site.run(ILL, "refused")
    await site.run(ILL, "refused")
    assert set((await site.run(good())).values()) == {None}


async def test_a_page_that_fails_after_a_refused_night_has_the_date_it_had() -> None:
    site = Nights()
    await site.run(good())
    dates = await site.run(good(p1=1))
    assert dates[PAGES[1]] == 2
    await site.run(ILL, "refused", header=START + DAY)
    assert await site.run(dict.fromkeys(PAGES)) == dates


async def test_a_new_template_dates_nothing_and_the_next_edit_is_dated() -> None:
    site = Nights()
    await site.run(good())
    assert (await site.run(good(p1=1)))[PAGES[1]] == 2
    template = {url: f"new template of {url}" for url in PAGES}
    assert set((await site.run(template)).values()) == {None}
    assert set((await site.run(template)).values()) == {None}
    assert await site.run(template | {PAGES[3]: "edited"}) == dict.fromkeys(PAGES) | {PAGES[3]: 5}
    assert (await site.run(good(p1=1)))[PAGES[1]] == 2, "what comes back is as old as it was"


async def test_headers_that_lied_are_not_believed_in_a_night_that_cannot_tell() -> None:
    site = Nights()
    hour = 3_600
    first = START + hour
    await site.run(good(), header=first)
    dates = [await site.run(good(), header=START + night * DAY) for night in (1, 2)]
    dates.append(await site.run(ILL, header=START + 3 * DAY))
    dates.append(await site.run(good(), header=START + 4 * DAY))
    assert [set(each.values()) for each in dates] == [{0}, {0}, {None}, {0}]


async def test_what_a_refused_run_saw_of_headers_convicts_and_acquits_nobody() -> None:
    site = Nights()
    await site.run(good(), header=START)
    await site.run(ILL, "refused", header=START + 2 * DAY)
    assert set((await site.run(good(), header=START + 3 * DAY)).values()) == {0}, (
        "moved, and the content did not"
    )


@pytest.mark.parametrize(
    ("known", "changed", "mass"), [(0, 0, False), (10, 5, False), (10, 6, True), (1, 1, True)]
)
def test_a_mass_change(known: int, changed: int, mass: bool) -> None:
    assert (mass_change(Evidence(SITE, 0, 0, 0, 0, known, changed)) is not None) is mass


@pytest.mark.parametrize(
    ("dated", "compared", "slid", "stands"),
    [(10, 0, 0, True), (10, 4, 0, True), (10, 5, 0, False), (10, 10, 6, True), (0, 0, 0, False)],
)
def test_a_conviction_stands_until_most_pages_speak_against_it(
    dated: int, compared: int, slid: int, stands: bool
) -> None:
    assert (why_unreliable(Evidence(SITE, dated, 0, compared, slid), "before") is not None) is stands


@pytest.mark.parametrize(
    ("dated", "within", "stating", "older", "lies", "noted"),
    [
        (51, 51, 51, 50, True, False),
        (100, 90, 3, 3, True, False),
        (100, 89, 89, 89, False, False),
        (100, 100, 0, 0, False, True),
        (100, 100, 100, 0, False, False),
        (100, 100, 100, 50, False, False),
        (100, 100, 1, 1, True, False),
        (4, 4, 4, 4, False, False),
        (5, 5, 4, 4, True, False),
        (5, 5, 0, 0, False, True),
    ],
)
def test_what_is_a_build(dated: int, within: int, stating: int, older: int, lies: bool, noted: bool) -> None:
    found = Build(SITE, dated, 0, 600, within, stating, older)
    assert (builds.why_unreliable(found) is not None) is lies
    assert (builds.note(found) is not None) is noted


@given(st.lists(st.integers(0, 3_000), max_size=60))
def test_the_window_with_the_most_dates_is_found(moments: list[int]) -> None:
    async def found() -> Build | None:
        site = Nights()
        await site.frontier.begin("")
        await site.frontier.meet(SITE, RobotsFile("none", fetched=site.now), 0)
        await site.frontier.add([Visit(Url(f"{SITE}/{number}")) for number in range(len(moments))])
        for lease in (await site.frontier.lease(100)).leases:
            at = datetime.fromtimestamp(START + moments[int(lease.visit.url.rpartition("/")[2])], UTC)
            await site.frontier.settle([Settlement(lease, Verdict(Listed(), Facts(200, header=at)))])
        some = await site.frontier.builds(builds.WINDOW, builds.OLDER)
        await site.frontier.close()
        return some[0] if some else None

    build = anyio.run(found)
    counts = [sum(first <= at <= first + builds.WINDOW for at in moments) for first in moments]
    assert (build.within if build else 0) == max(counts, default=0)
    if build:
        assert build.dated == len(moments)
        assert build.within == sum(build.first - START <= at <= build.last - START for at in moments)


pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@given(st.lists(st.tuples(st.integers(0, 2_000), st.integers(0, builds.WINDOW)), max_size=40))
def test_builds_are_remembered_up_to_a_bound(spans: list[tuple[int, int]]) -> None:
    known: dict[str, list[tuple[int, int]]] = {}
    for first, length in spans:
        known = builds.remembered(known, [Build(SITE, 9, first, first + length, 9, 9, 9)])
        assert any(start <= first and first + length <= end for start, end in known[SITE])
    some = known.get(SITE, [])
    assert len(some) <= builds.KEPT
    assert not [
        one for one in some for other in some if one != other and other[0] <= one[0] and one[1] <= other[1]
    ]


# -- over whole crawls -----------------------------------------------------------------------------------

BUILT = datetime(2026, 11, 20, 12, tzinfo=UTC)
NAMES = [f"/{number}" for number in range(8)]


def built(site: Site, stated: Mapping[str, str], at: datetime = BUILT, **texts: str) -> None:
    """All files are written within a minute; some pages state a date."""
    for number, name in enumerate(["/", *NAMES]):
        head = f'<meta property="article:modified_time" content="{stated[name]}">' if name in stated else ""
        text = texts.get(f"p{name[1:]}", "")
        links = NAMES if name == "/" else []
        site.page(name, head=head, text=text, links=links, lastmod=at + timedelta(seconds=5 * number))


async def notes(folder: Path) -> str:
    frontier = SqliteFrontier(str(folder / "s.db"), read_only=True)
    try:
        return _dates(await _closing(frontier, None, Settings())).plain
    finally:
        await frontier.close()


async def test_after_a_build_pages_take_the_date_they_state(tmp_path: Path) -> None:
    site = Site()
    stated = {name: f"2025-03-0{1 + number}" for number, name in enumerate(NAMES)}
    built(site, stated)
    with site.serve() as origin:
        expected: dict[str, Any] = {name: (date, "page") for name, date in stated.items()} | {"/": None}
        assert await crawl(origin, tmp_path) == expected
        assert "within ten minutes, as after a build" in await notes(tmp_path)
        assert await crawl(origin, tmp_path) == expected
        built(site, stated, BUILT + timedelta(hours=5))
        assert await crawl(origin, tmp_path) == expected, "built once more"


async def test_where_no_page_states_a_date_the_header_stands_and_that_is_said(tmp_path: Path) -> None:
    site = Site()
    built(site, {})
    with site.serve() as origin:
        assert set((await crawl(origin, tmp_path)).values()) == {("2026-11-20", "header")}
    assert "look like one build: 9 of 9" in await notes(tmp_path)


@pytest.mark.parametrize("state", ["2026-11-20", "2026-11-20T11:58:00Z", "2026-11-19T20:00:00Z"])
async def test_pages_that_were_truly_edited_within_minutes_keep_the_header(
    tmp_path: Path, state: str
) -> None:
    site = Site()
    built(site, dict.fromkeys(NAMES, state))
    with site.serve() as origin:
        assert set((await crawl(origin, tmp_path)).values()) == {("2026-11-20", "header")}
    assert "build" not in await notes(tmp_path)


async def test_a_page_that_was_not_built_again_has_the_date_of_no_build(tmp_path: Path) -> None:
    site = Site()
    stated = dict.fromkeys(NAMES[:4], "2025-03-01")
    built(site, stated)
    with site.serve() as origin:
        await crawl(origin, tmp_path)
        later = BUILT + timedelta(hours=20)
        for name in NAMES[6:]:
            site.page(name, text="<p>Edited.", lastmod=later)
        dates = await crawl(origin, tmp_path)
    assert {dates[name] for name in NAMES[:4]} == {("2025-03-01", "page")}
    assert {dates[name] for name in ["/", *NAMES[4:6]]} == {None}
    assert {dates[name] for name in NAMES[6:]} == {("2026-11-21", "header")}
