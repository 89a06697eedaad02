"""Crawler traps in whole crawls: what is asked for and listed is a function of the site, whatever arrives first."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from crawler.app import open_job
from crawler.crawl import Ending
from crawler.demo.site import Answer, Site
from crawler.traps import Trap
from tests.test_crawl import settings
from tests.test_nothing_lost import MAIN, ROOT, sitemaps

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """Whole crawls: what depends on the event loop is tested with the transport."""
    return "asyncio"


def html(said: str, *links: str, head: str = "") -> Answer:
    """A page that says something and leads somewhere."""
    anchors = "".join(f'<a href="{link}">x</a>' for link in links)
    return Site.answer(200, f"<title>{said}</title>{head}<main><p>{said}</p>{anchors}</main>".encode())


Page = Callable[[str, dict[str, str]], Answer]


class Pages(dict[str, Any]):
    """The answers of a `Site` by path: a function from path and query, and the fixed delay that each target has."""

    def __init__(self, pages: dict[str, Page], delay: float) -> None:
        super().__init__(pages)
        self.delay = delay

    def get(self, target: str, missing: Any = None) -> Any:
        parts = urlsplit(target)
        page = super().get(parts.path) or super().get(parts.path.rpartition("/")[0] + "/*")
        if page is None:
            return missing
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        time.sleep(self.delay * blake2b(target.encode(), digest_size=1).digest()[0] / 255)
        return lambda _: page(parts.path, query)


@contextmanager
def served(pages: dict[str, Page], *, delay: float = 0.0) -> Iterator[tuple[Site, str]]:
    """A site; `delay`: seconds that its slowest page takes."""
    site = Site(answers=Pages(pages, delay))
    with site.serve() as origin:
        yield site, origin


def start(*links: str) -> Page:
    return lambda *_: html("the start page", *links)


# -- sites ------------------------------------------------------------------------------------------------


def calendar(path: str, _: dict[str, str]) -> Answer:
    """A month that leads to the next, the one before, and the days; one has an event."""
    year, month = (int(part) for part in path.split("/")[2:4])
    after, before = divmod(year * 12 + month, 12), divmod(year * 12 + month - 2, 12)
    links = [f"/cal/{y}/{m + 1:02}" for y, m in (after, before) if 2010 <= y < 2029]
    event = f"/event/{year}-{month}-story" if (year, month) == (2020, 3) else "/"
    return html("no events here", *links, event)


def facets(_: str, query: dict[str, str]) -> Answer:
    """600 URLs with 23 texts that lead to each other."""
    number = int(query["n"])
    return html(
        f"text {number * 7 % 23:x}{'z' * (number * 7 % 23)}",
        *(f"/f?n={number * 3 % 600 + k}" for k in range(3)),
    )


def topic(_: str, query: dict[str, str]) -> Answer:
    """A forum: each topic has its own content and leads to some others."""
    number = int(query["t"])
    words = blake2b(str(number).encode()).hexdigest().translate(str.maketrans("0123456789", "ghijklmnop"))
    return html(words, *(f"/topic?t={n}" for n in (number + 1, number + 7, number * 2) if n < 400))


MIXED: dict[str, Page] = {
    "/": start("/cal/2020/01", *(f"/f?n={n * 50}" for n in range(12)), "/topic?t=0", "/plain"),
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
    """What a crawl listed, asked for, and told of traps."""

    ending: Ending
    listed: list[str]
    traps: list[Trap]
    outcomes: dict[str, int]


async def crawl(origin: str, folder: Path, **chosen: object) -> Result:
    result = Result()
    async with open_job(settings(origin, folder, **chosen)) as job:
        result.ending = await job.crawl()
        result.listed = [
            entry.url.removeprefix(origin) async for chunk in job.frontier.entries() for entry in chunk
        ]
        balance = await job.frontier.balance()
        assert balance.balanced
        result.outcomes = dict(balance.outcomes)
        result.traps = list(await job.frontier.traps())
        if result.ending is Ending.COMPLETE:
            await job.frontier.conclude()
    return result


def asked(site: Site, since: int = 0) -> list[str]:
    """What was asked for, without robots.txt and what is asked to find soft 404s."""
    targets = [one.target for one in site.log[since:]]
    return sorted(target for target in targets if target != "/robots.txt" and "no-such-page" not in target)


# -- the order of arrival -----------------------------------------------------------------------------------


async def test_neither_tasks_nor_delays_change_what_is_asked_for_and_listed(tmp_path: Path) -> None:
    seen = set()
    for delay, tasks in [(0.0, 1), (0.0, 16), (0.03, 4), (0.03, 16), (0.03, 64)]:
        with served(MIXED, delay=delay) as (site, origin):
            result = await crawl(origin, tmp_path, concurrency=tasks)
            seen.add((tuple(result.listed), tuple(asked(site)), tuple(sorted(result.outcomes.items()))))
    assert len(seen) == 1
    listed = result.listed
    assert sum(path.startswith("/topic") for path in listed) == 400, "a forum is crawled whole"
    assert sum(path.startswith("/f?") for path in listed) == 23, "each text once"
    assert sum(path.startswith("/cal") for path in listed) == 1
    assert {trap.kind for trap in result.traps} == {"calendar", "query"}


@pytest.mark.parametrize("tasks", [1, 16])
async def test_a_crawl_in_portions_lists_what_one_at_a_time_lists(tmp_path: Path, tasks: int) -> None:
    with served(MIXED, delay=0.002) as (site, origin):
        whole = await crawl(origin, tmp_path, concurrency=1)
        once = asked(site)
        begun, runs = len(site.log), 0
        while True:
            part = await crawl(
                origin, tmp_path, concurrency=tasks, max_pages=97, state=str(tmp_path / "s.db")
            )
            runs += 1
            if part.ending is Ending.COMPLETE:
                break
        assert asked(site, begun) == once
    assert runs > 5
    assert part.listed == whole.listed


def command(origin: str, folder: Path, *more: str) -> list[str]:
    return [
        sys.executable, "-c", MAIN, "crawl", origin + "/", "--rate", "0", "-q", "--retries", "1", "--state",
        str(folder / "s.db"), "-o", str(folder / "out"), *more,
    ]  # fmt: skip


@pytest.mark.parametrize(("tasks", "processes"), [("1", "1"), ("4", "2"), ("16", "1"), ("16", "2")])
def test_a_kill_changes_nothing(tmp_path: Path, tasks: str, processes: str) -> None:
    with served(MIXED, delay=0.004) as (site, origin):
        assert subprocess.run(command(origin, tmp_path / "calm"), cwd=ROOT, check=False).returncode == 0
        words = command(origin, tmp_path / "killed", "--concurrency", tasks, "--processes", processes)
        # By what the site saw and not by the clock.
        for enough in (14, 200, 500):
            begun = len(site.log)
            running = subprocess.Popen(words, cwd=ROOT, stderr=subprocess.DEVNULL)
            while len(site.log) - begun < enough and running.poll() is None:
                time.sleep(0.002)
            running.kill()
            running.wait()
        assert subprocess.run(words, cwd=ROOT, check=False).returncode == 0
    assert sitemaps(tmp_path / "killed") == sitemaps(tmp_path / "calm")
