"""Crawler traps in whole crawls: requests and listing depend on the site alone, not on the order of responses."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from crawler.__main__ import main
from crawler.app.job import open_job
from crawler.app.report import each
from crawler.cli.demo.site import CannedResponse, Site
from crawler.engine.crawl import Ending
from crawler.model.trap import Trap
from crawler.ports import reads
from crawler.rules import traps
from tests import program
from tests.engine.test_crawl import settings
from tests.frontier.test_nothing_lost import sitemaps
from tests.waiting import answer_late, until

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


def html(said: str, *links: str, head: str = "") -> CannedResponse:
    """A page with this text and these links."""
    anchors = "".join(f'<a href="{link}">x</a>' for link in links)
    return Site.answer(200, f"<title>{said}</title>{head}<main><p>{said}</p>{anchors}</main>".encode())


Page = Callable[[str, dict[str, str]], CannedResponse]


class Pages(dict[str, Any]):
    """The responses of a `Site` by path, each a function of path and query; each target has a fixed delay."""

    def __init__(self, pages: dict[str, Page], delay: float) -> None:
        super().__init__(pages)
        self.delay = delay

    def get(self, target: str, missing: Any = None) -> Any:
        parts = urlsplit(target)
        page = super().get(parts.path) or super().get(parts.path.rpartition("/")[0] + "/*")
        if page is None and not parts.path.endswith((".txt", ".xml")):
            page = super().get("*")
        if page is None:
            return missing
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        answer_late(self.delay * blake2b(target.encode(), digest_size=1).digest()[0] / 255)
        return lambda _: page(parts.path, query)


@contextmanager
def served(pages: dict[str, Page], *, delay: float = 0.0) -> Iterator[tuple[Site, str]]:
    """Serve a site; `delay`: seconds that its slowest page takes."""
    site = Site(answers=Pages(pages, delay))
    with site.serve() as origin:
        yield site, origin


def start(*links: str) -> Page:
    return lambda *_: html("the start page", *links)


# -- sites ------------------------------------------------------------------------------------------------


def calendar(path: str, _: dict[str, str]) -> CannedResponse:
    """A month that links to the next and the previous one; one month has an event."""
    year, month = (int(part) for part in path.split("/")[2:4])
    after, before = divmod(year * 12 + month, 12), divmod(year * 12 + month - 2, 12)
    links = [f"/cal/{y}/{m + 1:02}" for y, m in (after, before) if 2010 <= y < 2029]
    event = f"/event/{year}-{month}-story" if (year, month) == (2020, 3) else "/"
    return html("no events here", *links, event)


def facets(_: str, query: dict[str, str]) -> CannedResponse:
    """120 URLs with 5 distinct texts that link to each other."""
    number = int(query["n"])
    return html(
        f"text {'z' * (number * 7 % 5)}",
        *(f"/f?n={number * 3 % 120 + k}" for k in range(3)),
    )


def topic(_: str, query: dict[str, str]) -> CannedResponse:
    """A forum: each topic has its own content and links to some others."""
    number = int(query["t"])
    words = blake2b(str(number).encode()).hexdigest().translate(str.maketrans("0123456789", "ghijklmnop"))
    return html(words, *(f"/topic?t={n}" for n in (number + 1, number + 7, number * 2) if n < 100))


MIXED: dict[str, Page] = {
    "/": start("/cal/2020/01", *(f"/f?n={n * 10}" for n in range(12)), "/topic?t=0", "/plain"),
    "/cal/*": calendar,
    "/cal/2020/*": calendar,
    **{f"/cal/{year}/*": calendar for year in range(2009, 2031)},
    "/event/*": lambda path, _: html(f"the story of {path} is long", "/plain"),
    "/f": facets,
    "/topic": topic,
    "/plain": lambda *_: html("a plain page", "/", "/f?n=1"),
}


# -- one crawl ----------------------------------------------------------------------------------------------


class Result:
    """What a crawl listed, and the traps that it found."""

    ending: Ending
    listed: list[str]
    traps: list[Trap]
    outcomes: dict[str, int]


async def crawl(origin: str, folder: Path, *, publishes: object = False, **chosen: object) -> Result:
    result = Result()
    async with open_job(settings(origin, folder, **chosen)) as job:
        result.ending = await job.crawl()
        result.listed = [
            entry.url.removeprefix(origin) async for entry in each(job.frontier.stream(reads.ListedEntries()))
        ]
        balance = await job.frontier.read(reads.RunBalance())
        assert balance.balanced
        result.outcomes = dict(balance.outcomes)
        result.traps = list(await job.frontier.read(reads.TrapsOfRun()))
        if publishes:
            await job.publish()
        elif result.ending is Ending.COMPLETE:
            await job.frontier.conclude()
    return result


def asked(site: Site, since: int = 0) -> list[str]:
    """The requested targets, without robots.txt and soft 404 probes."""
    targets = [one.target for one in site.log[since:]]
    return sorted(target for target in targets if target != "/robots.txt" and "no-such-page" not in target)


# -- the order of responses -----------------------------------------------------------------------------------


async def test_concurrency_and_delays_change_no_request_nor_listing(tmp_path: Path) -> None:
    seen = set()
    for delay, tasks in [(0.0, 1), (0.0, 16), (0.02, 64)]:
        with served(MIXED, delay=delay) as (site, origin):
            result = await crawl(origin, tmp_path, concurrency=tasks)
            seen.add((tuple(result.listed), tuple(asked(site)), tuple(sorted(result.outcomes.items()))))
    assert len(seen) == 1
    listed = result.listed
    assert sum(path.startswith("/topic") for path in listed) == 100, "a forum is crawled whole"
    assert 5 <= sum(path.startswith("/f?") for path in listed) < 120, "what was read is listed"
    assert 1 <= sum(path.startswith("/cal") for path in listed) < 120
    assert {trap.kind for trap in result.traps} == {"calendar", "query"}


async def test_resumed_crawl_lists_what_uninterrupted_crawl_lists(tmp_path: Path) -> None:
    with served(MIXED, delay=0.002) as (site, origin):
        whole = await crawl(origin, tmp_path, concurrency=1)
        once = asked(site)
        begun, runs = len(site.log), 0
        while True:
            part = await crawl(origin, tmp_path, concurrency=16, max_pages=41, state=str(tmp_path / "s.db"))
            runs += 1
            if part.ending is Ending.COMPLETE:
                break
        assert asked(site, begun) == once
    assert runs > 5
    assert part.listed == whole.listed


def listing(_: str, query: dict[str, str]) -> CannedResponse:
    """A list with one of two texts, which leads to an article; three lists lead to the same one."""
    number = int(query["n"])
    return html("the same list" if number % 3 else "a list", f"/article/{number // 3}")


def article(path: str, _: dict[str, str]) -> CannedResponse:
    words = blake2b(path.encode()).hexdigest().translate(str.maketrans("0123456789", "ghijklmnop"))
    return html(words, f"/note/{path.rpartition('/')[2]}")


LISTS: dict[str, Page] = {
    "/": start(*(f"/f?n={number}" for number in range(120)), "/plain"),
    "/plain": lambda *_: html("a plain page"),
    "/f": listing,
    "/article/*": article,
    "/note/*": article,
}


@pytest.mark.parametrize("limit", [None, 6])
async def test_samples_are_judged_by_all_they_led_to(tmp_path: Path, limit: int | None) -> None:
    """Also when a run is resumed before that was read, and with a limit that no page exceeds."""
    with served(LISTS) as (site, origin):
        await crawl(origin, tmp_path, max_depth=limit)
        once = asked(site)
        assert [sum(path in target for target in once) for path in ("/article/", "/note/")] == [40, 40]
        begun, chosen = len(site.log), {"max_pages": 20, "max_depth": limit, "state": str(tmp_path / "s.db")}
        while (await crawl(origin, tmp_path, **chosen)).ending is not Ending.COMPLETE:
            assert len(site.log) - begun < 2 * len(once)
        assert asked(site, begun) == once


async def test_a_run_resumed_every_few_pages_asks_its_folders_too(tmp_path: Path) -> None:
    """Of an endless site, which has no last level at which to ask."""

    def step(path: str, _: dict[str, str]) -> CannedResponse:
        match path.split("/")[1:]:
            case ["step", number, "view"]:
                now = int(number) if number.isdigit() and len(number) < 9 else 1
                return html(f"Step {number} of the tour.", *(f"/step/{2 * now + n}/view" for n in (0, 1)))
        return Site.answer(404, b"")

    guides = [f"/guide-{number}" for number in range(30)]
    pages: dict[str, Page] = {path: lambda path, _: html(f"about {path}") for path in guides}
    with served({**pages, "/": start(*guides, "/step/1/view"), "*": step}) as (site, origin):
        chosen: dict[str, object] = {"max_pages": 33, "state": str(tmp_path / "s.db")}
        while (await crawl(origin, tmp_path, **chosen)).ending is not Ending.COMPLETE:
            assert len(site.log) < 1_000


def command(origin: str, folder: Path, *more: str) -> list[str]:
    return [
        "crawl", origin + "/", "--rate", "0", "-q", "--retries", "1", "--state",
        str(folder / "s.db"), "-o", str(folder / "out"), *more,
    ]  # fmt: skip


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, str, Path]]:
    """A served site, its origin, and the folder of an uninterrupted crawl."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    with served(MIXED, delay=0.004) as (site, origin):
        assert program.run(command(origin, folder)).returncode == 0
        yield site, origin, folder


def test_killed_and_resumed_crawl_writes_same_sitemap(
    tmp_path: Path, uninterrupted: tuple[Site, str, Path]
) -> None:
    site, origin, calm = uninterrupted
    words = command(origin, tmp_path, "--concurrency", "16", "--processes", "2")
    # Kill after a number of requests, not after some time.
    for enough in (14, 120):
        begun = len(site.log)
        running = program.start(words)
        until(lambda: len(site.log) - begun >= enough or running.poll() is not None)  # noqa: B023
        running.kill()
        running.wait()
    assert program.run(words).returncode == 0
    assert sitemaps(tmp_path) == sitemaps(calm)


async def test_max_depth_is_exact_with_redirects_and_trap_patterns(tmp_path: Path) -> None:
    """The shortest path decides which pages are within the limit, whichever response comes first."""
    pages: dict[str, Page] = {
        "/": start("/far", "/hop", "/q?a=1"),
        "/far": lambda *_: html("far", "/x"),
        "/hop": lambda *_: Site.answer(302, b"", [("Location", "/x")]),
        "/x": lambda *_: html("x", "/y"),
        "/y": lambda *_: html("y", "/z"),
        "/z": lambda *_: html("z"),
        "/q": lambda _, query: html(f"q {'i' * int(query['a'])}", f"/q?a={int(query['a']) + 1}", "/x"),
    }
    seen = set()
    for delay, tasks in [(0.0, 1), (0.01, 8), (0.02, 8)]:
        with served(pages, delay=delay) as (site, origin):
            result = await crawl(origin, tmp_path, concurrency=tasks, max_depth=2)
            seen.add((tuple(result.listed), tuple(asked(site))))
    assert [paths for paths, _ in seen] == [("/", "/far", "/q?a=1", "/q?a=2", "/x", "/y")]


def late(path: str, *links: str) -> dict[str, Page]:
    """A chain of pages whose last one has these links, which are therefore found late."""
    steps = [f"{path}/{step}" for step in range(6)]
    pages = {here: start(there) for here, there in pairwise(steps)}
    return {**pages, steps[-1]: start(*links)}


def moved(to: str) -> Page:
    return lambda *_: Site.answer(302, b"", [("Location", to)])


CHAIN: dict[str, Page] = {f"/r{step}": moved(f"/r{step + 1}") for step in range(1, 7)}


@pytest.mark.parametrize(
    ("linked", "ends"),
    [
        ((), False),
        (("/r3",), False),  # one redirect too many from there
        (("/r4",), True),
        (("/r2", "/r5"), True),
        (("/r2", "/r3", "/r4"), True),
    ],
)
@pytest.mark.parametrize("seeded", [False, True])
async def test_redirect_chain_is_counted_from_nearest_link(
    tmp_path: Path, linked: tuple[str, ...], ends: bool, seeded: bool
) -> None:
    """The end of the chain is beyond the limit from its start, and within it from a link or sitemap entry in its middle."""
    pages: dict[str, Page] = {**CHAIN, "/r7": start("/behind"), "/behind": start("/")}
    for path in linked:
        pages |= late(f"/to{path}", path)
    pages["/"] = start("/r1", *(f"/to{path}/0" for path in linked if not seeded))
    seen = set()
    for delay, tasks in [(0.0, 1), (0.02, 16)]:
        with served(pages, delay=delay) as (_, origin):
            (tmp_path / "map.txt").write_text("".join(f"{origin}{path}\n" for path in linked))
            seeds: dict[str, object] = {"seed_sitemaps": str(tmp_path / "map.txt")} if seeded else {}
            result = await crawl(origin, tmp_path, concurrency=tasks, max_redirects=3, **seeds)
            seen.add((tuple(result.listed), tuple(sorted(result.outcomes.items()))))
    with served(pages) as (_, origin):
        (tmp_path / "map.txt").write_text("".join(f"{origin}{path}\n" for path in linked))
        chosen = seeds | {"state": str(tmp_path / "s.db"), "max_redirects": 3, "max_pages": 4}
        while (part := await crawl(origin, tmp_path, **chosen)).ending is not Ending.COMPLETE:
            pass
    assert len(seen) == 1
    assert part.listed == result.listed
    assert ("/behind" in result.listed) is ends


async def test_depth_trap_uses_shortest_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow path of few links and a fast path of many lead to the same pages; only the second makes them too deep."""
    monkeypatch.setattr(traps, "DEEPEST", 8)
    overtaken = threading.Event()

    def slow(*_: Any) -> CannedResponse:
        overtaken.wait(10)
        return html("slow", "/deep/0")

    def last(*_: Any) -> CannedResponse:
        overtaken.set()
        return html("last", "/deep/0")

    chain = {f"/long/{n}": start(f"/long/{n + 1}") for n in range(7)} | {"/long/7": last}
    deep = {f"/deep/{n}": start(f"/deep/{n + 1}") for n in range(20)}
    pages: dict[str, Page] = {"/": start("/long/0", "/slow"), **chain, **deep, "/slow": slow}
    seen = set()
    for tasks in (1, 8):
        overtaken.set() if tasks == 1 else overtaken.clear()  # one task cannot overtake itself
        with served(pages) as (site, origin):
            result = await crawl(origin, tmp_path, concurrency=tasks)
            seen.add((tuple(result.listed), tuple(asked(site))))
        with served(pages) as (_, origin):
            state = {"state": str(tmp_path / f"{tasks}.db"), "concurrency": tasks}
            while (part := await crawl(origin, tmp_path, max_pages=3, **state)).ending is not Ending.COMPLETE:
                pass
            assert part.listed == result.listed
    assert len(seen) == 1
    assert "/deep/6" in result.listed
    assert "/deep/7" not in result.listed


# -- spam links ----------------------------------------------------------------------------


def product(*, canonical: bool) -> Page:
    """A product by its id; other parameters change nothing. Invalid ids show one and the same page."""

    def answer(_: str, query: dict[str, str]) -> CannedResponse:
        number = int(query["id"]) if query.get("id", "").isdecimal() else 0
        if not 1 <= number <= 100:
            return html("There is no such product.")
        head = f'<link rel="canonical" href="/product?id={number}">' if canonical else ""
        return html(f"{blake2b(b'%d' % number).hexdigest()} is a product", head=head)

    return answer


OWN = [f"/product?id={number}" for number in range(1, 101)]
SPAM = {
    "another parameter": [f"/product?id=1&x={number}" for number in range(200)],
    "many parameters": [f"/product?id=1&{'xyz'[n % 3]}{chr(97 + n // 3 % 26)}={n}" for n in range(300)],
    "a parameter for each link": [
        f"/product?id=1&name{chr(97 + n % 26)}{chr(97 + n // 26)}=1" for n in range(300)
    ],
    "names that sort before the id": [
        f"/product?{chr(97 + n % 8)}{chr(97 + n // 8 % 26)}=1" for n in range(208)
    ],
    "invalid ids": [f"/product?id=0{number:05}x" for number in range(400)],
}


@pytest.mark.parametrize(("spam", "canonical"), [*((spam, False) for spam in SPAM), ("invalid ids", True)])
async def test_spam_links_do_not_unlist_own_pages(tmp_path: Path, spam: str, canonical: bool) -> None:
    pages = {
        "/": start("/post", *(f"/list/{page}" for page in range(10))),
        "/post": lambda *_: html("a post with a comment", *SPAM[spam]),
        "/list/*": lambda path, _: html(f"list {'i' * int(path[6:])}", *OWN[int(path[6:]) :: 10]),
        "/product": product(canonical=canonical),
    }
    with served(pages) as (site, origin):
        result = await crawl(origin, tmp_path)
    assert set(OWN) <= set(result.listed)
    assert len(asked(site)) < 1_000


async def test_named_urls_of_a_closed_pattern_are_fetched(tmp_path: Path) -> None:
    """5,000 spam links in comments; a few real pages are named by a sitemap, as canonical, or in the last publication."""
    fakes = [f"/product?id=0{number:05}x" for number in range(5_000)]
    comments: list[str] = []
    home: list[str] = []
    pages: dict[str, Page] = {
        "/": start("/post", "/copy", *OWN[:20]),
        "/post": lambda *_: html("a post with comments", *comments),
        "/copy": lambda *_: html("a copy", head='<link rel="canonical" href="/product?id=21">'),
        "/product": product(canonical=False),
        "/map.xml": lambda *_: Site.answer(
            200,
            f"<urlset>{''.join(f'<url><loc>{home[0]}{path}</loc></url>' for path in OWN[21:30])}</urlset>".encode(),
            [("Content-Type", "application/xml")],
        ),
    }
    with served(pages) as (_, origin):
        home.append(origin)
        chosen: dict[str, object] = {"state": str(tmp_path / "s.db"), "seed_sitemaps": origin + "/map.xml"}
        first = await crawl(origin, tmp_path, publishes=True, **chosen)
        comments += fakes
        second = await crawl(origin, tmp_path, publishes=True, **chosen)
    assert set(OWN[:30]) <= set(first.listed)
    assert set(first.listed) <= set(second.listed)
    assert sum(path in fakes for path in second.listed) <= 1


async def test_second_run_of_unchanged_site_lists_the_same(tmp_path: Path) -> None:
    """Where some pages answer conditional requests with 304, and with an abandoned run in between."""

    def stamped(page: Page) -> Page:
        def answer(path: str, query: dict[str, str]) -> CannedResponse:
            said = page(path, query)
            tag = f'"{blake2b(said.body, digest_size=8).hexdigest()}"'
            return CannedResponse(said.status, said.body, (*said.headers, ("ETag", tag)))

        return answer

    state = str(tmp_path / "s.db")
    with served(MIXED | {path: stamped(MIXED[path]) for path in ("/f", "/plain")}) as (site, origin):
        once = await crawl(origin, tmp_path, publishes=True, state=state)
        first = asked(site)
        begun = len(site.log)
        again = await crawl(origin, tmp_path, publishes=True, state=state)
        second = asked(site, begun)
        assert {one.status for one in site.log[begun:]} >= {200, 304}
        await crawl(origin, tmp_path, state=state, max_pages=80, allow_trap=("depth",))
        third = await crawl(origin, tmp_path, publishes=True, state=state)
    assert again.listed == third.listed == once.listed
    assert first == second
    assert set(again.traps) == set(once.traps)


# -- traps are bounded ------------------------------------------------------------------------------------------------


def number_in(query: dict[str, str]) -> int:
    return next((int("".join(filter(str.isdecimal, value)) or 0) for value in query.values()), 0)


TRAPS: dict[str, tuple[dict[str, Page], int]] = {
    "identical pages": ({"/t": lambda _, q: html("same", *(f"/t?n={number_in(q) * 2 + k}" for k in (1, 2)))}, 155),
    "a chain of identical pages": ({"/t": lambda _, q: html("same", f"/t?n={number_in(q) + 1}")}, 155),
    "two patterns that link to each other": (
        {
            "/t": lambda _, q: html("one", f"/u?m={number_in(q) + 1}"),
            "/u": lambda _, q: html("two", f"/t?n={number_in(q) + 1}"),
        },
        320,
    ),
    "endless parameter names": (
        {"/t": lambda _, q: html("same", *(f"/t?{'abcdefghij'[int(d)]}{next(iter(q))}=1" for d in "0123456789"))},
        960,
    ),
    "share links to another site": (
        {"/t": lambda _, q: html("same", f"/t?n={number_in(q) + 1}", f"https://share.example/?u={number_in(q)}")},
        155,
    ),
    "a form for each page": (
        {
            "/t": lambda _, q: html("same", f"/t?n={number_in(q) + 1}", f"/form/{number_in(q)}"),
            "/form/*": lambda *_: html("a form"),
        },
        310,
    ),
    "broken links": ({"/t": lambda _, q: html("same", f"/t?n={number_in(q) + 1}", f"/gone/{number_in(q)}")}, 310),
    "canonicals to further copies": (
        {
            "/t": lambda _, q: html("same", f"/t?n={number_in(q) + 1}", head=f'<link rel=canonical href="/t?c={number_in(q)}">'),
        },
        400,
    ),
    "canonicals to missing pages": (
        {"/t": lambda _, q: html("same", f"/t?n={number_in(q) + 1}", head=f'<link rel=canonical href="/u?c={number_in(q)}">')},
        310,
    ),
    "a growing value": ({"/t": lambda _, q: html(f"new {'i' * len(q['n'])}", f"/t?n={q['n']}x")}, 58),
    "a calendar of months and days": (
        {
            "/t": start("/m?month=2020-01"),
            "/m": lambda _, q: html("no events", f"/m?month={_next(q['month'])}", f"/d?date={q['month']}-05"),
            "/d": lambda _, q: html("no events today", f"/m?month={_next(q['date'][:7])}"),
        },
        320,
    ),
}  # fmt: skip


def _next(month: str) -> str:
    number = int(month[:4]) * 12 + int(month[5:])
    return f"{number // 12}-{number % 12 + 1:02}"


@pytest.mark.parametrize("name", TRAPS)
async def test_trap_is_bounded(tmp_path: Path, name: str) -> None:
    pages, most = TRAPS[name]
    with served({"/": start("/t?n=1", "/real"), "/real": start("/t?n=2"), **pages}) as (site, origin):
        result = await crawl(origin, tmp_path, max_pages=2_000)
        assert result.ending is Ending.COMPLETE
        assert len(asked(site)) <= most
        assert result.traps
        assert {"/", "/real"} <= set(result.listed)


async def test_noindex_listing_pages_are_followed_to_all_items(tmp_path: Path) -> None:
    """The pages of the list are noindex; the items they link to are held in a pattern of their own."""
    pages: dict[str, Page] = {
        "/": start("/list?page=0"),
        "/list": lambda _, q: html(
            "a list", f"/list?page={number_in(q) + 1}", f"/item?id={number_in(q)}",
            head="<meta name=robots content=noindex>",
        ) if number_in(q) < 200 else html("the end"),
        "/item": topic_of,
    }  # fmt: skip
    with served(pages) as (_, origin):
        result = await crawl(origin, tmp_path)
    assert sum(path.startswith("/item") for path in result.listed) == 200
    assert result.traps == []


def topic_of(_: str, query: dict[str, str]) -> CannedResponse:
    return topic("", {"t": str(1_000 + number_in(query))})


async def test_start_url_in_trap_pattern_is_crawled(tmp_path: Path) -> None:
    """So is the target of its redirect."""
    pages: dict[str, Page] = {
        "/": lambda *_: Site.answer(302, b"", [("Location", "/?lang=en")]),
        "/page": lambda _, q: html(f"page {'i' * number_in(q)}"),
    }

    def home(path: str, query: dict[str, str]) -> CannedResponse:
        return html("home", "/page?n=1", "/page?n=2") if query else pages["redirect"](path, query)

    pages["redirect"] = pages["/"]
    pages["/"] = home
    with served(pages) as (_, origin):
        result = await crawl(origin, tmp_path)
    assert result.listed == ["/?lang=en", "/page?n=1", "/page?n=2"]


def test_explain_shows_pattern(
    uninterrupted: tuple[Site, str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    _, origin, folder = uninterrupted
    told = ""
    for number in range(120):
        with pytest.raises(SystemExit):
            main(
                [
                    "explain",
                    f"{origin}/f?n={number}",
                    "--state",
                    str(folder / "s.db"),
                    "-o",
                    str(folder / "out"),
                ]
            )
        said = capsys.readouterr().out
        if "not fetched" in said:
            told += said
            break
    assert re.search(r"because +http://\S+/f\?n=…", told)
    assert re.search(
        r"pattern +http://\S+/f\?n=… \(\d+ pages fetched in its rounds; closed: too few new pages\)",
        told,
    )
