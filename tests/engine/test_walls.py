"""Whole crawls of sites on which a firewall answers in place of some pages, or of all."""

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
import respx

from crawler.app.job import open_job
from crawler.engine.crawl import Ending
from crawler.errors import StartForbidden, StartUnreachable
from crawler.model.outcome import Failed
from crawler.model.reasons import Cause
from crawler.parse.url import Url
from crawler.ports import reads
from crawler.rules.circuit_breaker import MIN_FAILURES
from tests.engine.test_crawl import settings
from tests.engine.test_respx import SITE, crawl, page, web  # noqa: F401 - a fixture
from tests.rules.test_walls import ANUBIS, IMPERVA

pytestmark = [pytest.mark.anyio, pytest.mark.system]

PAGES = [f"/p{number}" for number in range(9)]
ANSWERS = {
    "200": httpx.Response(200, html=ANUBIS),
    "200 noindex": httpx.Response(200, html=IMPERVA),
    "202": httpx.Response(202, html="<p>wait</p>", headers={"x-amzn-waf-action": "challenge"}),
    "403": httpx.Response(403, html=ANUBIS),
    "405": httpx.Response(405, headers={"x-amzn-waf-action": "captcha"}),
    "429": httpx.Response(429, headers={"x-vercel-mitigated": "challenge"}),
    "503": httpx.Response(503, headers={"cf-mitigated": "challenge"}),
}
CHECK = "<title>One moment</title>{}<p>We make sure that you are no robot. Please wait.</p>"
UNKNOWN = {
    "unknown": httpx.Response(200, html=CHECK.format("")),
    "unknown, noindex": httpx.Response(200, html=CHECK.format('<meta name="robots" content="noindex">')),
    "unknown, canonical": httpx.Response(200, html=CHECK.format('<link rel="canonical" href="/">')),
    "unknown, empty": httpx.Response(200, html=""),
}


def night(web: respx.MockRouter, walled: Callable[[str], bool], wall: httpx.Response) -> None:  # noqa: F811
    """The site, of which a firewall answers some paths."""
    web.clear()

    def answer(request: httpx.Request) -> httpx.Response:
        path = request.url.raw_path.decode()
        if walled(path):
            return httpx.Response(wall.status_code, content=wall.content, headers=wall.headers)
        if path == "/robots.txt":
            return httpx.Response(200, text="User-agent: *\nDisallow: /p3")
        if path == "/" or path in PAGES:
            return httpx.Response(200, html=page("/", *PAGES, text=f"about {path}"))
        return httpx.Response(404)

    web.get(url__startswith=SITE).mock(side_effect=answer)


@pytest.mark.parametrize("wall", (ANSWERS | UNKNOWN).values(), ids=ANSWERS | UNKNOWN)
async def test_pages_that_a_firewall_answers_for_stay_as_they_were(
    web: respx.MockRouter,  # noqa: F811
    tmp_path: Path,
    wall: httpx.Response,
) -> None:
    night(web, lambda _: False, wall)
    first = await crawl(web, tmp_path, state=str(tmp_path / "state.db"))
    night(web, lambda path: path in PAGES[:2], wall)
    assert await crawl(web, tmp_path, state=str(tmp_path / "state.db")) == first
    night(web, lambda _: False, wall)
    assert await crawl(web, tmp_path, state=str(tmp_path / "state.db")) == first


async def test_a_first_crawl_lists_none_of_them_and_names_the_firewall(
    web: respx.MockRouter,  # noqa: F811
    tmp_path: Path,
) -> None:
    night(web, lambda path: path == "/p1", ANSWERS["200"])
    listed = await crawl(web, tmp_path, state=str(tmp_path / "state.db"))
    assert sorted(listed) == sorted({"/", *PAGES} - {"/p1", "/p3"})
    async with open_job(settings(SITE, tmp_path, transport="httpx", state=str(tmp_path / "state.db"))) as job:
        record = await job.frontier.read(reads.RecordOf(Url(f"{SITE}/p1")))
        assert record is not None
        assert record.outcome == Failed(Cause.WALL, "Anubis (/.within.website/), status 200")
        assert record.facts is None


@pytest.mark.usefixtures("hurried")
async def test_a_firewall_in_mid_crawl_is_named_with_its_cures(
    web: respx.MockRouter,  # noqa: F811
    tmp_path: Path,
) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/robots.txt":
            return httpx.Response(404)
        if request.url.path == "/" and len(web.calls) < MIN_FAILURES:
            return httpx.Response(200, html=page(*(f"/q{n}" for n in range(2 * MIN_FAILURES))))
        return httpx.Response(403, headers={"cf-mitigated": "challenge"})

    web.get(url__startswith=SITE).mock(side_effect=answer)
    async with open_job(settings(SITE, tmp_path, transport="httpx")) as job:
        assert await job.crawl() is Ending.FAILING
        told = job.stats.stopping or ""
    assert told.startswith(f"every request to {SITE} fails: a firewall answered")
    assert "allow this user agent" in told
    assert "-H (Cloudflare" in told


async def test_a_start_page_behind_a_firewall_ends_the_crawl(web: respx.MockRouter, tmp_path: Path) -> None:  # noqa: F811
    night(web, lambda path: path == "/", ANSWERS["403"])
    with pytest.raises(StartUnreachable, match=r"firewall.*this user agent.*header.*Anubis"):
        await crawl(web, tmp_path, state=str(tmp_path / "state.db"))


async def test_a_robots_txt_of_a_firewall_is_none(web: respx.MockRouter, tmp_path: Path) -> None:  # noqa: F811
    night(web, lambda path: path == "/robots.txt", ANSWERS["403"])
    with pytest.raises(StartForbidden, match="Anubis"):
        await crawl(web, tmp_path, state=str(tmp_path / "state.db"))


async def test_the_last_robots_txt_counts_while_a_firewall_answers(
    web: respx.MockRouter,  # noqa: F811
    tmp_path: Path,
) -> None:
    night(web, lambda _: False, ANSWERS["403"])
    first = await crawl(web, tmp_path, state=str(tmp_path / "state.db"))
    assert "/p3" not in first
    night(web, lambda path: path == "/robots.txt", ANSWERS["403"])
    assert await crawl(web, tmp_path, state=str(tmp_path / "state.db")) == first
