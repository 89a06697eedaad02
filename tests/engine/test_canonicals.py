"""Whole crawls of sites whose canonicals fail or lead back."""

from pathlib import Path
from typing import Any

import httpx
import pytest
import respx

from crawler.app.job import open_job
from crawler.parse.url import Url
from crawler.ports import reads
from tests.engine.test_crawl import settings
from tests.engine.test_respx import SITE, crawl, page, web  # noqa: F401 - a fixture

pytestmark = [pytest.mark.anyio, pytest.mark.system]

NAMES = {
    "/dead": "/gone",
    "/left": "/right",
    "/right": "/left",
    "/copy": "/page",
    "/turn": "/back",
    "/out": "/no",
}


def night(web: respx.MockRouter, names: dict[str, str], **failing: int) -> None:  # noqa: F811
    """The site: pages with their canonicals; `failing`: statuses by name."""
    web.clear()

    def answer(request: httpx.Request) -> httpx.Response:
        path = request.url.raw_path.decode()
        if status := failing.get(path.strip("/")):
            return httpx.Response(status)
        if path == "/back":
            return httpx.Response(301, headers={"location": "/turn"})
        if path not in {"/", "/page", *names}:
            return httpx.Response(404)
        if request.headers.get("if-none-match") == '"1"':
            return httpx.Response(304)
        head = f'<link rel="canonical" href="{names[path]}">' if path in names else ""
        content = page("/", "/page", *names, head=head, text=f"about {path}")
        return httpx.Response(200, html=content, headers={"etag": '"1"'})

    web.get(url__startswith=SITE).mock(side_effect=answer)


async def crawled(web: respx.MockRouter, folder: Path, **chosen: Any) -> list[str]:  # noqa: F811
    return sorted(await crawl(web, folder, state=str(folder / "state.db"), **chosen))


async def test_pages_with_a_dead_or_circular_canonical_are_listed(
    web: respx.MockRouter,  # noqa: F811
    tmp_path: Path,
) -> None:
    night(web, NAMES)
    ignoring = ["/", "/dead", "/left", "/out", "/page", "/right", "/turn"]
    assert await crawled(web, tmp_path, exclude=("/no",), no_list=()) == [*ignoring[:3], *ignoring[4:]]
    async with open_job(settings(SITE, tmp_path, transport="httpx", state=str(tmp_path / "state.db"))) as job:
        rows = [row for chunk in [rows async for rows in job.frontier.stream(reads.Pages())] for row in chunk]
        told = {row.url.removeprefix(SITE): row.detail for row in rows if row.outcome == "listed"}
        assert told["/dead"] == f"{SITE}/gone: not found (404, 410)"
        assert told["/left"] == f"{SITE}/right: leads back to this page"
        assert told["/turn"] == f"{SITE}/back: leads back to this page"
        assert told["/page"] == ""


async def test_each_night_decides_anew(web: respx.MockRouter, tmp_path: Path) -> None:  # noqa: F811
    names = {"/copy": "/page"}
    night(web, names)
    assert await crawled(web, tmp_path) == ["/", "/page"]
    night(web, names, page=500)
    assert await crawled(web, tmp_path) == ["/", "/page"], "it stays listed, so it is not dead"
    night(web, names, page=404)
    assert await crawled(web, tmp_path, max_shrink=1.0) == ["/", "/copy"]
    night(web, names)
    back = await crawled(web, tmp_path, max_verdict_change=1.0)
    assert back == ["/", "/page"], "though /copy answered 304"


async def test_a_page_that_may_not_be_listed_is_not(web: respx.MockRouter, tmp_path: Path) -> None:  # noqa: F811
    night(web, {"/dead": "/gone"})
    assert await crawled(web, tmp_path, no_list=("/dead",)) == ["/", "/page"]
    assert await crawled(web, tmp_path, no_rule=("canonical",)) == ["/", "/dead", "/page"]
    record = f"{SITE}/dead"
    async with open_job(settings(SITE, tmp_path, transport="httpx", state=str(tmp_path / "state.db"))) as job:
        assert await job.frontier.read(reads.RecordOf(Url(record))) is not None
