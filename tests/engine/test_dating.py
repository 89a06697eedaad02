"""Dates over many runs: error pages, refused and abandoned runs change no date; Last-Modified that a build has set."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import example, given
from hypothesis import settings as limits
from hypothesis import strategies as st

from crawler.app.report import each
from crawler.cli.demo.site import Site
from crawler.cli.run_facts import state_facts
from crawler.cli.summary import date_words, with_defaults
from crawler.engine.finish import dating
from crawler.frontier.sqlite.frontier import SqliteFrontier
from crawler.model.facts import Facts
from crawler.model.note import DATE_NOTES
from crawler.model.outcome import Failed, Listed
from crawler.model.reasons import Cause
from crawler.model.reply import RobotsFile
from crawler.model.rows import PublicationRow
from crawler.model.settlement import Settlement, Verdict
from crawler.model.survey import LATELY, LONG_AGO, Build, Evidence
from crawler.model.visit import Visit
from crawler.parse.fingerprint import digest, piece
from crawler.parse.url import Url
from crawler.ports import SiteRule, reads
from crawler.rules import lastmod, noise
from crawler.rules.lastmod import DATE_SOURCES, is_navigation, unusable_changes, why_unreliable
from crawler.settings.sections import Settings
from tests.rules.test_lastmod import crawl

SITE = "https://a.example"
PAGES = [Url(f"{SITE}/{number}") for number in range(12)]
DAY = 86_400
FAILED = Failed(Cause.SERVER_ERROR, "500")
START = 1_800_000_000
Shown = Mapping[Url, str | None]  # content of each page; None: it fails
Dates = dict[Url, int | None]  # day of each listed page's date


class ManyRuns:
    """Many runs over one site, without a network."""

    def __init__(self) -> None:
        self.now = float(START)
        self.frontier = SqliteFrontier(":memory:", clock=lambda: self.now, keep_runs=1_000)
        self.number = 0

    async def run(
        self,
        shown: Shown,
        ending: str = "published",
        header: int | None = None,
        pages: Sequence[Url] = PAGES,
        ahead: int | None = None,
    ) -> Dates:
        """One run, a day later, over the pages `shown`. `header`: Last-Modified of all pages; `ahead`: that of
        the first page, from the day on that it says.
        """
        self.number += 1
        self.now += DAY
        # Changed settings make the frontier give up an unfinished run.
        await self.frontier.begin(f"settings {self.number if ending == 'abandoned' else ''}")
        await self.frontier.store_robots(SITE, RobotsFile("none", fetched=self.now), 0)
        await self.frontier.add([Visit(url) for url in pages])
        at = None if header is None else datetime.fromtimestamp(header, UTC)
        for lease in (await self.frontier.lease(100)).leases:
            text = shown[lease.visit.url]
            content = digest(text.encode()) if text else None
            watched = None
            if text and "|" in text:  # pieces that are watched
                prior = lease.prior.facts if lease.prior else Facts(200)
                pieces = [piece(part.encode()) for part in text.split("|")]
                content, watched = noise.version(prior.content, prior.watched, content, pieces)
            own = ahead if lease.visit.url == PAGES[0] and (ahead or self.now) < self.now else None
            sent = at if own is None else datetime.fromtimestamp(own, UTC)
            facts = Facts(200, header=sent, content=content, watched=watched)
            verdict = Verdict(Listed(), facts) if content else Verdict(FAILED)
            await self.frontier.settle([Settlement(lease, verdict)])
        if ending == "abandoned":
            return {}
        await dating.date(self.frontier, DATE_SOURCES["auto"])
        await self.frontier.apply(SiteRule.KEEP_FAILING)
        await self.frontier.finish()
        dates = {
            entry.url: None if entry.lastmod is None else (int(entry.lastmod.timestamp()) - START) // DAY
            async for entry in each(self.frontier.stream(reads.ListedEntries()))
        }
        if ending == "published":
            await self.frontier.mark_published(PublicationRow(len(dates)))
        await self.frontier.conclude(refused=ending == "refused")
        return dates


def good(**edits: int) -> Shown:
    """The content of each page; `p3=2`: page 3 after two edits."""
    return {url: f"{url} {edits.get(f'p{number}', 0)}" for number, url in enumerate(PAGES)}


ERROR_PAGES: Shown = dict.fromkeys(PAGES, "down for maintenance")
ENDINGS = st.sampled_from(["published", "published", "refused", "abandoned"])
EDITS = st.sets(st.integers(0, len(PAGES) - 1))
RUNS = st.lists(
    st.tuples(st.sampled_from(["good", "good", "error pages", "failing"]), EDITS, ENDINGS), max_size=12
)


@limits(deadline=None, max_examples=30)
@given(RUNS)
@example([
    ("good", set(), "published"), ("good", {0}, "published"), ("failing", set(), "published"),
    ("good", set(range(6)), "published"),
])  # fmt: skip
def test_lastmod_is_date_of_run_that_saw_the_edit_or_absent(
    runs: Sequence[tuple[str, set[int], str]],
) -> None:
    anyio.run(_check_dates, runs)


async def _check_dates(runs: Sequence[tuple[str, set[int], str]]) -> None:
    site = ManyRuns()
    versions = [0] * len(PAGES)
    first_seen: dict[tuple[int, int], int] = {}  # the published run that saw a version first
    dated: dict[tuple[int, int], int] = {}
    published: Dates = {}
    last: list[int] | None = None  # the versions of the last good run, if it was published
    total = 0  # edits: so many that they are not told from noise may give no dates, and withdraw some
    for kind, edits, ending in runs:
        total += len(edits)
        for number in edits:
            versions[number] += 1
        shown = good(**{f"p{number}": version for number, version in enumerate(versions)})
        shown = {"good": shown, "error pages": ERROR_PAGES, "failing": dict.fromkeys(PAGES)}[kind]
        dates = await site.run(shown, ending)
        if kind == "failing":
            assert dates.items() <= published.items(), "a failing page keeps its date"
        published = dates if ending == "published" else published
        if ending != "published" or kind == "failing":
            continue
        if kind == "error pages":
            assert set(dates.values()) <= {None}, "error pages have no date"
            last = None
            continue
        for number, url in enumerate(PAGES):
            version = (number, versions[number])
            seen = first_seen.setdefault(version, site.number)
            assert dates[url] in {None, seen}
            if total < lastmod.LEAST_CHANGES:
                assert dated.get(version) in {None, dates[url]}, "a known date is kept"
            if dates[url] is not None:
                dated[version] = seen
        edited = [number for number in range(len(PAGES)) if last and last[number] != versions[number]]
        if total < lastmod.LEAST_CHANGES:
            assert all(dates[PAGES[number]] == site.number for number in edited), "few edits are dated"
        last = versions.copy()
    await site.frontier.close()


async def test_two_refused_runs_of_error_pages_give_no_date() -> None:
    site = ManyRuns()
    await site.run(good())
    await site.run(ERROR_PAGES, "refused")
    await site.run(ERROR_PAGES, "refused")
    assert set((await site.run(good())).values()) == {None}


async def test_failing_page_after_refused_run_keeps_its_date() -> None:
    site = ManyRuns()
    await site.run(good())
    dates = await site.run(good(p1=1))
    assert dates[PAGES[1]] == 2
    await site.run(ERROR_PAGES, "refused", header=START + DAY)
    assert await site.run(dict.fromkeys(PAGES)) == dates


async def test_template_change_dates_no_page_and_next_edit_is_dated() -> None:
    site = ManyRuns()
    await site.run(good())
    assert (await site.run(good(p1=1)))[PAGES[1]] == 2
    template = {url: f"new template of {url}" for url in PAGES}
    assert set((await site.run(template)).values()) == {None}
    assert set((await site.run(template)).values()) == {None}
    assert await site.run(template | {PAGES[3]: "edited"}) == dict.fromkeys(PAGES) | {PAGES[3]: 5}
    assert (await site.run(good(p1=1)))[PAGES[1]] == 2, "restored content has its earlier date"


@pytest.mark.parametrize(("first", "known"), [(-1, None), (-50, None), (-61, -61), (-400, -400)])
async def test_unreliable_last_modified_stays_ignored_without_evidence(first: int, known: int | None) -> None:
    """What it said first was a lie as well, unless it was said of a time long ago."""
    site = ManyRuns()
    await site.run(good(), header=START + first * DAY)
    dates = [await site.run(good(), header=START + day * DAY) for day in (1, 2)]
    dates.append(await site.run(ERROR_PAGES, header=START + 3 * DAY))
    dates.append(await site.run(good(), header=START + 4 * DAY))
    assert [set(each.values()) for each in dates] == [{known}, {known}, {None}, {known}]


@pytest.mark.parametrize("edited", [2, 5, 7])
async def test_a_header_to_come_does_not_become_true(edited: int) -> None:
    site = ManyRuns()
    for number in range(1, 10):
        dates = await site.run(good(p0=number >= edited), ahead=START + 3 * DAY + DAY // 2)
        assert dates[PAGES[0]] == (edited if number >= edited else None), number


async def test_true_headers_that_begin_late_are_used() -> None:
    site = ManyRuns()
    for edits in ({}, {}, {"p0": 1}, {"p0": 1}):
        await site.run(good(**edits))
    for number in (5, 6):
        dates = await site.run(good(p0=1), ahead=START + 2 * DAY + DAY // 2)
        assert dates[PAGES[0]] == 2, number
    await site.run(good(p0=2), ahead=START + 6 * DAY + DAY // 2)
    assert (await site.run(good(p0=2), ahead=START + 6 * DAY + DAY // 2))[PAGES[0]] == 6


async def test_refused_run_keeps_reliability_of_last_modified() -> None:
    site = ManyRuns()
    await site.run(good(), header=START - 90 * DAY)
    await site.run(ERROR_PAGES, "refused", header=START + 2 * DAY)
    assert set((await site.run(good(), header=START + 3 * DAY)).values()) == {-90}, (
        "the header changed and the content did not"
    )


async def test_what_comes_again_in_its_place_is_no_edit_once_known() -> None:
    """On eight of twelve pages an advertisement changes now and then; the others are edited at times."""
    site, edits, dates = ManyRuns(), dict[int, list[int]](), Dates()
    for night in range(40):
        if night in {20, 26, 33}:
            edits.setdefault((night * 5) % 12, []).append(night)
        shown = {}
        for number, url in enumerate(PAGES):
            text = "|".join(f"edit of {at}" for at in edits.get(number, []))
            advertisement = f"|buy {(night + number) // 4}" if number < 8 else ""
            shown[url] = f"{url}|some|text|{text}{advertisement}|end"
        dates = await site.run(shown)
        if night > 20:
            found = {PAGES.index(url): day for url, day in dates.items() if day is not None}
            assert found == {number: some[-1] + 1 for number, some in edits.items()}, night
    assert any("again and again in its place" in said for said in await site.frontier.recall(DATE_NOTES))


async def test_where_all_pages_are_restless_the_next_one_is_too() -> None:
    """Advertisements on all pages: one of these is found when those of the others are known."""
    late, *others = PAGES
    runs = ManyRuns()
    for night in range(40):
        shown = {
            url: f"{url}|some|text|and more|buy {(night + number) // 4}|end"
            for number, url in enumerate(others)
        }
        shown[late] = f"{late}|some|text{'|edit' * (night > 36)}|and more|buy {night // 4}|end"
        dates = await runs.run(shown, pages=PAGES if night > 20 else others)
        if night > 20:
            found = {url: day for url, day in dates.items() if day is not None}
            assert found == ({late: 38} if night > 36 else {}), night


async def test_an_edit_is_dated_where_many_other_texts_change() -> None:
    runs, pages = ManyRuns(), [Url(f"{SITE}/{number}") for number in range(40)]
    for night in range(40):
        shown = {
            url: f"{url}|some|text{'|edit' * (number == 0 and night > 36)}|more|{url} {(night + number) // 4}|end"
            for number, url in enumerate(pages)
        }
        dates = await runs.run(shown, pages=pages)
        found = {url: day for url, day in dates.items() if day is not None}
        assert night < 20 or found == ({pages[0]: 38} if night > 36 else {}), night


async def test_texts_that_few_pages_show_in_turn_are_no_edits() -> None:
    """On two of forty pages, each in another order: too seldom to be known by what comes again."""
    site, pages, dates = ManyRuns(), [Url(f"{SITE}/{number}") for number in range(40)], Dates()
    for night in range(90):
        shown = {url: f"{url}|some|text|and more|end" for url in pages}
        for number in range(2):
            turn = (night + 4 * number) // 8 * (number + 1)
            added = "|added" * (number == 1 and night > 80)
            shown[pages[number]] = f"{pages[number]}|some|text{added}|buy {turn % 5}|end"
        dates = await site.run(shown, pages=pages)
        if night > 60:
            found = {url: day for url, day in dates.items() if day is not None}
            assert found == ({pages[1]: 82} if night > 80 else {}), night


@pytest.mark.parametrize(("random", "dated"), [(4, 3), (5, None)])
async def test_what_changes_on_most_changed_pages_again_is_noise(random: int, dated: int | None) -> None:
    """Some pages show something else each night; a few may have been edited again by hand."""
    site, pages = ManyRuns(), [Url(f"{SITE}/{number}") for number in range(40)]
    for night in range(3):
        shown = {url: f"{url}|{night * (url in pages[:random])} of {url}|end" for url in pages}
        shown[pages[-1]] += "|more" * (night > 1)  # an edit of the same night
        dates = await site.run(shown, pages=pages)
        assert {dates[url] for url in pages[:random]} == {(None, 2, dated)[night]}
    assert dates[pages[-1]] == 3


async def test_a_template_that_is_rolled_out_is_no_edit() -> None:
    """A banner comes to two of forty pages a night, later goes from all, one a night; page 3 is edited."""
    site, pages = ManyRuns(), [Url(f"{SITE}/{number}") for number in range(40)]
    for night in range(60):
        shown = {}
        for number, url in enumerate(pages):
            banner = "|look here" * (3 + number // 2 <= night < 25 + number)
            edit = "|edited" * (number == 3 and night >= 12)
            shown[url] = f"{url}|some|text{edit}|{'|'.join('more of it')}{banner}|end"
        dates = await site.run(shown, pages=pages)
        found = {url: day for url, day in dates.items() if day is not None}
        early = {pages[number]: 4 for number in range(2 * (night == 3))}  # nobody could know
        assert found == early | ({pages[3]: 13} if night >= 12 else {}), night


async def test_states_that_pages_go_through_are_edits() -> None:
    """Of forty pages one is sold out each third night: the same two labels, in one place."""
    site, pages = ManyRuns(), [Url(f"{SITE}/{number}") for number in range(40)]
    for night in range(60):
        dates = await site.run(
            {
                url: f"{url}|{('In stock', 'Sold out')[(night + 3 * number) // 120]}|{url} is|end"
                for number, url in enumerate(pages)
            },
            pages=pages,
        )
        for number, url in enumerate(pages):
            sold = 120 - 3 * number
            assert dates[url] == (sold + 1 if sold <= night else None), (night, number)


async def test_the_same_night_or_the_same_kind_of_edit_is_no_template() -> None:
    """All pages are edited in two nights, each in its own words."""
    site, pages = ManyRuns(), [Url(f"{SITE}/{number}") for number in range(40)]
    for night in range(20):
        edits = [max(0, night - 3 - number % 8) // 9 + (night >= 3 + number % 8) for number in range(40)]
        shown = {
            url: "|".join(
                [f"{url}|some|text", *(f"edit {one} of {url}" for one in range(edits[number])), "end"]
            )
            for number, url in enumerate(pages)
        }
        dates = await site.run(shown, pages=pages)
        for number, url in enumerate(pages):
            days = [4 + number % 8 + 9 * one for one in range(edits[number])]
            assert dates[url] == (days[-1] if days else None), (night, number)


async def test_places_of_one_page_or_of_large_parts_are_content() -> None:
    small, large = ManyRuns(), ManyRuns()
    for night in range(30):
        edition, day = night // 4, (night // 4 * 4 + 1 if night > 3 else None)
        dates = await small.run({url: f"{url}|some|text|{edition * (url == PAGES[0])}|end" for url in PAGES})
        assert dates[PAGES[0]] == day
        # The menu of the week of five restaurants.
        dates = await large.run({url: f"{url}|soup {edition * (url in PAGES[:5])}|end" for url in PAGES})
        assert {dates[url] for url in PAGES[:5]} == {day}


@pytest.mark.parametrize(
    ("again", "anew", "restless"),
    [(5, 0, False), (6, 0, True), (10, 9, True), (10, 10, False), (40, 39, True)],
)
def test_an_origin_is_restless_if_most_changes_come_again(again: int, anew: int, restless: bool) -> None:
    before = None
    for run in range(3):
        before = lastmod.restless(
            before,
            Evidence(
                SITE, 0, 0, 0, 0, again=again if run == 1 else 0, anew=anew if run == 1 else 0, since=run + 1
            ),
        )
    assert before
    assert (before.first, before.last) == ((1, 2) if restless else (0, 0))
    for run in range(noise.MOST_RUNS):
        before = lastmod.restless(before, Evidence(SITE, 0, 0, 0, 0, since=run + 10))
    assert (len(before.runs), before.last) == (noise.MOST_RUNS, 0), "it is forgotten"


def evidence(since: int, again: int) -> Evidence:
    """That so many of forty pages changed where they had changed before."""
    return Evidence(SITE, 0, 0, 0, 0, known=40, again=again, since=since)


@pytest.mark.parametrize(
    ("edits", "known", "anew", "noisy", "lively"),
    [
        (6, 299, 0, 0, True),
        (6, 300, 0, 0, False),  # as often as by edits
        (5, 12, 0, 0, False),  # too few to tell
        (6, 9, 0, 0, False),
        (60, 1_000, 7, 0, True),
        (60, 1_000, 8, 0, False),  # many are known to be edits
        (6, 12, 0, 3, False),  # of three pages with noise, which is known now
    ],
)
@pytest.mark.parametrize("rarely", [1, 2])
def test_text_that_changes_oftener_than_by_edits_is_doubtful(
    edits: int, known: int, anew: int, noisy: int, lively: bool, rarely: int
) -> None:
    """`rarely`: days from visit to visit."""
    none = Evidence(SITE, 0, 0, 0, 0, since=1)
    visits, days = (known // rarely, known) if rarely > 1 else (known, 0)
    seen = Evidence(
        SITE, 0, 0, 0, 0, known=visits, reworded=edits, anew=anew, noisy=noisy, since=2, days=days
    )
    found = lastmod.restless(lastmod.restless(None, none), seen)
    assert lastmod.is_lively(found) is lively
    assert (found.first, found.last) == ((1, 2) if lively else (0, 0))


def test_blocks_of_many_pages_make_no_origin_restless() -> None:
    """Each week another word is on a third of the pages: that is known by what they share."""
    known = lastmod.restless(None, evidence(1, again=14), blocks=14)
    assert (known.runs, known.last) == (((1, 0, 0),), 0)


def test_what_is_on_most_pages_is_known_a_little_later() -> None:
    known = lastmod.restless(None, evidence(1, again=12))
    assert (known.first, known.last, lastmod.is_everywhere(known, evidence(1, 12))) == (1, 1, False)
    for since in range(2, 30):
        known = lastmod.restless(known, evidence(since, again=4))
        assert lastmod.is_everywhere(known, evidence(since, 4)) is (since >= 8)
        assert (known.first, known.last) == (1, 8 if since >= 8 else 1)


@pytest.mark.parametrize(
    ("known", "reworded", "mass"), [(0, 0, False), (10, 5, False), (10, 6, True), (1, 1, True)]
)
def test_mass_change_threshold(known: int, reworded: int, mass: bool) -> None:
    assert (unusable_changes(Evidence(SITE, 0, 0, 0, 0, known, known, reworded)) is not None) is mass


@pytest.mark.parametrize(
    ("runs", "known", "reworded", "mass"),
    [
        (1, 80, 5, False),
        (1, 80, 6, True),
        (1, 200, 10, False),
        (2, 80, 8, False),
        (2, 80, 9, True),
        (4, 80, 16, False),
        (4, 80, 17, True),
        (99, 80, 17, True),
        (4, 20, 9, False),
        (1, 20, 5, False),
    ],
)
def test_fewer_changes_are_many_in_the_first_runs(runs: int, known: int, reworded: int, mass: bool) -> None:
    """As long as nobody knows how many pages have noise."""
    evidence = Evidence(SITE, 0, 0, 0, 0, known, known, reworded)
    assert (unusable_changes(evidence, runs=runs) is not None) is mass


@pytest.mark.parametrize(
    ("days", "reworded", "mass"),
    [(0, 12, True), (59, 12, True), (470, 12, False), (470, 17, False), (470, 18, True), (9_000, 30, True)],
)
def test_more_was_edited_if_pages_were_not_visited_for_days(days: int, reworded: int, mass: bool) -> None:
    """As in a partial run, which visits what is likely to have changed; not if it is most of them."""
    evidence = Evidence(SITE, 0, 0, 0, 0, 59, reworded, reworded, days=days)
    assert (unusable_changes(evidence) is not None) is mass


@pytest.mark.parametrize(("changed", "alone"), [(5, False), (6, True), (10, True)])
def test_links_that_change_on_most_pages_are_navigation(changed: int, alone: bool) -> None:
    evidence = Evidence(SITE, 0, 0, 0, 0, 10, changed, 5)
    assert is_navigation(evidence) is alone
    assert unusable_changes(evidence) is None


@pytest.mark.parametrize(
    ("dated", "compared", "slid", "unreliable"),
    [(10, 0, 0, True), (10, 4, 0, True), (10, 5, 0, False), (10, 10, 6, True), (0, 0, 0, False)],
)
def test_origin_stays_unreliable_until_most_pages_contradict_it(
    dated: int, compared: int, slid: int, unreliable: bool
) -> None:
    assert (why_unreliable(Evidence(SITE, dated, 0, compared, slid), "before") is not None) is unreliable


@pytest.mark.parametrize(
    ("dated", "within", "stating", "older", "unreliable", "noted"),
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
def test_dates_within_one_window_are_a_build(
    dated: int, within: int, stating: int, older: int, unreliable: bool, noted: bool
) -> None:
    found = Build(SITE, dated, 0, 600, within, stating, older)
    assert (lastmod.why_build(found) is not None) is unreliable
    assert (lastmod.build_note(found) is not None) is noted


@pytest.mark.parametrize(
    ("dated", "within", "seconds", "age", "is_build"),
    [
        (49, 10, 600, LONG_AGO - 1, True),
        (49, 10, 600, LONG_AGO, False),
        (50, 10, 600, 0, False),
        (20, 9, 600, 0, False),
        (99, 5, 0, LATELY - 1, True),
        (99, 5, 0, LATELY, False),
        (99, 5, 1, 0, False),
        (100, 5, 0, 0, False),
        (9, 4, 0, 0, False),
    ],
)
def test_dates_of_one_build_in_the_first_run(
    dated: int, within: int, seconds: int, age: int, is_build: bool
) -> None:
    found = Build(SITE, dated, 1, 1 + seconds, within, 0, 0, age=age)
    assert lastmod.is_first_build(found) is is_build


def test_many_pages_that_state_one_day_may_have_been_edited_then() -> None:
    found = Build(SITE, 99, START // DAY * DAY, START // DAY * DAY, 5, 0, 0, age=DAY // 2)
    assert not lastmod.is_first_build(found)


@pytest.mark.parametrize(
    ("age", "within", "agreeing", "is_believed"),
    [
        (0, 40, 0, False),
        (LONG_AGO - 1, 40, 0, False),
        (LONG_AGO, 40, 0, True),
        (10 * LONG_AGO, 40, 0, True),
        (0, 9, 0, True),
        (0, 10, 0, False),
        (0, 40, 20, False),
        (0, 40, 21, True),
    ],
)
def test_a_build_is_believed_once_it_has_stood(
    age: int, within: int, agreeing: int, is_believed: bool
) -> None:
    found = Build(SITE, within, 0, 600, within, agreeing, 0, agreeing, age)
    assert (lastmod.why_build(found) is None) is is_believed


@given(st.lists(st.integers(0, 3_000), max_size=60))
def test_window_with_most_dates_is_found(moments: list[int]) -> None:
    async def found() -> Build | None:
        site = ManyRuns()
        await site.frontier.begin("")
        await site.frontier.store_robots(SITE, RobotsFile("none", fetched=site.now), 0)
        await site.frontier.add([Visit(Url(f"{SITE}/{number}")) for number in range(len(moments))])
        for lease in (await site.frontier.lease(100)).leases:
            at = datetime.fromtimestamp(START + moments[int(lease.visit.url.rpartition("/")[2])], UTC)
            await site.frontier.settle([Settlement(lease, Verdict(Listed(), Facts(200, header=at)))])
        found = await site.frontier.read(reads.DateEvidence(lastmod.BUILD_SECONDS, lastmod.OLDER_THAN_BUILD))
        await site.frontier.close()
        return found.headers[0] if found.headers else None

    build = anyio.run(found)
    counts = [sum(first <= at <= first + lastmod.BUILD_SECONDS for at in moments) for first in moments]
    assert (build.within if build else 0) == max(counts, default=0)
    if build:
        assert build.dated == len(moments)
        assert build.within == sum(build.first - START <= at <= build.last - START for at in moments)


pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def test_days_between_the_visits_of_a_run_are_counted() -> None:
    site, found = ManyRuns(), []
    for days in (1, 1, 3, 10):
        site.now += (days - 1) * DAY
        await site.run(good(), "published")
        seen = await site.frontier.read(reads.DateEvidence(lastmod.BUILD_SECONDS, lastmod.OLDER_THAN_BUILD))
        found.append(seen.origins[0].days)
    await site.frontier.close()
    # On average over the visits so far.
    assert found == [0, len(PAGES), 2 * len(PAGES), 14 * len(PAGES) // 3]


@given(st.lists(st.tuples(st.integers(0, 2_000), st.integers(0, lastmod.BUILD_SECONDS)), max_size=40))
def test_number_of_remembered_builds_is_bounded(spans: list[tuple[int, int]]) -> None:
    known: dict[str, list[tuple[int, int]]] = {}
    for first, length in spans:
        known = lastmod.remembered_builds(known, [Build(SITE, 9, first, first + length, 9, 9, 9)])
        assert any(start <= first and first + length <= end for start, end in known[SITE])
    some = known.get(SITE, [])
    assert len(some) <= lastmod.MOST_WINDOWS
    assert not [
        one for one in some for other in some if one != other and other[0] <= one[0] and one[1] <= other[1]
    ]


# -- over whole crawls -----------------------------------------------------------------------------------

BUILT = datetime(2026, 11, 20, 12, tzinfo=UTC)
NAMES = [f"/{number}" for number in range(8)]


def built(site: Site, stated: Mapping[str, str], at: datetime = BUILT, **texts: str) -> None:
    """A site whose files were all written within a minute; some pages state a date."""
    for number, name in enumerate(["/", *NAMES]):
        head = f'<meta property="article:modified_time" content="{stated[name]}">' if name in stated else ""
        text = texts.get(f"p{name[1:]}", "")
        links = NAMES if name == "/" else []
        site.page(name, head=head, text=text, links=links, lastmod=at + timedelta(seconds=5 * number))


async def notes(folder: Path) -> str:
    frontier = SqliteFrontier(str(folder / "s.db"), read_only=True)
    try:
        return date_words(with_defaults(await state_facts(frontier, None, Settings())))
    finally:
        await frontier.close()


async def test_after_a_build_dates_stated_in_pages_are_used(tmp_path: Path) -> None:
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


async def test_build_without_stated_dates_keeps_last_modified(tmp_path: Path) -> None:
    site = Site()
    built(site, {})
    with site.serve() as origin:
        assert set((await crawl(origin, tmp_path)).values()) == {("2026-11-20", "header")}
    assert "look like one build: 9 of 9" in await notes(tmp_path)


@pytest.mark.parametrize("state", ["2026-11-20", "2026-11-20T11:58:00Z", "2026-11-19T20:00:00Z"])
async def test_pages_edited_at_the_same_time_keep_last_modified(tmp_path: Path, state: str) -> None:
    site = Site()
    built(site, dict.fromkeys(NAMES, state))
    with site.serve() as origin:
        assert set((await crawl(origin, tmp_path)).values()) == {("2026-11-20", "header")}
    assert "build" not in await notes(tmp_path)


async def test_page_not_rebuilt_does_not_take_the_build_date(tmp_path: Path) -> None:
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
