"""Whole crawls of small sites on loopback: what is listed, what is not and why, and that the counts add up."""

import gzip
import itertools
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from crawler.app.job import open_job
from crawler.app.report import each
from crawler.cli.demo.site import Site
from crawler.engine.crawl import Crawl, Ending
from crawler.errors import PublishRefused, StartForbidden, StartUnreachable
from crawler.fetch.politeness import Pacing
from crawler.parse import url as urls
from crawler.ports import reads
from crawler.settings.sections import Settings
from crawler.workers.pool import WorkerPool
from tests.sites import star
from tests.waiting import answer_late

pytestmark = [pytest.mark.anyio, pytest.mark.both_loops]


def settings(origin: str, folder: Path, **chosen: object) -> Settings:
    """Defaults of tests: unpaced, no retries, output into `folder`, state in memory; `chosen` overrides them."""
    defaults: dict[str, object] = {
        "start": (origin + "/",), "rate": 0.0, "retries": 0, "output": str(folder / "out"), "state": ":memory:",
        "concurrency": 8,
    }  # fmt: skip
    base = Settings()
    sections: dict[str, object] = {}
    for name in vars(base):
        section = getattr(base, name)
        own = {key: value for key, value in (defaults | chosen).items() if key in vars(section)}
        sections[name] = replace(section, **own)
    return Settings(**sections)  # type: ignore[arg-type]


@dataclass
class Result:
    """The results of a crawl."""

    ending: Ending
    origin: str
    outcomes: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    listed: list[str] = field(default_factory=list)
    dates: dict[str, str | None] = field(default_factory=dict)
    discovered: int = 0


async def crawl(chosen: Settings) -> Result:
    async with open_job(chosen) as job:
        ending = await job.crawl()
        origin = job.starts[0].rstrip("/")
        balance = await job.frontier.read(reads.RunBalance())
        assert balance.balanced, balance
        result = Result(ending, origin, counts=dict(balance.outcomes), discovered=balance.discovered)
        async for entry in each(job.frontier.stream(reads.ListedEntries())):
            path = entry.url.removeprefix(origin)
            result.listed.append(path)
            result.dates[path] = entry.lastmod.isoformat() if entry.lastmod else None
        return result


@contextmanager
def serving(build: Callable[[Site], None]) -> Iterator[tuple[Site, str]]:
    site = Site()
    build(site)
    with site.serve() as origin:
        yield site, origin


async def test_small_site_is_listed_completely_and_in_url_order(tmp_path: Path) -> None:
    site = Site()
    site.page("/", links=["/b", "/a", "/missing", "https://elsewhere.example/"])
    site.page("/a", links=["/a/deep", "/b#frag", "/b?utm_source=x"])
    site.page("/b", lastmod=datetime(2024, 2, 29, 12, tzinfo=UTC))
    site.page("/a/deep", noindex=True, links=["/end"])
    site.page("/end")
    site.page("/island")
    with site.serve() as origin:
        result = await crawl(settings(origin, tmp_path))
    assert result.listed == ["/", "/a", "/b", "/end"]
    assert result.dates == {"/": None, "/a": None, "/b": "2024-02-29T12:00:00+00:00", "/end": None}
    assert result.counts == {"listed": 4, "unlisted:noindex": 1, "failed:not-found": 1, "unlisted:offsite": 1}
    assert site.requests("/robots.txt") == 1
    assert site.requests("/b") == 1
    assert site.log[0].target == "/robots.txt", "robots.txt is the first request"


async def test_released_lease_logs_its_reason_and_page_comes_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "crawler")
    site = Site()
    site.page("/")
    with site.serve() as origin:
        result = await crawl(settings(origin, tmp_path))
    released = [record for record in caplog.records if "not visited now" in record.message]
    assert [vars(record)["fields"] for record in released] == [{"reasons": {"robots.txt took its slot": 1}}]
    assert result.listed == ["/"]


async def test_redirect_targets_are_separate_visits(tmp_path: Path) -> None:
    site = Site()
    site.page("/", links=["/old", "/loop1", "/self", "/away"])
    site.redirect("/old", "/older", status=302)
    site.redirect("/older", "/new", status=308)
    site.page("/new")
    site.redirect("/loop1", "/loop2")
    site.redirect("/loop2", "/loop1")
    site.redirect("/self", "/self")
    site.redirect("/away", "http://elsewhere.example/")
    with site.serve() as origin:
        result = await crawl(settings(origin, tmp_path))
    assert result.listed == ["/", "/new"]
    assert result.counts == {"listed": 2, "moved": 5, "failed:redirect-loop": 1, "unlisted:offsite": 1}
    assert all(site.requests(path) == 1 for path in ("/loop1", "/loop2", "/self"))


async def test_too_many_redirects_is_a_failure(tmp_path: Path) -> None:
    site = Site()
    site.page("/", links=["/r0"])
    for number in range(30):
        site.redirect(f"/r{number}", f"/r{number + 1}")
    with site.serve() as origin:
        result = await crawl(settings(origin, tmp_path, max_redirects=10))
    assert result.counts == {"listed": 1, "moved": 10, "failed:redirects": 1}
    assert site.requests("/r11") == 0


async def test_robots_txt_is_obeyed_and_its_sitemaps_are_read(tmp_path: Path) -> None:
    site = Site()
    site.robots("User-agent: *\nDisallow: /private\nSitemap: {origin}/map.xml\n")
    site.sitemap("/map.xml", ["/orphan", "/private/b", "https://elsewhere.example/"])
    site.page("/", links=["/private/a"])
    site.page("/orphan")
    with site.serve() as origin:
        result = await crawl(settings(origin, tmp_path))
    assert result.listed == ["/", "/orphan"]
    assert result.counts == {"listed": 2, "unlisted:robots": 2, "unlisted:offsite": 1}
    assert site.requests("/private/a") == 0


async def test_seed_sitemaps_off_reads_no_sitemap(tmp_path: Path) -> None:
    site = Site()
    site.robots("Sitemap: {origin}/map.xml\n")
    site.sitemap("/map.xml", ["/orphan"])
    site.page("/")
    with site.serve() as origin:
        await crawl(settings(origin, tmp_path, seed_sitemaps="off"))
    assert site.requests("/map.xml") == 0


async def test_urls_of_input_file_are_crawled(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    site = Site()
    site.page("/")
    site.page("/orphan")
    with site.serve() as origin:
        lines = tmp_path / "seeds.txt"
        lines.write_text(f"\ufeff# seeds\n\n{origin}/orphan\nnonsense\n", encoding="utf-8")
        result = await crawl(settings(origin, tmp_path, input=(str(lines),)))
    assert result.listed == ["/", "/orphan"]
    assert "skipped a line that is not a URL" in caplog.text


async def test_pages_with_same_canonical_are_listed_once(tmp_path: Path) -> None:
    site = Site()
    site.page("/", links=["/item?sort=up", "/item?sort=down"])
    site.page("/item", canonical="/item")
    site.page("/item?sort=up", canonical="/item")
    site.page("/item?sort=down", canonical="/item")
    with site.serve() as origin:
        result = await crawl(settings(origin, tmp_path))
    assert result.listed == ["/", "/item"]
    assert result.counts == {"listed": 2, "unlisted:canonical": 2}


async def test_nofollow_links_are_counted_and_not_visited(tmp_path: Path) -> None:
    site = Site()
    site.page("/", nofollow=["/avoided", "/both"], links=["/a"])
    site.page("/a", links=["/both"])
    site.page("/both")
    site.page("/avoided")
    with site.serve() as origin:
        result = await crawl(settings(origin, tmp_path))
    assert result.listed == ["/", "/a", "/both"]
    assert result.counts == {"listed": 3, "unlisted:nofollow": 1}


async def test_scope_exclude_no_list_and_no_fetch(tmp_path: Path) -> None:
    site = Site()
    site.page("/docs/", links=["/docs/a", "/blog", "/docs/secret/x", "/docs/print/a", "/docs/file.pdf"])
    site.page("/docs/a")
    site.page("/docs/print/a")
    with site.serve() as origin:
        chosen = settings(
            origin, tmp_path, start=(origin + "/docs/",), scope="path", exclude=("/docs/secret/*",),
            no_list=("*/print/*",), no_fetch=("*.pdf",),
        )  # fmt: skip
        result = await crawl(chosen)
    paths = [path.rpartition(origin)[2].removeprefix("/docs") for path in result.listed]
    assert [path.rpartition("/")[2] for path in paths] == ["", "a", "file.pdf"]
    assert result.counts == {"listed": 3, "unlisted:excluded": 2, "unlisted:no-list": 1}
    assert site.requests("/docs/file.pdf") == 0


@pytest.mark.parametrize("concurrency", [1, 16])
async def test_depth_does_not_depend_on_response_order(tmp_path: Path, concurrency: int) -> None:
    site = Site()
    site.page("/", links=["/slow", "/chain1"])
    site.page("/slow", links=["/target"])
    site.page("/chain1", links=["/chain2"])
    site.page("/chain2", links=["/target", "/edge"])
    site.page("/edge", links=["/too-deep"])
    site.page("/target", links=["/below"])
    site.page("/below", links=["/last"])
    with site.serve() as origin:
        result = await crawl(settings(origin, tmp_path, max_depth=3, concurrency=concurrency))
    assert result.listed == ["/", "/below", "/chain1", "/chain2", "/edge", "/slow", "/target"]
    assert result.counts["unlisted:depth"] == 2


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
async def test_temporary_failure_is_retried_and_listed(tmp_path: Path) -> None:
    site = Site()
    site.page("/", links=["/flaky"])
    answers = iter([503, 500])

    def flaky(_: object) -> object:
        return site.answer(next(answers, 200), b"<p>at last")

    site.respond("/flaky", flaky)
    with site.serve() as origin:
        result = await crawl(settings(origin, tmp_path, retries=3))
    assert result.listed == ["/", "/flaky"]
    assert site.requests("/flaky") == 3


async def test_max_pages_ends_crawl_and_next_run_resumes(tmp_path: Path) -> None:
    site = star(*(f"/{n}" for n in range(20)))
    with site.serve() as origin:
        chosen = settings(origin, tmp_path, max_pages=8, state=str(tmp_path / "s.db"))
        endings, listed = [], []
        for _ in range(3):
            result = await crawl(chosen)
            endings.append(result.ending)
            listed.append(len(result.listed))
    assert endings == [Ending.LIMIT, Ending.LIMIT, Ending.COMPLETE]
    assert listed == [8, 16, 21]
    assert all(site.requests(f"/{n}") == 1 for n in range(20)), "nothing is fetched twice"


async def test_max_time_ends_crawl(tmp_path: Path) -> None:
    site = Site()
    site.page("/", links=["/a"])
    with site.serve() as origin:
        result = await crawl(settings(origin, tmp_path, max_time=0.0))
    assert result.ending is Ending.LIMIT


@pytest.mark.slow
async def test_after_max_time_crawl_awaits_requests_without_polling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, gate, looks = Site(), threading.Event(), itertools.count()
    site.page("/", links=["/slow"])
    site.respond("/slow", lambda _: gate.wait(20) and Site.answer(200, b"<p>x"))
    gather = Crawl._gather

    async def counted(self: Crawl, *args: Any) -> Any:
        if self.course.is_stopping and next(looks) == 0:
            threading.Timer(0.2, gate.set).start()
        return await gather(self, *args)

    monkeypatch.setattr(Crawl, "_gather", counted)
    with site.serve() as origin:
        result = await crawl(settings(origin, tmp_path, max_time=1.0))
        gate.set()
    assert result.ending is Ending.LIMIT
    assert next(looks) <= 20, "the crawl polled instead of waiting"


async def test_stop_drains_requests_in_flight_and_next_run_completes(tmp_path: Path) -> None:
    site = star(*(f"/{n}" for n in range(50)))
    with site.serve() as origin:
        chosen = settings(origin, tmp_path, state=str(tmp_path / "s.db"), concurrency=2)
        async with open_job(chosen) as job, job.outcomes() as outcomes:
            async for _ in outcomes:
                job.stop("test")
        assert job.ending is Ending.STOPPED
        result = await crawl(chosen)
    assert result.ending is Ending.COMPLETE
    assert len(result.listed) == 51
    assert site.requests("/") == 1


async def published(chosen: Settings) -> list[str]:
    """Crawl and publish; returns the listed paths."""
    async with open_job(chosen) as job:
        await job.crawl()
        await job.publish()
        return [urls.target(entry.url) async for entry in each(job.frontier.stream(reads.ListedEntries()))]


async def test_changed_settings_refetch_only_what_they_affect(tmp_path: Path) -> None:
    when = datetime(2024, 1, 1, tzinfo=UTC)
    site = Site()
    site.page("/", links=["/a", "/b"], lastmod=when)
    site.page("/a", lastmod=when, noindex=True)
    site.page("/b", lastmod=when)
    state = str(tmp_path / "s.db")
    with site.serve() as origin:
        for chosen, listed, statuses in (
            ({"no_list": ("/b",)}, ["/"], [200, 200, 200]),
            ({}, ["/", "/b"], [304, 304, 304]),
            ({"exclude": ("/b",)}, ["/"], [304, 304]),
            ({"no_rule": ("noindex",)}, ["/", "/a", "/b"], [200, 200, 200]),
            ({"no_rule": ("noindex",), "rate": 500.0}, ["/", "/a", "/b"], [304, 304, 304]),
        ):
            site.log.clear()
            assert await published(settings(origin, tmp_path, state=state, force=True, **chosen)) == listed, (
                chosen
            )
            assert [asked.status for asked in site.log if asked.target in {"/", "/a", "/b"}] == statuses, (
                chosen
            )


@pytest.mark.parametrize(
    "shell",
    [
        "<h1>Please log in</h1><form><input name=user><input type=password name=word></form>",
        "<h1>Something went wrong</h1>",
        "<div id=root></div><script src=/app.js></script>",
    ],
)
async def test_start_page_without_its_links_does_not_replace_sitemap(tmp_path: Path, shell: str) -> None:
    site = star(*(f"/{number}" for number in range(9)))
    chosen = {"state": str(tmp_path / "s.db"), "output": str(tmp_path / "out")}
    with site.serve() as origin:
        await published(settings(origin, tmp_path, **chosen))
        before = (tmp_path / "out/sitemap.xml.gz").read_bytes()
        site.page("/", text=shell)
        with pytest.raises(PublishRefused, match=r"URLs listed: 1, where 10 are published: 90% fewer"):
            await published(settings(origin, tmp_path, **chosen))
    assert (tmp_path / "out/sitemap.xml.gz").read_bytes() == before


async def test_second_run_sends_conditional_requests(tmp_path: Path) -> None:
    when = datetime(2024, 1, 1, tzinfo=UTC)
    site = Site()
    site.page("/", links=["/a", "/gone"], lastmod=when)
    site.page("/a", links=["/b"], lastmod=when)
    site.page("/b", lastmod=when, noindex=True)
    site.page("/gone", lastmod=when)
    with site.serve() as origin:
        chosen = settings(origin, tmp_path, state=str(tmp_path / "s.db"))
        for _ in range(2):
            async with open_job(chosen) as job:
                await job.crawl()
                await job.publish()
        second = [request for request in site.log if request.target == "/b"][-1]
        assert second.status == 304
        result = await crawl(chosen)
    assert result.listed == ["/", "/a", "/gone"]
    assert result.dates["/a"] == "2024-01-01T00:00:00+00:00", "a 304 keeps the date"
    assert result.counts == {"listed": 3, "unlisted:noindex": 1}, "a 304 keeps verdict and links"


async def test_a_304_without_question_confirms_no_page(tmp_path: Path) -> None:
    """A page without validators was requested without condition: what is known of it is not what it says."""
    site = star("/a")
    chosen: dict[str, Any] = {"state": str(tmp_path / "s.db"), "retries": 0}
    with site.serve() as origin:
        for keep, outcome in ((7 * 86_400.0, "kept:protocol"), (0.0, "failed:protocol")):
            await published(settings(origin, tmp_path, force=True, **chosen))
            site.raw("/a", status=304)
            result = await crawl(settings(origin, tmp_path, keep_failing=keep, force=True, **chosen))
            assert result.counts == {"listed": 1, outcome: 1}
            site.page("/a")


@pytest.mark.parametrize(
    ("build", "error", "sentence"),
    [
        (lambda _: None, StartUnreachable, "not found"),
        (
            lambda site: site.redirect("/", "http://elsewhere.example/x"),
            StartUnreachable,
            "Settings.scope.allow_host elsewhere.example",
        ),
        (
            lambda site: site.robots("User-agent: *\nDisallow: /"),
            StartForbidden,
            "disallowed by robots.txt.*Disallow: /",
        ),
        (
            lambda site: site.raw("/robots.txt", body=b"", status=503),
            StartForbidden,
            "robots.txt could not be read",
        ),
        (lambda site: site.redirect("/", "/"), StartUnreachable, "redirect loop"),
    ],
)
async def test_start_url_that_cannot_be_crawled_raises_one_line_error(
    tmp_path: Path, build: Callable[[Site], None], error: type[Exception], sentence: str
) -> None:
    with serving(build) as (_, origin), pytest.raises(error, match=sentence) as caught:
        await crawl(settings(origin, tmp_path))
    assert "\n" not in str(caught.value)


async def test_failed_start_url_is_fetched_again_in_next_run(tmp_path: Path) -> None:
    site = Site()
    up = False
    site.respond("/", lambda _: site.answer(200 if up else 500, b"<p>up"))
    with site.serve() as origin:
        chosen = settings(origin, tmp_path, state=str(tmp_path / "s.db"))
        with pytest.raises(StartUnreachable):
            await crawl(chosen)
        up = True
        assert (await crawl(chosen)).listed == ["/"]


async def test_failed_robots_txt_is_fetched_again_in_next_run(tmp_path: Path) -> None:
    site, up = Site(), False
    site.page("/")
    site.respond("/robots.txt", lambda _: site.answer(404 if up else 503))
    with site.serve() as origin:
        chosen = settings(origin, tmp_path, state=str(tmp_path / "s.db"))
        with pytest.raises(StartForbidden):
            await crawl(chosen)
        up = True
        assert (await crawl(chosen)).listed == ["/"]


async def test_expired_robots_txt_stays_in_force_if_refetch_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, up = Site(), True
    site.page("/", links=[f"/{number}" for number in range(9)] + ["/no"])
    for number in range(9):
        site.page(f"/{number}")
    rules = b"User-agent: *\nDisallow: /no"
    site.respond("/robots.txt", lambda _: site.answer(200, rules) if up else site.answer(500))
    with site.serve() as origin:
        chosen = settings(origin, tmp_path, state=str(tmp_path / "s.db"), max_pages=3)
        assert (await crawl(chosen)).ending is Ending.LIMIT
        up, clock = False, time.time
        monkeypatch.setattr(time, "time", lambda: clock() + 90_000)
        result = await crawl(replace(chosen, scope=replace(chosen.scope, max_pages=None)))
    assert result.counts == {"listed": 10, "unlisted:robots": 1}
    assert site.requests("/robots.txt") > 1


async def test_refused_run_of_error_pages_does_not_date_recovery(
    tmp_path: Path,
) -> None:
    site, up = Site(), True
    paths = [f"/{number}" for number in range(20)]

    def page(path: str) -> Callable[[object], object]:
        def answer(_: object) -> object:
            links = (paths if up else paths[:5]) if path == "/" else []
            text = f"page {path}" if up else "back soon"
            return site.answer(200, (text + "".join(f"<a href={link}>" for link in links)).encode())

        return answer

    for path in ("/", *paths):
        site.respond(path, page(path))
    with site.serve() as origin:
        chosen = settings(origin, tmp_path, state=str(tmp_path / "s.db"))
        await published(chosen)
        up = False
        with pytest.raises(PublishRefused):
            await published(chosen)
        up = True
        result = await crawl(chosen)
    assert len(result.listed) == 21
    assert set(result.dates.values()) == {None}


async def test_ignore_robots_lists_disallowed_pages(tmp_path: Path) -> None:
    site = Site()
    site.robots("User-agent: *\nDisallow: /")
    site.page("/")
    with site.serve() as origin:
        assert (await crawl(settings(origin, tmp_path, ignore_robots=True))).listed == ["/"]


@pytest.mark.slow
async def test_output_does_not_depend_on_concurrency(tmp_path: Path) -> None:
    site = Site()
    for number in range(60):
        site.page(
            "/" if number == 0 else f"/{number}",
            links=[f"/{(number * 7 + step) % 60 or ''}" for step in range(1, 6)],
            lastmod=datetime(2024, 1, 1 + number % 28, tzinfo=UTC) if number % 3 else None,
            noindex=number % 11 == 5,
        )
    outputs = []
    with site.serve() as origin:
        for concurrency in (1, 4, 32):
            chosen = settings(origin, tmp_path / str(concurrency), concurrency=concurrency)
            async with open_job(chosen) as job:
                await job.crawl()
                await job.publish()
            outputs.append((tmp_path / str(concurrency) / "out" / "sitemap.xml.gz").read_bytes())
    assert outputs[0] == outputs[1] == outputs[2]
    assert gzip.decompress(outputs[0]).count(b"<url>") == 60 - 5


def closest(turns: list[float]) -> float:
    """The shortest interval between two requests, in seconds."""
    return min(after - before for before, after in itertools.pairwise(turns))


async def test_rate_limit_is_kept(tmp_path: Path, turns: list[float]) -> None:
    site = star(*(f"/{n}" for n in range(6)))
    with site.serve() as origin:
        await crawl(settings(origin, tmp_path, rate=10.0))
    assert len(turns) == len(site.log) == 12
    assert closest(turns) >= 0.9 / 10


async def test_crawl_delay_overrides_higher_rate(tmp_path: Path, turns: list[float]) -> None:
    site = Site()
    site.robots("User-agent: *\nCrawl-delay: 0.2\n")
    site.page("/", links=["/a", "/b"])
    site.page("/a")
    site.page("/b")
    with site.serve() as origin:
        await crawl(settings(origin, tmp_path, rate=100.0))
    assert len(turns) == len(site.log)
    assert closest(turns) >= 0.9 * 0.2


async def test_concurrency_limit_is_never_exceeded(tmp_path: Path) -> None:
    site = Site()
    now, most, together = 0, 0, threading.Event()

    def slow(_: object) -> object:
        nonlocal now, most
        now += 1
        most = max(most, now)
        if now > 1:
            together.set()
        together.wait(60)
        now -= 1
        return site.answer(200, b"<p>x")

    site.page("/", links=[f"/s{n}" for n in range(30)])
    for number in range(30):
        site.respond(f"/s{number}", slow)
    with site.serve() as origin:
        await crawl(settings(origin, tmp_path, concurrency=3))
    assert 1 < most <= 3


async def test_private_address_is_never_contacted(tmp_path: Path) -> None:
    secret = Site()
    secret.page("/")
    site = Site()
    with secret.serve("127.0.0.2") as forbidden:
        port = forbidden.rpartition(":")[2]
        hidden = [
            f"http://127.0.0.2:{port}/",
            f"http://2130706434:{port}/",
            f"http://[::ffff:127.0.0.2]:{port}/",
        ]
        site.page("/", links=hidden)
        with site.serve() as origin:
            chosen = settings(
                origin, tmp_path, allow_host=tuple(re.sub("^http://|/$", "", url) for url in hidden)
            )
            result = await crawl(chosen)
        assert secret.log == []
    assert result.counts["unlisted:robots-down"] >= 1
    assert result.listed == ["/"]


async def test_completed_unpublished_run_is_published_without_requests(tmp_path: Path) -> None:
    site = Site()
    site.page("/")
    with site.serve() as origin:
        chosen = settings(origin, tmp_path, state=str(tmp_path / "s.db"))
        async with open_job(chosen) as job:
            await job.crawl()
        asked = len(site.log)
        async with open_job(chosen) as job:
            assert await job.crawl() is Ending.COMPLETE
            await job.publish()
        assert len(site.log) == asked
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest


async def test_start_page_outside_include_is_crawled_for_links(tmp_path: Path) -> None:
    site = star("/blog/a", "/other")
    with site.serve() as origin:
        result = await crawl(settings(origin, tmp_path, include=("/blog/*",)))
    assert result.listed == ["/blog/a"]
    assert site.requests("/other") == 0


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.slow
async def test_retry_after_pauses_host_at_once(
    tmp_path: Path, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leases taken before the 429 wait too."""
    site = Site()
    site.page("/", links=[f"/{n}" for n in range(60)])
    refusals, paused = list[float](), threading.Event()
    owner, verb = (Pacing, "slow") if processes == 1 else (WorkerPool, "_slow")
    real = getattr(owner, verb)

    async def slow(*given: Any, **more: Any) -> Any:
        done = await real(*given, **more)
        paused.set()  # all workers were told
        return done

    monkeypatch.setattr(owner, verb, slow)

    def answer(_: object) -> object:
        answer_late(0.02)
        if refusals:
            assert paused.wait(600)
        if len(site.log) < 20 or refusals:
            return site.answer(200, b"<p>x")
        refusals.append(time.monotonic())
        return site.answer(429, headers=[("Retry-After", "1")])

    for number in range(60):
        site.respond(f"/{number}", answer)
    with site.serve() as origin:
        result = await crawl(settings(origin, tmp_path, retries=1, concurrency=4, processes=processes))
    assert len(result.listed) == 61
    early = [asked for asked in site.log if 0.0 < asked.time - refusals[0] < 0.95]
    # Requests in flight, and those sent before the 429 was read, may still arrive; the other 40 must not.
    assert len(early) < 16


async def test_other_ports_of_private_start_host_need_allow_host(
    tmp_path: Path,
) -> None:
    """Links, redirects, sitemaps and robots.txt of an intranet site do not reach other services of its host."""
    beside, site = Site(), Site()
    beside.page("/secret")
    with beside.serve() as other, site.serve() as origin:
        site.page("/", links=["/moves", f"{other}/secret"])
        site.redirect("/moves", f"{other}/secret")
        site.robots(f"User-agent: *\nAllow: /\nSitemap: {other}/sitemap.xml")
        await crawl(settings(origin, tmp_path, scope="domain"))
        assert beside.log == []
        named = await crawl(settings(origin, tmp_path, allow_host=(other.removeprefix("http://"),)))
    assert f"{other}/secret" in named.listed
