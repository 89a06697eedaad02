"""Partial runs: a site that is published, and a limit. What is not visited stays as it is."""

import gzip
import re
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from crawler.app.job import Job, open_job
from crawler.app.report import each
from crawler.cli.demo.site import CannedResponse, Site
from crawler.engine.crawl import Ending
from crawler.errors import PublishRefused
from crawler.model.settlement import Settlement
from crawler.ports import reads
from tests.engine.test_crawl import serving, settings
from tests.engine.test_listing import words
from tests.engine.test_rounds import Page, html, served, start
from tests.postgres import new_state

pytestmark = [pytest.mark.anyio, pytest.mark.system]  # several nights of whole crawls


def build(count: int = 100, new: int = 0, edited: str = "-") -> Callable[[Site], None]:
    def pages(site: Site) -> None:
        paths = [f"/s{n // 20}/p{n}" for n in range(count)] + [f"/s0/new{n}" for n in range(new)]
        sections = sorted({path.split("/")[1] for path in paths})
        site.page("/", links=[f"/{name}" for name in sections])
        for name in sections:
            site.page(f"/{name}", links=[path for path in paths if path.startswith(f"/{name}/")])
        for path in paths:
            site.page(path, text=f"This is the page {path}.{' Edited.' * path.startswith(edited)}")

    return pages


class Nights:
    """Runs of one state."""

    def __init__(self, origin: str, folder: Path) -> None:
        self.origin, self.folder = origin, folder

    @asynccontextmanager
    async def job(self, **chosen: object) -> AsyncIterator[Job]:
        chosen = {"state": str(self.folder / "state.db"), "seed_sitemaps": "off"} | chosen
        async with open_job(settings(self.origin, self.folder, **chosen)) as job:
            yield job

    async def night(self, **chosen: object) -> tuple[Ending, set[str]]:
        async with self.job(**chosen) as job:
            ending = await job.crawl()
            if ending is Ending.COMPLETE:
                await job.publish()
            balance = await job.frontier.read(reads.RunBalance())
            assert balance.balanced
            return ending, {
                entry.url.removeprefix(self.origin)
                async for entry in each(job.frontier.stream(reads.ListedEntries()))
            }


def visited(site: Site, since: int) -> set[str]:
    """The pages that were requested."""
    asked = {one.target for one in site.log[since:]}
    return {path for path in asked if not path.endswith(("robots.txt", "-no-such-page"))}


async def test_unvisited_pages_stay_and_new_ones_come_first(tmp_path: Path) -> None:
    with serving(build()) as (site, origin):
        nights = Nights(origin, tmp_path)
        ending, first = await nights.night()
        assert (ending, len(first)) == (Ending.COMPLETE, 106)
        build(100, 3)(site)
        for limit in ("max_pages", "budget"):
            asked = len(site.log)
            ending, listed = await nights.night(**{limit: 30})
            assert ending is Ending.COMPLETE
            assert listed == first | {f"/s0/new{n}" for n in range(3)}
            assert len([one for one in site.log[asked:] if "robots" not in one.target]) <= 31


@pytest.mark.parametrize(
    "first",
    [
        CannedResponse(status=404),
        None,
        CannedResponse(body=b"nothing", headers=(("X-Robots-Tag", "noindex"),)),
    ],
    ids=["known, and failed", "new", "known"],
)
@pytest.mark.parametrize("target", ["/home", "/home?lang=en"])
async def test_a_start_page_that_redirects_now_is_followed_at_once(
    tmp_path: Path, target: str, first: CannedResponse | None
) -> None:
    """Even where the target is new in a pattern of queries, or failed when it was visited last."""
    with serving(build()) as (site, origin):
        nights = Nights(origin, tmp_path)
        if first:
            site.page("/s0", links=[f"/s0/p{n}" for n in range(20)] + [target])
            site.answers[target] = lambda _, first=first: first  # type: ignore[misc]
        await nights.night()
        site.redirect("/", target)
        site.page(target, links=[f"/s{n}" for n in range(5)], text="The new home page.")
        for _ in range(2):
            asked = len(site.log)
            ending, listed = await nights.night(budget=10)
            assert (ending, len(listed)) == (Ending.COMPLETE, 106)
            assert target in listed
            assert target in visited(site, asked)


async def test_every_page_has_its_turn(tmp_path: Path) -> None:
    with serving(build()) as (site, origin):
        nights = Nights(origin, tmp_path)
        await nights.night()
        seen = len(site.log)
        for _ in range(6):
            await nights.night(budget=30)
        visited = {one.target for one in site.log[seen:]}
        assert {f"/s{n // 20}/p{n}" for n in range(100)} <= visited


@pytest.mark.parametrize("where", ["", "/", "every list"])
async def test_hubs_beside_those_that_led_to_new_pages_are_asked(tmp_path: Path, where: str) -> None:
    """An eighth of the pages of a night may be hubs, and a fourth more if hubs led to new pages; what is new on
    a start page says nothing of them.
    """
    with serving(build(400)) as (site, origin):
        nights = Nights(origin, tmp_path)
        await nights.night()
        lists = [f"/s{section}" for section in range(20)]
        for path in ["/"] if where == "/" else lists if where else []:
            new = f"{path}-new" if where != "/" else "/new"
            site.page(path, links=[new, *(lists if where == "/" else [])])
            site.page(new, text=f"New at {path}.")
        seen = len(site.log)
        await nights.night(budget=40)
        asked = [path for path in visited(site, seen) if path in lists]
        assert (len(asked) >= 12) is (where == "every list")


async def test_first_run_is_unfinished_at_its_budget_and_goes_on(tmp_path: Path) -> None:
    with serving(build()) as (_, origin):
        nights = Nights(origin, tmp_path)
        for _ in range(3):
            assert (await nights.night(budget=30))[0] is Ending.LIMIT
        ending, listed = await nights.night(budget=30)
        assert (ending, len(listed)) == (Ending.COMPLETE, 106)


async def test_time_ends_a_run_of_a_published_site_and_nothing_leaves(tmp_path: Path) -> None:
    with serving(build()) as (site, origin):
        nights = Nights(origin, tmp_path)
        _, first = await nights.night()
        build(100, 3)(site)
        asked = len(site.log)
        ending, listed = await nights.night(max_time=0.5, rate=20.0)
        assert (ending, first - listed) == (Ending.COMPLETE, set())
        assert 0 < len(site.log) - asked < 100


async def test_whole_run_is_cut_short_by_a_limit(tmp_path: Path) -> None:
    with serving(build()) as (site, origin):
        nights = Nights(origin, tmp_path)
        _, first = await nights.night()
        async with nights.job() as job:
            job.sinks.append(Stopping(job, 10))
            assert await job.crawl() is Ending.STOPPED
        build(100, 3)(site)
        ending, listed = await nights.night(max_pages=20)
        assert ending is Ending.COMPLETE
        assert first <= listed
        ending, listed = await nights.night(max_pages=40)
        assert listed == first | {f"/s0/new{n}" for n in range(3)}


class Stopping:
    """A sink that stops its job after so many pages."""

    def __init__(self, job: Job, pages: int) -> None:
        self._job, self._left = job, pages

    async def settled(self, group: Sequence[Settlement]) -> None:
        self._left -= len(group)
        if self._left <= 0:
            self._job.stop("enough")


@pytest.mark.parametrize("after", [1, 2, 12, 25, 40])
async def test_stopped_night_goes_on_as_if_nothing_had_happened(tmp_path: Path, after: int) -> None:
    bytes_of = []
    for stops in (False, True):
        folder = tmp_path / str(stops)
        folder.mkdir()
        with serving(build()) as (site, origin):
            nights = Nights(origin, folder)
            _, first = await nights.night()
            build(100, 10, "/s3/")(site)
            asked = len(site.log)
            if stops:
                async with nights.job(budget=50, concurrency=1) as job:
                    job.sinks.append(Stopping(job, after))
                    assert await job.crawl() is Ending.STOPPED
                    published = (await job.frontier.read(reads.LastPublication())) or pytest.fail("none")
                    assert published.urls == len(first)
            ending, listed = await nights.night(budget=50)
            assert ending is Ending.COMPLETE
            assert first <= listed
            bytes_of.append((listed, visited(site, asked)))
    assert bytes_of[0] == bytes_of[1]


async def test_pages_beside_those_that_changed_are_visited_that_night(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    with serving(build()) as (site, origin):
        nights, asked = Nights(origin, tmp_path), 0
        for age in (2, 1):
            monkeypatch.setattr(time, "time", lambda age=age: now - age * 86_400)
            asked = len(site.log)
            await nights.night(budget=40 if age == 1 else None)
            build(edited="/s3/p6")(site)  # half of a list
        seen = visited(site, asked)
        assert len(seen) <= 40 + 1
        assert sum(path.startswith("/s3/") for path in seen) >= 12, "7 by chance"


@pytest.mark.parametrize("other", [{"concurrency": 1}, {"processes": 2}])
async def test_same_budgets_visit_the_same_pages(tmp_path: Path, other: dict[str, int]) -> None:
    seen = []
    for place, chosen in enumerate(({"concurrency": 16}, other)):
        folder = tmp_path / str(place)
        folder.mkdir()
        with serving(build()) as (site, origin):
            nights, pages = Nights(origin, folder), []
            await nights.night(**chosen)
            for night, budget in enumerate((20, 30, 10)):
                build(100 - night, 5 * night, f"/s{night}/")(site)
                asked = len(site.log)
                _, listed = await nights.night(budget=budget, **chosen)
                pages.append((visited(site, asked), listed))
        seen.append(pages)
    assert seen[0] == seen[1]


async def test_refused_night_leaves_no_trace_in_what_is_published(tmp_path: Path) -> None:
    with serving(build()) as (site, origin):
        nights = Nights(origin, tmp_path)
        _, first = await nights.night()
        paths = [f"/s{n // 20}/p{n}" for n in range(100)]
        for path in paths:
            site.page(path, noindex=True)
        for _ in range(2):
            with pytest.raises(PublishRefused, match="verdict"):
                await nights.night(budget=30)
        build()(site)
        asked = len(site.log)
        _, listed = await nights.night(budget=60)
        assert listed == first
        assert len({one.target for one in site.log[asked:]} & set(paths)) >= 48, "what was refused is first"


async def test_many_gone_pages_leave_after_a_few_refused_nights(tmp_path: Path) -> None:
    """A night visits them again first, so alone it would be refused for ever."""
    with serving(build()) as (site, origin):
        nights, others = (Nights(origin, tmp_path / name) for name in ("one", "two"))
        await others.night()
        _, listed = await nights.night()
        seen = len(site.log)
        await others.night(budget=30)  # so it visits the same pages
        for path in sorted(path for path in visited(site, seen) if "/p" in path)[:20]:
            site.raw(path, status=404)
        refused = 0
        for _ in range(9):
            try:
                _, now = await nights.night(budget=30)
                break
            except PublishRefused:
                refused += 1
        assert (1 <= refused < 9, len(listed - now)) == (True, 20)


async def test_pages_that_are_gone_leave_when_they_are_visited(tmp_path: Path) -> None:
    with serving(build()) as (site, origin):
        nights = Nights(origin, tmp_path)
        _, first = await nights.night()
        gone = {f"/s{n // 20}/p{n}" for n in range(0, 100, 20)}
        for path in gone:
            site.raw(path, status=404)
        listed = first
        for _ in range(6):
            before, (_, listed) = listed, await nights.night(budget=30)
            assert first - gone <= listed <= before
        assert listed == first - gone


@pytest.mark.parametrize("is_shared", [False, True])
async def test_a_copy_is_listed_once_the_listed_page_is_gone(tmp_path: Path, is_shared: bool) -> None:
    """It stays unlisted until then, although a partial run does not visit both."""
    copies, state = {"/story", "/story/"}, new_state() if is_shared else str(tmp_path / "state.db")
    paths = [*copies, "/other"]
    with served({"/": start(*paths), **dict.fromkeys(paths, start())}) as (site, origin):
        nights = Nights(origin, tmp_path)
        _, first = await nights.night(state=state)
        [listed] = first & copies
        for _ in range(3):
            _, then = await nights.night(state=state, budget=2)
            assert then == first
        site.answers.pop(listed)
        for _ in range(4):
            _, then = await nights.night(state=state, budget=2, force=True)
        assert then & copies == copies - {listed}


@pytest.mark.parametrize("is_shared", [False, True])
async def test_a_posted_spelling_does_not_replace_what_is_published(tmp_path: Path, is_shared: bool) -> None:
    """As many pages link to both, and a first crawl lists the shorter one."""
    state = new_state() if is_shared else str(tmp_path / "state.db")
    site: dict[str, Page] = {
        "/": start("/story/", "/guests"),
        **dict.fromkeys(["/story", "/story/"], start()),
    }
    with served(site | {"/guests": start()}) as (served_site, origin):
        nights = Nights(origin, tmp_path)
        for posted in ((), ("/story",)):
            served_site.answers["/guests"] = lambda *_, posted=posted: html("the guests", *posted)
            _, listed = await nights.night(state=state)
            assert "/story/" in listed
            assert "/story" not in listed


async def test_other_settings_begin_a_whole_crawl(tmp_path: Path) -> None:
    with serving(build()) as (_, origin):
        nights = Nights(origin, tmp_path)
        await nights.night()
        for _ in range(2):
            assert (await nights.night(budget=30, exclude=("/s4/*",)))[0] is Ending.LIMIT
        ending, listed = await nights.night(budget=50, exclude=("/s4/*",))
        assert (ending, len(listed)) == (Ending.COMPLETE, 86)
        assert (await nights.night(budget=5, exclude=("/s4/*",)))[0] is Ending.COMPLETE


async def test_failing_page_is_kept_and_asked_every_night(tmp_path: Path) -> None:
    with serving(build()) as (site, origin):
        nights = Nights(origin, tmp_path)
        _, first = await nights.night()
        site.raw("/s1/p20", status=500)
        for _ in range(6):
            _, listed = await nights.night(budget=30)
            assert listed == first
        assert 3 <= site.requests("/s1/p20") <= 7


async def test_members_of_a_database_share_the_budget(tmp_path: Path) -> None:
    """The same pages, and the same sitemap, as one process with a file."""
    seen = []
    for place, state in enumerate((str(tmp_path / "state.db"), new_state())):
        with serving(build()) as (site, origin):
            nights, pages = Nights(origin, tmp_path / str(place)), []
            await nights.night(state=state)
            for night, budget in enumerate((20, 30, 30)):
                build(100 - night, 5 * night, f"/s{night}/")(site)
                asked = len(site.log)
                _, listed = await nights.night(budget=budget, state=state)
                pages.append((visited(site, asked), listed))
        seen.append(pages)
    assert seen[0] == seen[1]


@pytest.mark.slow
async def test_two_members_of_one_partial_run(tmp_path: Path) -> None:
    """Together they visit what one process visits, no page twice, and publish the same."""
    seen = []
    for place, (state, members) in enumerate(((str(tmp_path / "one.db"), 1), (new_state(), 2))):
        with serving(build()) as (site, origin):
            nights, pages = Nights(origin, tmp_path / str(place)), []
            await nights.night(state=state)
            for night, budget in enumerate((20, 30)):
                build(100 - night, 15)(site)
                run = {"run": f"night-{night}"} if members > 1 else {}
                asked, found = len(site.log), list[tuple[Ending, set[str]]]()

                async def member(chosen: dict[str, object], to: list[tuple[Ending, set[str]]]) -> None:
                    to.append(await nights.night(**chosen))  # noqa: B023 - awaited within this night

                async with anyio.create_task_group() as tasks:
                    for _ in range(members):
                        tasks.start_soon(member, {"state": state, "budget": budget, **run}, found)
                assert {ending for ending, _ in found} <= {Ending.COMPLETE, Ending.OVER}
                targets = [one.target for one in site.log[asked:] if one.target.startswith("/s")]
                assert len(targets) == len(set(targets))
                pages.append((visited(site, asked), found[0][1]))
        seen.append(pages)
    assert seen[0] == seen[1]


@pytest.mark.slow
async def test_folder_that_answers_anything_moves_no_date(tmp_path: Path) -> None:
    """Only a whole run asks it. Its pages are read without their addresses in partial runs, too."""
    items = [f"/shop/item{number}" for number in range(50)]

    def shop(path: str, _: dict[str, str]) -> CannedResponse:
        if path not in items:
            return html("Sorry, this is not available.", "x/y", *items[:3])
        return html(
            f"The shop sells item{path[10:]} {words(int(path[10:]))}",
            f"more/{path[10:]}",
            f"/shop/old{path[10:]}",
        )

    with served({"/": start(*items), "/shop/*": shop}) as (_, origin):
        nights = Nights(origin, tmp_path)
        for limit in (None, 20, 20, None, None):
            async with nights.job(max_pages=limit) as job:
                assert await job.crawl() is Ending.COMPLETE
                entries = [entry async for entry in job.entries()]
                await job.publish()
            assert {"/", *items} <= {entry.url.removeprefix(origin) for entry in entries}
            assert [entry.url for entry in entries if entry.lastmod] == []


async def test_text_that_changed_twice_is_looked_at_the_next_night(tmp_path: Path) -> None:
    """An edit still stands by then, and noise does not."""
    with serving(build()) as (site, origin):
        nights, seen = Nights(origin, tmp_path), list[bool]()
        for night in range(16):
            site.page("/s2/p45", text=f"This is edition {'abcdefghijklmnop'[night]}.")
            asked = len(site.log)
            await nights.night(budget=20 if night else None)
            seen.append("/s2/p45" in visited(site, asked))
    visits = [night for night, was_visited in enumerate(seen) if was_visited]
    first, second, third, fourth, *_ = visits
    assert second - first > 1
    assert third - second > 1
    assert fourth - third == 1


@pytest.mark.slow
async def test_pages_that_a_sitemap_announces_are_visited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As soon as what it announced has been right; a sitemap that announces every page changes little.

    On SQLite only, as the clock of a shared state is that of its server.
    """
    clock, days = time.time, 0
    monkeypatch.setattr(time, "time", lambda: clock() - 86_400.0 * (20 - days))
    paths = [f"/s{n // 20}/p{n}" for n in range(100)]
    edited = [paths[7 * n % 100] for n in range(1, 13)]  # one a day
    seen = dict[str, list[bool]]()
    for said in ("right", "all", "nothing"):
        days, folder = 0, tmp_path / said
        folder.mkdir()
        with serving(build()) as (site, origin):
            nights = Nights(origin, folder)
            seen[said] = []
            for days in range(13):
                new = edited[:days]
                for path in new:
                    site.page(path, text=f"This is the page {path}, edited.")
                now = datetime.fromtimestamp(time.time() - 3_600, UTC).isoformat()
                dates = {"right": new[-1:], "all": paths, "nothing": []}[said]
                site.sitemap("/sitemap.xml", paths, dict.fromkeys(dates, now))
                asked = len(site.log)
                chosen = {"budget": 20 if days else None, "seed_sitemaps": "auto"}
                await nights.night(**chosen)
                seen[said] += [path in visited(site, asked) for path in new[-1:]]
    assert sum(seen["right"]) >= 8
    assert sum(seen["nothing"]) <= 5
    assert abs(sum(seen["all"]) - sum(seen["nothing"])) <= 2


def read(path: Path) -> str:
    return (gzip.decompress if path.suffix == ".gz" else bytes)(path.read_bytes()).decode()


LOGIN = "<form><input name=user><input type=password name=word></form>"


async def test_a_login_in_front_of_the_site_is_refused_each_night(tmp_path: Path) -> None:
    """A partial run sees too few of the other pages to refuse because of these."""
    with serving(build()) as (site, origin):
        nights = Nights(origin, tmp_path)
        await nights.night()
        for path in [*site.answers]:
            site.redirect(path, f"/login?next={path}", status=302)
            site.page(f"/login?next={path}", text=LOGIN)
        for _ in range(3):
            with pytest.raises(
                PublishRefused, match=r"redirects to .*/login.next=/ now, which looks like a login"
            ):
                await nights.night(budget=12)


async def test_a_site_that_moved_to_another_host_waits_for_a_whole_run(tmp_path: Path) -> None:
    """Its pages would be listed under both: those that were not visited are known under the old address."""
    with serving(build(40)) as (site, origin):
        nights = Nights(origin, tmp_path)
        there = origin.replace("127.0.0.1", "localhost")
        chosen = {"allow_host": (there.partition("://")[2],), "allow_address": ("127.0.0.0/8", "::1/128")}
        await nights.night(**chosen)

        def moved(path: str, answer: Callable[[Any], CannedResponse]) -> Callable[[Any], CannedResponse]:
            away = CannedResponse(301, b"", (("Location", there + path),))
            return lambda asked: answer(asked) if "localhost" in asked.headers["host"] else away

        for path, answer in [*site.answers.items()]:
            site.answers[path] = moved(path, answer)
        for _ in range(2):
            with pytest.raises(PublishRefused, match=r"redirects to http://localhost.*without a limit"):
                await nights.night(budget=12, **chosen)
        assert len((await nights.night(max_removed=1.0, **chosen))[1]) == 43
        assert len((await nights.night(budget=12, **chosen))[1]) == 43


@pytest.mark.parametrize("budget", [None, 40])
async def test_pages_that_all_say_the_same_now_are_not_published(tmp_path: Path, budget: int | None) -> None:
    """A notice of maintenance, or a bot check nobody knows, with 200: in place of half of the pages."""
    with serving(build()) as (site, origin):
        nights = Nights(origin, tmp_path)
        _, first = await nights.night()
        for number in range(0, 100, 2):
            site.page(f"/s{number // 20}/p{number}", title="Soon", text="We will be back soon.")
        for _ in range(2):
            with pytest.raises(PublishRefused, match="say the same now, unlike before, such as http"):
                await nights.night(budget=budget)
        build()(site)
        assert (await nights.night(budget=budget))[1] == first


async def test_pages_that_were_alike_before_may_change_alike(tmp_path: Path) -> None:
    with serving(build(40)) as (site, origin):
        nights = Nights(origin, tmp_path)
        for text in ("No posts yet.", "Nothing was posted yet."):
            for number in range(0, 40, 2):
                site.page(f"/s{number // 20}/p{number}", title=f"Tag {number}", text=text)
            ending, listed = await nights.night()
            assert (ending, len(listed)) == (Ending.COMPLETE, 43)


@pytest.mark.parametrize("budget", [None, 12])
async def test_what_a_clock_ahead_left_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: int | None
) -> None:
    """Dates of the future, which no sitemap may have, and a robots.txt that would not be read for years.

    On SQLite only, as the clock of a shared state is that of its server.
    """
    clock, days = time.time, 0
    monkeypatch.setattr(time, "time", lambda: clock() - 86_400.0 * (900 - days))
    with serving(build(40)) as (site, origin):
        nights = Nights(origin, tmp_path)
        for days in (0, 1, 800, 2, 3, 4):
            if days == 800:
                site.page("/s0", links=[f"/s0/p{n}" for n in range(20)], text="Edited on a day that is not.")
            if days == 3:
                site.page("/", links=["/s0", "/s1"], text="Edited.")
            asked = len(site.log)
            await nights.night(budget=budget if days else None)
            assert any(one.target == "/robots.txt" for one in site.log[asked:])
    [published] = [read(path) for path in (tmp_path / "out").glob("sitemap.xml*")]
    dates = dict(re.findall(r"<loc>http://[^/]*([^<]*)</loc><lastmod>([^<]*)", published))
    assert [*dates] == ["/"]
    assert 0 <= time.time() - datetime.fromisoformat(dates["/"]).timestamp() < 3 * 86_400
