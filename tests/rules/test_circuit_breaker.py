"""A run ends when a host is down, but not because of one broken section of a healthy site."""

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from crawler.app.job import open_job
from crawler.cli.crawl import crawl_site
from crawler.cli.demo.site import CannedResponse, Site
from crawler.engine.crawl import Ending
from crawler.errors import Exit
from crawler.model.facts import Facts
from crawler.model.outcome import Failed, Listed, Unlisted
from crawler.model.reasons import Cause, Why
from crawler.model.settlement import Verdict
from crawler.parse.url import Url
from crawler.rules.circuit_breaker import MIN_FAILURES, CircuitBreaker
from tests.engine.test_crawl import Result, crawl, settings

DOWN = [
    Verdict(Failed(Cause.CONNECT)),
    Verdict(Failed(Cause.TIMEOUT)),
    Verdict(Failed(Cause.TRUNCATED)),
    Verdict(Failed(Cause.WALL)),
    Verdict(Failed(Cause.RATE_LIMITED), Facts(429)),
    Verdict(Failed(Cause.SERVER_ERROR, "500"), Facts(500)),
]
UP = [
    Verdict(Listed(), Facts(200)),
    Verdict(Failed(Cause.NOT_FOUND), Facts(404)),
    Verdict(Failed(Cause.SERVER_ERROR, "501"), Facts(501)),
    Verdict(Failed(Cause.PARSE)),
]


def url(number: int, site: str = "https://a.example") -> Url:
    return Url(f"{site}/{number}")


@pytest.mark.parametrize("verdict", DOWN)
def test_consecutive_failures_are_returned(verdict: Verdict) -> None:
    circuit_breaker = CircuitBreaker()
    assert all(circuit_breaker.note(url(number), verdict) is None for number in range(MIN_FAILURES - 1))
    assert circuit_breaker.note(url(MIN_FAILURES - 1), verdict) == [
        url(number) for number in range(MIN_FAILURES)
    ]


@pytest.mark.parametrize("verdict", UP)
def test_one_response_resets_the_count(verdict: Verdict) -> None:
    circuit_breaker = CircuitBreaker()
    for number in range(3 * MIN_FAILURES):
        assert (
            circuit_breaker.note(url(number), verdict if number % (MIN_FAILURES - 1) == 0 else DOWN[0])
            is None
        )


def test_each_origin_is_counted_separately() -> None:
    circuit_breaker, down = CircuitBreaker(), DOWN[0]
    for number in range(MIN_FAILURES - 1):
        assert circuit_breaker.note(url(number), down) is None
        assert circuit_breaker.note(url(number, "https://b.example"), down) is None


def test_failures_shortly_before_the_series_are_returned_too() -> None:
    """A response in flight when the host goes down arrives after the first failure."""
    circuit_breaker, down = CircuitBreaker(), DOWN[0]
    circuit_breaker.note(url(1), down)
    circuit_breaker.note(url(0), UP[0])
    row = [circuit_breaker.note(url(number), down) for number in range(2, MIN_FAILURES + 2)]
    assert row[-1] == [url(number) for number in range(1, MIN_FAILURES + 2)]


def test_urls_that_were_not_fetched_do_not_count() -> None:
    circuit_breaker, down = CircuitBreaker(), DOWN[0]
    for number in range(MIN_FAILURES - 1):
        assert circuit_breaker.note(url(number), down) is None
        assert circuit_breaker.note(url(1_000 + number), Verdict(Unlisted(Why.ROBOTS))) is None
        assert circuit_breaker.note(url(2_000 + number), Verdict(Listed())) is None, "listed unfetched"
    assert circuit_breaker.last_good("https://a.example") is None
    assert circuit_breaker.note(url(MIN_FAILURES), down)


def test_last_good_page_is_the_last_one_that_responded() -> None:
    circuit_breaker = CircuitBreaker()
    circuit_breaker.note(url(1), UP[0])
    circuit_breaker.note(url(2), UP[0])
    circuit_breaker.note(url(3), UP[1])
    circuit_breaker.note(url(4), DOWN[0])
    assert circuit_breaker.last_good("https://a.example") == url(2)
    assert circuit_breaker.last_good("https://b.example") is None


def test_clear_resets_the_count() -> None:
    circuit_breaker, down = CircuitBreaker(), DOWN[0]
    for number in range(MIN_FAILURES):
        circuit_breaker.note(url(number), down)
    circuit_breaker.clear("https://a.example")
    rows = [circuit_breaker.note(url(100 + number), down) for number in range(MIN_FAILURES)]
    assert rows == [None] * (MIN_FAILURES - 1) + [[url(100 + number) for number in range(MIN_FAILURES)]]


class HalfBrokenSite(Site):
    """A site of 100 healthy pages and 200 failing ones, unless `well` says otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self.fall: int | None = 500  # what the others answer; None: the connection ends
        self.well: Callable[[str], bool] = lambda path: not path.startswith("/shop")
        self.page("/", links=[f"/shop/{n}" for n in range(200)] + [f"/blog/{n}" for n in range(100)])
        for path in [f"/shop/{n}" for n in range(200)] + [f"/blog/{n}" for n in range(100)]:
            self.page(path)
            self.respond(path, self._answering(path, self.answers[path]))

    def _answering(self, path: str, good: Callable[[Any], CannedResponse]) -> Callable[[Any], CannedResponse]:
        return lambda request: good(request) if self.well(path) else fallen(request, self.fall)


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("concurrency", [1, 4, 16])
async def test_a_broken_section_does_not_end_the_run(tmp_path: Path, concurrency: int) -> None:
    site = HalfBrokenSite()
    with site.serve() as origin:
        result = await crawl(settings(origin, tmp_path, concurrency=concurrency))
    assert result.ending is Ending.COMPLETE
    assert result.counts == {"listed": 101, "failed:server-error": 200}
    # The start page, 300 others, robots.txt and three places where sitemaps use to be.
    assert len(site.log) <= 305 + 200 // MIN_FAILURES + 1, "one page more for each row"


@pytest.mark.system
@pytest.mark.anyio
async def test_resumed_run_finds_a_good_page_in_the_state(
    tmp_path: Path,
) -> None:
    site = HalfBrokenSite()
    site.page("/", links=[f"/shop/{n}" for n in range(200)])
    with site.serve() as origin:
        chosen = settings(origin, tmp_path, state=str(tmp_path / "s.db"), max_pages=5)
        assert (await crawl(chosen)).ending is Ending.LIMIT
        result = await crawl(settings(origin, tmp_path, state=str(tmp_path / "s.db")))
    assert result.ending is Ending.COMPLETE
    assert result.counts == {"listed": 1, "failed:server-error": 200}


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_limit_reached_in_a_broken_section_repeats_no_page(tmp_path: Path) -> None:
    """The row of failures may be long enough just when what is in flight at the end is settled."""
    site = HalfBrokenSite()
    site.page("/", links=[f"/shop/{n}" for n in range(100)])
    with site.serve() as origin:
        limit = MIN_FAILURES + 4
        chosen = settings(origin, tmp_path, state=str(tmp_path / "s.db"), max_pages=limit, concurrency=16)
        while (result := await crawl(chosen)).ending is not Ending.COMPLETE:
            assert len(site.log) < 150
    assert result.counts == {"listed": 1, "failed:server-error": 100}


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("fall", [500, 429, None])
async def test_a_site_that_goes_down_ends_the_run_and_loses_nothing(tmp_path: Path, fall: int | None) -> None:
    """Pages that answered before fail as well, so it is the site and not a section."""
    site, up = HalfBrokenSite(), False

    def calm(_: str) -> bool:
        return up or len(site.log) < 20

    site.well, site.fall = calm, fall
    with site.serve() as origin:
        chosen = settings(origin, tmp_path, state=str(tmp_path / "s.db"), concurrency=2)
        first = await crawl(chosen)
        assert first.ending is Ending.FAILING
        up = True
        second = await crawl(chosen)
    assert second.ending is Ending.COMPLETE
    assert second.counts == {"listed": 301}


def fallen(request: Any, status: int | None) -> CannedResponse:
    if status is None:
        request.connection.close()
    return Site.answer(status or 500, b"ill")


CONCURRENCY = 2


async def again(origin: str, folder: Path) -> Result:
    return await crawl(settings(origin, folder, state=str(folder / "s.db"), concurrency=CONCURRENCY))


@pytest.mark.system
@pytest.mark.anyio
async def test_interruption_does_not_wait_for_the_probe(tmp_path: Path) -> None:
    site, asked_again, over = HalfBrokenSite(), threading.Event(), threading.Event()
    site.page("/", links=["/blog/0", *(f"/shop/{n}" for n in range(200))])
    good = site.answers["/blog/0"]

    def hesitating(request: Any) -> CannedResponse:
        if site.requests("/blog/0"):
            asked_again.set()
            over.wait(600)
        return good(request)

    site.respond("/blog/0", hesitating)
    with site.serve() as origin, anyio.fail_after(300):
        async with (
            open_job(settings(origin, tmp_path, concurrency=1)) as job,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(job.crawl)
            assert await anyio.to_thread.run_sync(asked_again.wait, 300)
            job.stop("enough")
        over.set()
    assert job.ending is Ending.STOPPED


@pytest.mark.slow
@pytest.mark.anyio
async def test_failed_pages_are_retried_after_all_others(tmp_path: Path) -> None:
    site = HalfBrokenSite()
    site.well = lambda _: len(site.log) < 20
    with site.serve() as origin:
        assert (await again(origin, tmp_path)).ending is Ending.FAILING
        before = {asked.target for asked in site.log}
        begun = len(site.log)
        site.well = lambda _: True
        assert (await again(origin, tmp_path)).counts == {"listed": 301}
    targets = [asked.target for asked in site.log[begun:]]
    first_again = min(at for at, target in enumerate(targets) if target in before)
    # What is in flight may be logged after several pages that are retried, if its thread has to wait.
    assert len(set(targets[first_again:]) - before) <= CONCURRENCY


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_second_run_without_progress_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    site = HalfBrokenSite()
    site.well = lambda _: len(site.log) < 20
    with site.serve() as origin:
        for quiet, wanted in ((False, False), (False, True), (True, True)):
            caplog.clear()
            chosen = settings(origin, tmp_path, state=str(tmp_path / "s.db"), quiet=quiet)
            logging.getLogger("crawler").handlers.clear()
            assert await crawl_site(chosen) == Exit.PARTIAL
            logging.getLogger("crawler").propagate = True
            said = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
            assert any("No progress" in line for line in said) is wanted, said


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_run_that_makes_progress_is_not_reported_as_stuck(tmp_path: Path) -> None:
    site = HalfBrokenSite()
    with site.serve() as origin:
        for _ in range(3):
            chosen = settings(origin, tmp_path, state=str(tmp_path / "s.db"), max_pages=20)
            async with open_job(chosen) as job:
                site.well = lambda _: True
                assert await job.crawl() is Ending.LIMIT
                assert not job.stalled


def test_the_systemd_unit_treats_an_unfinished_run_as_a_failure() -> None:
    unit = (Path(__file__).parents[2] / "config/sitemap-crawler.service").read_text()
    assert "SuccessExitStatus=143\n" in unit
