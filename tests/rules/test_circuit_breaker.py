"""A host that only fails is let go; one broken section of a site that is well is not the host."""

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from crawler.app.job import open_job
from crawler.cli.crawl import crawl_site
from crawler.cli.demo.site import Answer, Site
from crawler.engine.crawl import Ending
from crawler.errors import Exit
from crawler.model.facts import Facts
from crawler.model.outcome import Failed, Listed, Unlisted
from crawler.model.reasons import Cause, Why
from crawler.model.settlement import Verdict
from crawler.parse.url import Url
from crawler.rules.circuit_breaker import ROW, CircuitBreaker
from tests.engine.test_crawl import Result, crawl, settings

DOWN = [
    Verdict(Failed(Cause.CONNECT)),
    Verdict(Failed(Cause.TIMEOUT)),
    Verdict(Failed(Cause.TRUNCATED)),
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
def test_a_row_of_failures_is_given_back(verdict: Verdict) -> None:
    circuit_breaker = CircuitBreaker()
    assert all(circuit_breaker.note(url(number), verdict) is None for number in range(ROW - 1))
    assert circuit_breaker.note(url(ROW - 1), verdict) == [url(number) for number in range(ROW)]


@pytest.mark.parametrize("verdict", UP)
def test_one_answer_starts_the_count_anew(verdict: Verdict) -> None:
    circuit_breaker = CircuitBreaker()
    for number in range(3 * ROW):
        assert circuit_breaker.note(url(number), verdict if number % (ROW - 1) == 0 else DOWN[0]) is None


def test_each_origin_has_its_own_row() -> None:
    circuit_breaker, down = CircuitBreaker(), DOWN[0]
    for number in range(ROW - 1):
        assert circuit_breaker.note(url(number), down) is None
        assert circuit_breaker.note(url(number, "https://b.example"), down) is None


def test_what_failed_shortly_before_the_row_is_given_back_too() -> None:
    """An answer that was on its way when the host fell comes after the first failure."""
    circuit_breaker, down = CircuitBreaker(), DOWN[0]
    circuit_breaker.note(url(1), down)
    circuit_breaker.note(url(0), UP[0])
    row = [circuit_breaker.note(url(number), down) for number in range(2, ROW + 2)]
    assert row[-1] == [url(number) for number in range(1, ROW + 2)]


def test_what_was_not_asked_for_says_nothing_of_the_host() -> None:
    circuit_breaker, down = CircuitBreaker(), DOWN[0]
    for number in range(ROW - 1):
        assert circuit_breaker.note(url(number), down) is None
        assert circuit_breaker.note(url(1_000 + number), Verdict(Unlisted(Why.ROBOTS))) is None
        assert circuit_breaker.note(url(2_000 + number), Verdict(Listed())) is None, "listed unfetched"
    assert circuit_breaker.witness("https://a.example") is None
    assert circuit_breaker.note(url(ROW), down)


def test_the_witness_is_the_page_that_answered_last() -> None:
    circuit_breaker = CircuitBreaker()
    circuit_breaker.note(url(1), UP[0])
    circuit_breaker.note(url(2), UP[0])
    circuit_breaker.note(url(3), UP[1])
    circuit_breaker.note(url(4), DOWN[0])
    assert circuit_breaker.witness("https://a.example") == url(2)
    assert circuit_breaker.witness("https://b.example") is None


def test_a_site_that_is_well_begins_a_new_row() -> None:
    circuit_breaker, down = CircuitBreaker(), DOWN[0]
    for number in range(ROW):
        circuit_breaker.note(url(number), down)
    circuit_breaker.clear("https://a.example")
    rows = [circuit_breaker.note(url(100 + number), down) for number in range(ROW)]
    assert rows == [None] * (ROW - 1) + [[url(100 + number) for number in range(ROW)]]


@pytest.fixture
def anyio_backend() -> str:
    """Nothing below touches the event loop."""
    return "asyncio"


class Sick(Site):
    """A site of 100 pages that are well and of 200 that are not, until `well` says otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self.fall: int | None = 500  # what the others answer; None: the connection ends
        self.well: Callable[[str], bool] = lambda path: not path.startswith("/shop")
        self.page("/", links=[f"/shop/{n}" for n in range(200)] + [f"/blog/{n}" for n in range(100)])
        for path in [f"/shop/{n}" for n in range(200)] + [f"/blog/{n}" for n in range(100)]:
            self.page(path)
            self.respond(path, self._answering(path, self.answers[path]))

    def _answering(self, path: str, good: Callable[[Any], Answer]) -> Callable[[Any], Answer]:
        return lambda request: good(request) if self.well(path) else fallen(request, self.fall)


@pytest.mark.anyio
@pytest.mark.parametrize("concurrency", [1, 4, 16])
async def test_a_section_that_only_fails_does_not_end_the_run(tmp_path: Path, concurrency: int) -> None:
    site = Sick()
    with site.serve() as origin:
        result = await crawl(settings(origin, tmp_path, concurrency=concurrency))
    assert result.ending is Ending.COMPLETE
    assert result.counts == {"listed": 101, "failed:server-error": 200}
    assert len(site.log) <= 302 + 200 // ROW + 1, "one page more for each row"


@pytest.mark.anyio
async def test_a_section_that_fails_in_a_run_that_goes_on_finds_its_witness_in_the_state(
    tmp_path: Path,
) -> None:
    site = Sick()
    site.page("/", links=[f"/shop/{n}" for n in range(200)])
    with site.serve() as origin:
        chosen = settings(origin, tmp_path, state=str(tmp_path / "s.db"), max_pages=5)
        assert (await crawl(chosen)).ending is Ending.LIMIT
        result = await crawl(settings(origin, tmp_path, state=str(tmp_path / "s.db")))
    assert result.ending is Ending.COMPLETE
    assert result.counts == {"listed": 1, "failed:server-error": 200}


@pytest.mark.anyio
@pytest.mark.parametrize("fall", [500, 429, None])
async def test_a_site_that_falls_ends_the_run_and_loses_nothing(tmp_path: Path, fall: int | None) -> None:
    """However it fails. What answered before does not answer now, so it is the site and not a section."""
    site, up = Sick(), False

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


def fallen(request: Any, status: int | None) -> Answer:
    if status is None:
        request.connection.close()
    return Site.answer(status or 500, b"ill")


async def again(origin: str, folder: Path) -> Result:
    return await crawl(settings(origin, folder, state=str(folder / "s.db"), concurrency=2))


@pytest.mark.anyio
async def test_an_interruption_does_not_wait_for_the_witness(tmp_path: Path) -> None:
    site, asked_again, over = Sick(), threading.Event(), threading.Event()
    site.page("/", links=["/blog/0", *(f"/shop/{n}" for n in range(200))])
    good = site.answers["/blog/0"]

    def hesitating(request: Any) -> Answer:
        if site.requests("/blog/0"):
            asked_again.set()
            over.wait(30)
        return good(request)

    site.respond("/blog/0", hesitating)
    with site.serve() as origin, anyio.fail_after(25):
        async with (
            open_job(settings(origin, tmp_path, concurrency=1)) as job,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(job.crawl)
            assert await anyio.to_thread.run_sync(asked_again.wait, 20)
            job.stop("enough")
        over.set()
    assert job.ending is Ending.STOPPED


@pytest.mark.anyio
async def test_what_failed_is_asked_for_after_all_others(tmp_path: Path) -> None:
    site = Sick()
    site.well = lambda _: len(site.log) < 20
    with site.serve() as origin:
        assert (await again(origin, tmp_path)).ending is Ending.FAILING
        before = {asked.target for asked in site.log}
        begun = len(site.log)
        site.well = lambda _: True
        assert (await again(origin, tmp_path)).counts == {"listed": 301}
    targets = [asked.target for asked in site.log[begun:]]
    last_new = max(at for at, target in enumerate(targets) if target not in before)
    first_again = min(at for at, target in enumerate(targets) if target in before)
    assert first_again >= last_new - 2, "but for what is in flight"


@pytest.mark.anyio
async def test_a_second_run_without_progress_is_loud(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    site = Sick()
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


@pytest.mark.anyio
async def test_a_run_that_comes_further_is_not_called_stuck(tmp_path: Path) -> None:
    site = Sick()
    with site.serve() as origin:
        for _ in range(3):
            chosen = settings(origin, tmp_path, state=str(tmp_path / "s.db"), max_pages=20)
            async with open_job(chosen) as job:
                site.well = lambda _: True
                assert await job.crawl() is Ending.LIMIT
                assert not job.stalled


def test_the_unit_of_systemd_takes_an_unfinished_run_for_a_failure() -> None:
    unit = (Path(__file__).parents[2] / "config/sitemap-crawler.service").read_text()
    assert "SuccessExitStatus=143\n" in unit
