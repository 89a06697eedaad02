"""Whole crawls over httpx's own transport, answered by respx: no server, no name resolved, nothing connected to."""

import gzip
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import httpx
import pytest
import respx

from crawler.app.job import open_job
from crawler.engine.crawl import Ending
from crawler.errors import StartUnreachable
from crawler.ports import reads
from tests.engine.test_crawl import settings

pytestmark = [pytest.mark.anyio, pytest.mark.system]

SITE = "https://site.example"


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[respx.MockRouter]:
    """What answers every request of the crawl."""

    async def connect(*_: object, **__: object) -> None:
        raise AssertionError("the crawl left the process")

    monkeypatch.setattr(anyio, "connect_tcp", connect)
    monkeypatch.setattr(anyio, "getaddrinfo", connect)
    with respx.mock(base_url=SITE, assert_all_called=False) as router:
        yield router


def page(*links: str, head: str = "", text: str = "") -> str:
    linked = "".join(f'<a href="{link}">{link}</a>' for link in links)
    return f"<title>{text}</title>{head}<p>{text or links or head}</p>{linked}"


def asked(web: respx.MockRouter) -> list[str]:
    """The targets of all requests but those for sitemaps and for a page that cannot exist, in order."""
    targets = [call.request.url.raw_path.decode() for call in web.calls]
    return [target for target in targets if not target.endswith((".xml", "-no-such-page"))]


def missing(_: httpx.Request) -> httpx.Response:
    return httpx.Response(404)


async def crawl(
    web: respx.MockRouter,
    folder: Path,
    others: Callable[[httpx.Request], httpx.Response] | Exception = missing,
    **chosen: object,
) -> dict[str, str]:
    """One night: crawls and publishes; the entries of the sitemap, by target. `others`: to what no route answers."""
    web.route().mock(side_effect=others)
    async with open_job(settings(SITE, folder, **({"transport": "httpx"} | chosen))) as job:
        assert await job.crawl() is Ending.COMPLETE
        await job.publish()
        balance = await job.frontier.read(reads.RunBalance())
        assert balance.balanced
    written = gzip.decompress((folder / "out/sitemap.xml.gz").read_bytes()).decode()
    entries = re.findall(r"<url>(.*?)</url>", written, re.DOTALL)
    return {re.findall(rf"<loc>{SITE}(.*?)</loc>", entry)[0]: entry for entry in entries}


async def test_linked_pages_are_listed_and_islands_never_asked(web: respx.MockRouter, tmp_path: Path) -> None:
    web.get("/").respond(html=page("/a", "/missing"))
    web.get("/a").respond(html=page("/", "/b#part"))
    web.get("/b").respond(html=page(text="b"))
    island = web.get("/island").respond(html=page(text="island"))
    assert [*await crawl(web, tmp_path)] == ["/", "/a", "/b"]
    assert asked(web)[0] == "/robots.txt"
    assert sorted(asked(web)[1:]) == ["/", "/a", "/b", "/missing"]
    assert not island.called


async def test_redirects_are_followed_to_the_page_listed(web: respx.MockRouter, tmp_path: Path) -> None:
    web.get("/").respond(html=page("/old", "/away", "/circle"))
    web.get("/old").respond(301, headers={"Location": "/older"})
    web.get("/older").respond(302, headers={"Location": f"{SITE}/new"})
    web.get("/new").respond(html=page(text="new"))
    web.get("/away").respond(302, headers={"Location": "https://other.example/"})
    web.get("/circle").respond(302, headers={"Location": "/circle"})
    assert [*await crawl(web, tmp_path)] == ["/", "/new"]
    assert {call.request.url.host for call in web.calls} == {"site.example"}


async def test_robots_txt_keeps_pages_from_being_asked(web: respx.MockRouter, tmp_path: Path) -> None:
    web.get("/robots.txt").respond(text="User-agent: *\nDisallow: /private\nAllow: /private/open\n")
    web.get("/").respond(html=page("/private/x", "/private/open", "/public"))
    web.get("/private/open").respond(html=page(text="open"))
    web.get("/public").respond(html=page(text="public"))
    assert [*await crawl(web, tmp_path)] == ["/", "/private/open", "/public"]
    assert "/private/x" not in asked(web)


async def test_noindex_pages_are_followed_but_not_listed(web: respx.MockRouter, tmp_path: Path) -> None:
    web.get("/").respond(html=page("/tagged", "/headed"))
    web.get("/tagged").respond(html=page("/behind", head='<meta name="robots" content="noindex">'))
    web.get("/headed").respond(html=page(text="headed"), headers={"X-Robots-Tag": "noindex"})
    web.get("/behind").respond(html=page(text="behind"))
    assert [*await crawl(web, tmp_path)] == ["/", "/behind"]


async def test_canonical_page_is_listed_in_place_of_its_copy(web: respx.MockRouter, tmp_path: Path) -> None:
    web.get("/").respond(html=page("/copy"))
    web.get("/copy").respond(html=page(head='<link rel="canonical" href="/original">'))
    web.get("/original").respond(html=page(text="original"))
    assert [*await crawl(web, tmp_path)] == ["/", "/original"]


async def test_second_night_asks_with_validators_and_keeps_dates(
    web: respx.MockRouter, tmp_path: Path
) -> None:
    dated = {"ETag": '"1"', "Last-Modified": "Thu, 29 Feb 2024 12:00:00 GMT"}

    def unchanged(request: httpx.Request) -> httpx.Response:
        if request.headers.get("if-none-match") == '"1"':
            return httpx.Response(304)
        return httpx.Response(200, html=page(text="a"), headers=dated)

    web.get("/").respond(html=page("/a"))
    route = web.get("/a").mock(side_effect=unchanged)
    state = str(tmp_path / "state.db")
    first = await crawl(web, tmp_path, state=state)
    second = await crawl(web, tmp_path, state=state)
    assert first == second
    assert "<lastmod>2024-02-29T12:00:00+00:00</lastmod>" in first["/a"]
    assert [call.response.status_code for call in route.calls] == [200, 304]
    assert route.calls.last.request.headers["if-modified-since"] == dated["Last-Modified"]


async def test_overloaded_page_is_asked_again_as_it_says(
    web: respx.MockRouter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(random, "uniform", lambda *_: 0.0)
    busy = httpx.Response(503, headers={"Retry-After": "0"})
    web.get("/").respond(html=page("/busy"))
    route = web.get("/busy").mock(side_effect=[busy, busy, httpx.Response(200, html=page(text="busy"))])
    assert [*await crawl(web, tmp_path, retries=2)] == ["/", "/busy"]
    assert route.call_count == 3


async def test_failing_pages_are_left_out_and_end_no_crawl(web: respx.MockRouter, tmp_path: Path) -> None:
    web.get("/").respond(html=page("/broken", "/cut", "/silent", "/well"))
    web.get("/broken").respond(500)
    web.get("/cut").mock(side_effect=httpx.RemoteProtocolError("cut"))
    web.get("/silent").mock(side_effect=httpx.ReadTimeout("silent"))
    web.get("/well").respond(html=page(text="well"))
    assert [*await crawl(web, tmp_path, max_failed=1.0)] == ["/", "/well"]


async def test_sitemaps_of_the_site_are_seeds(web: respx.MockRouter, tmp_path: Path) -> None:
    urls = "".join(f"<url><loc>{SITE}{path}</loc></url>" for path in ("/island", "/gone"))
    urlset = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>'
    web.get("/robots.txt").respond(text=f"Sitemap: {SITE}/seeds.xml\n")
    web.get("/seeds.xml").respond(text=urlset, content_type="application/xml")
    web.get("/").respond(html=page(text="home"))
    web.get("/island").respond(html=page(text="island"))
    assert [*await crawl(web, tmp_path)] == ["/", "/island"]


async def test_language_versions_and_images_are_written(web: respx.MockRouter, tmp_path: Path) -> None:
    versions = "".join(
        f'<link rel="alternate" hreflang="{code}" href="/{code}"><img src="/{code}.png">'
        for code in ("en", "de")
    )
    web.get("/").respond(html=page("/en"))
    for code in ("en", "de"):
        web.get(f"/{code}").respond(html=page(head=versions, text=code))
    entries = await crawl(web, tmp_path, hreflang=True, images=True)
    assert [*entries] == ["/", "/de", "/en"]
    assert f'hreflang="de" href="{SITE}/de"' in entries["/en"]
    assert f"<image:loc>{SITE}/en.png</image:loc>" in entries["/en"]


async def test_pages_that_say_missing_with_200_are_not_listed(web: respx.MockRouter, tmp_path: Path) -> None:
    web.get("/robots.txt").respond(404)
    web.get("/").respond(html=page("/real", *(f"/p/{number}" for number in range(20))))
    web.get("/real").respond(html=page(text="real"))

    def alike(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, html=page(text="This page does not exist."))

    assert [*await crawl(web, tmp_path, alike)] == ["/", "/real"]


async def test_unreachable_start_raises(web: respx.MockRouter, tmp_path: Path) -> None:
    with pytest.raises(StartUnreachable, match="no route"):
        await crawl(web, tmp_path, httpx.ConnectError("no route"))
