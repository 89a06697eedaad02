"""Whole crawls of the sites of benchmarks/zoo, each with a promise: it ends, loses no true page and lists none in vain.

The sites answer within the process, without sockets: judgements are tested here, no speed.
Sites whose promise is not kept yet stand in one table, and are not crawled here: `python -m benchmarks.zoo` shows what
they cost. Who keeps the promise removes the line.
"""

import gzip
import re
from collections import deque
from collections.abc import Callable
from html import unescape
from pathlib import Path

import httpx
import pytest

from benchmarks.zoo import SITES
from benchmarks.zoo.crawlers import ours
from benchmarks.zoo.server import serving
from benchmarks.zoo.site import Request, Site, linked
from crawler import Ending, Settings, open_job
from crawler.rules import traps
from crawler.settings.sections import Output, Pace, Scope, State
from tests import program
from tests.frontier.test_nothing_lost import sitemaps
from tests.waiting import RARELY, eventually

ROOT = Path(__file__).parent.parent
REPEATS = "lists repeats"
NOT_YET = {
    "path-info": REPEATS,
    "languages": REPEATS,
    "tag-combinations": REPEATS,
    "facet-paths": REPEATS,
}
# What they answer is asked while they are crawled, so that the order could matter. They keep their promise there.
ASKED = ("error-folder", "step-views", "session-word", "stock-numbers")
# The budget ends its crawl: under which of its addresses a page is listed may depend on the order.
ANY_SPELLING = {"session-word"}
# As `session-query`, and dear: whoever changes what they have in common runs `python -m benchmarks.zoo`.
ALIKE = {"no-cache", "asp-session"}
ORIGIN = "http://127.0.0.1"
GRANTED = 300  # requests of a site; `python -m benchmarks.zoo` grants as many as the program
LATE = 400  # more, as what was made before pages turned out to be no contents counts in full
BUDGETS = (30, 20)  # pages of the nights after it
DELAY = 8  # milliseconds, at most, until an answer


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize(
    ("name", "granted"),
    [
        *((name, GRANTED) for name in sorted(SITES.keys() - NOT_YET.keys() - ALIKE - {*ASKED})),
        ("visit-quotes", traps.REQUESTS),  # so many copies make folders doubtful
    ],
)
async def test_a_crawl_keeps_its_promise(
    name: str, granted: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traps, "REQUESTS", granted)
    site, limit = SITES[name], SITES[name].limit(10, granted + LATE)
    asked = list[str]()

    def answer(request: httpx.Request) -> httpx.Response:
        target = request.url.raw_path.decode("latin-1")
        asked.append(target)
        assert len(asked) <= limit, f"{len(asked)} requests"
        reply = site.reply(Request(target, dict(request.headers), request.method))
        headers = {"Content-Type": "text/html; charset=utf-8"} | dict(reply.headers)
        return httpx.Response(reply.status, headers=headers, content=reply.body.encode())

    for most in (None, *BUDGETS):
        chosen = Settings(
            scope=Scope(start=(f"{ORIGIN}/",), max_pages=most),
            pace=Pace(rate=0),
            output=Output(output=str(tmp_path / "out")),
            state=State(state=str(tmp_path / "state.db")),
        )
        asked.clear()
        async with open_job(chosen, transport=httpx.MockTransport(answer)) as job:
            assert await job.crawl() is Ending.COMPLETE
            await job.publish()
        assert judged(site, ORIGIN, texts(tmp_path)) == (set(), set()), f"by {len(asked)} requests"


def judged(site: Site, origin: str, published: list[str]) -> tuple[set[str], set[str]]:
    """What is lost, and listed in vain, in the text of sitemaps."""
    found = re.findall(f"<url><loc>{origin}(.*?)</loc>", "".join(published))
    return site.judge(map(unescape, found))


async def crawl(origin: str, folder: Path, *more: str, until: Callable[[], bool] | None = None) -> list[str]:
    """Its sitemaps, as text, or none if it was killed when `until` held."""
    crawling = program.start([*ours().command(f"{origin}/", folder)[3:], *more])
    await eventually(lambda: crawling.poll() is not None or (until and until()), often=RARELY)
    if until:
        crawling.kill()
        crawling.wait()
        return []
    assert crawling.poll() == 0, crawling.stderr
    return texts(folder)


def texts(folder: Path) -> list[str]:
    """What was published, unpacked."""
    return [gzip.decompress(file).decode() for file in sitemaps(folder).values()]


@pytest.mark.slow
@pytest.mark.parametrize("name", ASKED)
async def test_neither_order_nor_kill_changes_what_is_listed(name: str, tmp_path: Path) -> None:
    """Each address is answered after a time of its own, so that the order depends on what is asked at once.

    The same for one request at a time, and for two processes of which the first are killed.
    """
    workers = ("--concurrency", "64", "--processes", "2")
    site = SITES[name]
    (alone := tmp_path / "alone").mkdir()
    async with serving(site, 1 << 62, delay=DELAY) as counted:
        found = await crawl(counted.origin, alone, "--concurrency", "1")
        assert counted.requests <= site.limit(10, 1_000)
        enough = counted.requests + 300
        await crawl(counted.origin, tmp_path, *workers, until=lambda: counted.requests > enough)
        again = await crawl(counted.origin, tmp_path, *workers)
    assert judged(site, counted.origin, found) == judged(site, counted.origin, again) == (set(), set())
    assert again == found or name in ANY_SPELLING


def test_the_document_names_tests_and_what_is_not_kept_yet() -> None:
    text = (ROOT / "docs/dev/judgement.md").read_text()
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)", text)
    assert len(named) > 10
    assert [name for file, name in named if f"def {name}(" not in (ROOT / file).read_text()] == []
    found = re.findall(r"zoo ((?:`[\w-]+`(?:, )?)+)( \(not kept yet\))?", text)
    kept = {name: not mark for names, mark in found for name in re.findall(r"[\w-]+", names)}
    assert kept.keys() <= SITES.keys()
    assert kept == {name: name not in NOT_YET for name in kept}, "docs/dev/judgement.md says otherwise"


def reached(site: Site, contents: set[str]) -> set[str]:
    """The contents that a walk over all links finds, until it has all of `contents`."""
    seen, todo, found = {"/"}, deque(["/"]), set[str]()
    while todo and contents - found:
        target = todo.popleft()
        reply = site.reply(Request(target))
        found.add(reply.content)
        new = {to: None for to in linked(reply, target) if to not in seen}
        seen |= new.keys()
        todo.extend(new)
    return found


@pytest.mark.parametrize("name", SITES)
def test_the_truth_about_a_site_is_true(name: str) -> None:
    site = SITES[name]
    replies = [site.reply(Request(target)) for target in site.pages]
    contents = {reply.content for reply in replies}
    assert {reply.status for reply in replies} == {200}
    assert len(contents) == len(replies), "each content once"
    assert "" not in contents
    assert contents <= reached(site, contents), "all are linked"
    assert site.judge(site.pages) == (set(), set())


@pytest.mark.parametrize("name", SITES)
def test_a_site_answers_whatever_it_is_asked(name: str) -> None:
    """Crawlers ask for what cannot exist."""
    site = SITES[name]
    known = {
        *site.pages,
        *(to for target in site.pages[:9] for to in linked(site.reply(Request(target)), target)),
    }
    for target in sorted(known)[:200]:
        for part in re.findall(r"[^/?&=]+", target):
            assert site.reply(Request(target.replace(part, "no-such-page-5a"))).status in {
                200,
                302,
                400,
                403,
                404,
                429,
                500,
                503,
            }
