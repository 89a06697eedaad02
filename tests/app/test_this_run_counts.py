"""What a state remembers of the last run gives way to what this run is told: its pace, its identity, its limits."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from crawler.app.job import Job, open_job
from crawler.app.report import each
from crawler.app.settings_digests import fingerprint
from crawler.cli.demo.site import Site
from crawler.engine.crawl import Ending
from crawler.fetch import retry
from crawler.model.reasons import Cause
from crawler.parse.url import Url
from crawler.ports import reads
from crawler.testing import MemorySite
from tests.engine.test_crawl import settings
from tests.postgres import new_state

pytestmark = pytest.mark.anyio

STATES: dict[str, Callable[[Path], str]] = {
    "sqlite": lambda folder: str(folder / "state.db"),
    "postgres": lambda _: new_state(),
}


@pytest.fixture(params=list(STATES))
def state(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return STATES[request.param](tmp_path)


def small(crawl_delay: str = "") -> Site:
    site = Site()
    if crawl_delay:
        site.robots(
            f"User-agent: slow\nCrawl-delay: {crawl_delay}\nDisallow:\n\nUser-agent: *\nDisallow: /b\n"
        )
    site.page("/", links=["/a", "/b"])
    site.page("/a")
    site.page("/b")
    return site


async def crawled(folder: Path, origin: str, **chosen: object) -> tuple[Ending, float, list[str]]:
    """The end of a run, the seconds between two slots of the site, and the listed paths."""
    async with open_job(settings(origin, folder, **chosen)) as job:
        ending = await job.crawl()
        [host] = await job.frontier.read(reads.BusiestHosts())
        listed = [
            entry.url.removeprefix(origin) async for entry in each(job.frontier.stream(reads.ListedEntries()))
        ]
        if ending is Ending.COMPLETE:
            await job.frontier.conclude()
    return ending, host.delay, listed


@pytest.mark.parametrize(("rate", "delay"), [(0.0, 0.0), (1000.0, 0.001), (20.0, 0.05)])
async def test_rate_of_this_run_counts(state: str, rate: float, delay: float, tmp_path: Path) -> None:
    with small().serve() as origin:
        assert (await crawled(tmp_path, origin, state=state, rate=50.0))[1] == 0.02
        assert (await crawled(tmp_path, origin, state=state, rate=rate))[1] == delay


async def test_rate_counts_in_a_resumed_run(state: str, tmp_path: Path) -> None:
    with small().serve() as origin:
        ending, delay, _ = await crawled(tmp_path, origin, state=state, rate=20.0, max_pages=1)
        assert (ending, delay) == (Ending.LIMIT, 0.05)
        ending, delay, _ = await crawled(tmp_path, origin, state=state, rate=0.0)
    assert (ending, delay) == (Ending.COMPLETE, 0.0)


async def test_user_agent_counts_for_a_robots_txt_that_is_known(state: str, tmp_path: Path) -> None:
    with small("0.05").serve() as origin:
        first = await crawled(tmp_path, origin, state=state, user_agent="slow")
        assert first == (Ending.COMPLETE, 0.05, ["/", "/a", "/b"])
        assert await crawled(tmp_path, origin, state=state) == (Ending.COMPLETE, 0.0, ["/", "/a"])
        assert await crawled(tmp_path, origin, state=state, user_agent="slow", max_wait=0.02) == (
            Ending.COMPLETE, 0.02, ["/", "/a", "/b"],
        )  # fmt: skip


def two_faced() -> Site:
    """A site whose robots.txt forbids /b to those without `b=1` in their Cookie, User-Agent or Authorization."""
    site = small()

    def answer(request: Any) -> object:
        told = {request.headers.get(name) for name in ("Cookie", "User-Agent", "Authorization", "X-Key")}
        may = told & {"b=1", "Bearer b=1"}
        text = b"User-agent: *\nDisallow:" if may else b"User-agent: *\nDisallow: /b"
        return site.answer(200, text, {"Content-Type": "text/plain"})

    site.respond("/robots.txt", answer)
    return site


def as_somebody(how: str, value: str, folder: Path, patch: pytest.MonkeyPatch) -> dict[str, object]:
    """The same settings each time, except where the value itself is the setting."""
    patch.setenv("WHO", value)
    cookies = folder / "cookies.txt"
    name, _, secret = value.partition("=")
    cookies.write_text(f"# Netscape HTTP Cookie File\n127.0.0.1\tFALSE\t/\tFALSE\t0\t{name}\t{secret}\n")
    return {
        "user agent": {"user_agent": value},
        "header": {"header": (f"X-Key: {value}",)},
        "login": {"auth_env": "WHO"},
        "cookies": {"cookie_file": str(cookies)},
    }[how]  # type: ignore[return-value]


WHO = ["user agent", "header", "login", "cookies"]


# A state has a digest of who asks, so one way to be somebody is enough on PostgreSQL.
@pytest.mark.parametrize(
    ("state", "how"), [*(("sqlite", how) for how in WHO), ("postgres", "login")], indirect=["state"]
)
async def test_robots_txt_is_asked_again_by_somebody_else(
    state: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = two_faced()
    with site.serve() as origin:
        for turn, (value, listed) in enumerate([("b=1", ["/", "/a", "/b"]), ("c=1", ["/", "/a"])], 1):
            chosen = as_somebody(how, value, tmp_path, monkeypatch)
            for _ in range(2):
                assert (await crawled(tmp_path, origin, state=state, **chosen))[2] == listed
            assert site.requests("/robots.txt") == turn, "the same one asks once a day"


@pytest.mark.parametrize("how", ["login", "cookies"])
async def test_resumed_run_asks_for_robots_txt_as_somebody_else(
    state: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user agent or a header begins a new run, the value of a secret does not."""
    with two_faced().serve() as origin:
        chosen = as_somebody(how, "b=1", tmp_path, monkeypatch)
        ended = await crawled(tmp_path, origin, state=state, max_pages=1, concurrency=1, **chosen)
        assert ended[0] is Ending.LIMIT
        chosen = as_somebody(how, "c=1", tmp_path, monkeypatch)
        assert (await crawled(tmp_path, origin, state=state, **chosen))[2] == ["/", "/a"]


async def test_member_asks_for_robots_txt_as_somebody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, site = new_state(), two_faced()
    with site.serve() as origin:
        monkeypatch.setenv("WHO", "b=1")
        chosen = settings(origin, tmp_path, state=state, auth_env="WHO", max_pages=1)
        async with open_job(chosen) as one:
            await one.crawl()
            assert site.requests("/robots.txt") == 1
            monkeypatch.setenv("WHO", "c=1")
            async with open_job(chosen) as two:
                assert two.run.number == one.run.number
                assert await two.frontier.read(reads.RobotsOf(origin)) is None
                assert await one.frontier.read(reads.RobotsOf(origin)) is None, "whoever is first asks"
                permit = await two._access().permit(Url(f"{origin}/b"))
                assert not permit.allowed
                assert await one.frontier.read(reads.RobotsOf(origin)) is None
                assert (await one._access().permit(Url(f"{origin}/b"))).allowed
    assert site.requests("/robots.txt") == 3


async def test_members_take_the_pace_they_were_started_with(tmp_path: Path) -> None:
    state = new_state()
    with small().serve() as origin:
        await crawled(tmp_path, origin, state=state, rate=50.0)
        chosen = settings(origin, tmp_path, state=state, rate=0.0)
        async with open_job(chosen) as one, open_job(chosen) as two, anyio.create_task_group() as tasks:

            async def crawl(job: Job) -> None:
                await job.crawl()
                tasks.cancel_scope.cancel()  # the other one waits for a publication

            tasks.start_soon(crawl, one)
            tasks.start_soon(crawl, two)
        async with open_job(chosen) as job:
            assert [host.delay for host in await job.frontier.read(reads.BusiestHosts())] == [0.0]


CHANGED: dict[str, object] = {
    "cookie_file": "cookies.txt", "header": ("Cookie: a=1",), "user_agent": "other", "auth_env": "LOGIN",
    "allow_address": ("127.0.0.0/8",), "insecure": True,
    "scope": "path", "exclude": ("/b",), "strip_param": ("a",), "max_depth": 1, "no_rule": ("noindex",),
}  # fmt: skip
SAME: dict[str, object] = {
    "rate": 1.0, "timeout": 1.0, "retries": 9, "max_pages": 1, "concurrency": 1, "max_body": 5, "max_redirects": 1,
}  # fmt: skip


@pytest.mark.parametrize("name", [*CHANGED, *SAME])
def test_unfinished_run_is_resumed_if_pages_are_judged_alike(name: str, tmp_path: Path) -> None:
    """What was judged by another setting is judged anew; pace, waits and limits apply from here on."""
    starts = [Url("https://a.example/")]
    before = fingerprint(settings("https://a.example", tmp_path), starts)
    changed = settings("https://a.example", tmp_path, **{name: (CHANGED | SAME)[name]})
    assert (fingerprint(changed, starts) == before) is (name in SAME)


class Failing(httpx.AsyncBaseTransport):
    """A site on which one page fails by a limit of the crawler, whatever the limit is."""

    def __init__(self, cause: Cause) -> None:
        self.site, self.failure, self.asked, self.late = MemorySite(), cause, list[str](), {"/bad"}
        self.origin = self.site.origin
        self.site.robots("Sitemap: {origin}/map.xml")
        self.site.sitemap("/map.xml", ["/"])
        self.site.page("/", links=["/bad", "/a", "/b"])
        self.site.page("/a")
        self.site.page("/b")
        self.site.page("/bad")

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request.url.path)
        if request.url.path in self.late:
            if self.failure is Cause.TIMEOUT:
                raise httpx.ReadTimeout("too late", request=request)
            if self.failure is Cause.RATE_LIMITED:
                return httpx.Response(429, headers={"retry-after": "3000"})
            if self.failure is Cause.SERVER_ERROR:
                return httpx.Response(500)
            if self.failure is Cause.TOO_LARGE:
                return httpx.Response(200, headers={"content-type": "text/html"}, content=b"x" * 20_000)
            if self.failure is Cause.REDIRECTS:
                return httpx.Response(301, headers={"location": "/a"})
        return await self.site.transport.handle_async_request(request)


LIMITS: list[tuple[Cause, str, object, object, object]] = [
    (Cause.TIMEOUT, "timeout", 200.0, 500.0, 900.0),
    (Cause.TIMEOUT, "total_timeout", 200.0, 500.0, 900.0),
    (Cause.TOO_LARGE, "max_body", 9_000, 10_000, 11_000),
    (Cause.REDIRECTS, "max_redirects", 0, 0, 1),
    (Cause.RATE_LIMITED, "max_wait", 5.0, 10.0, 20.0),
    (Cause.SERVER_ERROR, "retries", 0, 0, 1),
]


# The statements are the same for each limit, so one is enough on PostgreSQL.
@pytest.mark.parametrize(
    ("state", "cause", "name", "tiny", "small", "large"),
    [*(("sqlite", *limit) for limit in LIMITS), ("postgres", *LIMITS[0])],
    indirect=["state"],
)
@pytest.mark.parametrize("ends", [None, 3], ids=["complete", "interrupted"])
async def test_larger_limit_asks_again_for_what_failed_by_it(
    state: str,
    cause: Cause,
    name: str,
    tiny: object,
    small: object,
    large: object,
    ends: int | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retry, "LONGEST_PAUSE", 0.01)  # of the host, besides that of the page
    site = Failing(cause)

    async def asked(value: object, **more: object) -> tuple[int, str]:
        chosen = settings(site.origin, tmp_path, state=state, concurrency=1, **{name: value}, **more)
        async with open_job(chosen, transport=site) as job:
            await job.crawl()
            pages = {page.url.removeprefix(site.origin): page.outcome async for page in job.pages()}
        return site.asked.count("/bad"), pages["/bad"]

    failed = f"failed:{cause.value}"
    assert await asked(small, max_pages=ends) == (1, failed)
    assert await asked(small, max_pages=1) == (1, failed), "the same limit"
    assert await asked(tiny, max_pages=1) == (1, failed), "a smaller one"
    before = len(site.asked)
    again, outcome = await asked(large)
    assert again == (3 if name == "retries" else 2)
    assert outcome == ("moved" if name == "max_redirects" else failed)
    assert "/" not in site.asked[before:], "what had answered is not asked again"
    assert await asked(large) == (again, outcome)


async def test_larger_limit_asks_again_for_sitemaps_and_kept_pages(state: str, tmp_path: Path) -> None:
    site = Failing(Cause.NOT_FOUND)
    site.site.page("/island")
    site.site.sitemap("/map.xml", ["/island"])

    async def crawled(seconds: float, **more: object) -> dict[str, str]:
        chosen = settings(site.origin, tmp_path, state=state, timeout=seconds, **more)
        async with open_job(chosen, transport=site) as job:
            await job.crawl()
            found = {page.url.removeprefix(site.origin): page.outcome async for page in job.pages()}
            if not more:
                await job.publish()
        return found

    assert (await crawled(5.0))["/bad"] == "listed"
    site.failure, site.late = Cause.TIMEOUT, {"/map.xml", "/bad"}
    unread = await crawled(5.0, dry_run=True)
    assert (unread["/bad"], unread.get("/island")) == ("kept:timeout", "listed"), "known from the last run"
    site.late.clear()
    before = len(site.asked)
    read = await crawled(9.0)
    assert (read["/bad"], read["/island"]) == ("listed", "listed")
    assert sorted(site.asked[before:]) == ["/bad", "/map.xml"]
