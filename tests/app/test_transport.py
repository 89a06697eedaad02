"""Custom transports passed to `open_job`, which replace or wrap the default one: httpx's mock, respx, and wrappers."""

from pathlib import Path

import httpx
import pytest
import respx

from crawler import ConfigError, Ending, Settings, open_job
from crawler.fetch.routes import Transport
from crawler.settings.sections import Http, Output, Pace, Scope, State
from tests.sites import star

pytestmark = [pytest.mark.anyio, pytest.mark.both_loops]


def settings(folder: Path, start: str, **http: object) -> Settings:
    return Settings(
        scope=Scope(start=(start,), seed_sitemaps="off"),
        pace=Pace(rate=0),
        http=Http(**http),  # type: ignore[arg-type]
        output=Output(output=str(folder / "out")),
        state=State(state=":memory:"),
    )


async def pages(chosen: Settings, transport: Transport) -> int:
    async with open_job(chosen, transport=transport) as job:
        assert await job.crawl() is Ending.COMPLETE
        return (await job.publish()).urls


class Cache(httpx.AsyncBaseTransport):
    """Caches every complete response."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self.inner, self.kept, self.asked = inner, dict[httpx.URL, httpx.Response](), list[str]()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.url not in self.kept:
            self.asked.append(request.url.path)
            response = await self.inner.handle_async_request(request)
            body = b"".join([piece async for piece in response.stream])  # type: ignore[union-attr]
            await response.aclose()
            self.kept[request.url] = httpx.Response(
                response.status_code, headers=response.headers, stream=httpx.ByteStream(body)
            )
        return self.kept[request.url]

    async def aclose(self) -> None:
        await self.inner.aclose()


async def test_mock_transport_replaces_network(tmp_path: Path) -> None:
    router = respx.MockRouter(assert_all_called=False)
    router.get("https://site.example/").respond(html='<a href="/a">A</a><a href="/gone">B</a>')
    router.get("https://site.example/a").respond(html="<p>A")
    router.route().respond(404)
    router.get("https://site.example/gone").respond(404)
    transport = httpx.MockTransport(router.async_handler)
    assert await pages(settings(tmp_path, "https://site.example/"), transport) == 2


async def test_custom_transport_may_wrap_default_and_answer_itself(tmp_path: Path) -> None:
    caches: list[Cache] = []

    def cached(inner: httpx.AsyncBaseTransport) -> Cache:
        cache = Cache(inner)
        if caches:
            cache.kept = caches[0].kept
        caches.append(cache)
        return cache

    site = star("/a")
    with site.serve() as origin:
        assert await pages(settings(tmp_path, origin + "/"), cached) == 2
        assert await pages(settings(tmp_path, origin + "/"), cached) == 2
    first, second = caches
    assert [path for path in first.asked if "no-such-page" not in path] == ["/robots.txt", "/", "/a"]
    assert second.asked == []


async def test_an_application_in_the_same_process_can_be_crawled(tmp_path: Path) -> None:
    async def application(scope: dict[str, str], _receive: object, send: object) -> None:
        found = scope["path"] in {"/", "/a"}
        start = {"type": "http.response.start", "status": 200 if found else 404}
        await send({**start, "headers": [(b"content-type", b"text/html")]})  # type: ignore[operator]
        await send({"type": "http.response.body", "body": b'<a href="/a">'})  # type: ignore[operator]

    transport = httpx.ASGITransport(app=application)  # type: ignore[arg-type]
    assert await pages(settings(tmp_path, "http://app.example/"), transport) == 2


@pytest.mark.parametrize("transport", [httpx.MockTransport(lambda _: httpx.Response(200)), Cache])
async def test_a_transport_cannot_be_sent_to_worker_processes(tmp_path: Path, transport: Transport) -> None:
    chosen = settings(tmp_path, "https://site.example/")
    several = Settings(scope=chosen.scope, pace=Pace(processes=2), output=chosen.output, state=chosen.state)
    with pytest.raises(ConfigError, match="processes must be 1"):
        async with open_job(several, transport=transport):
            pass


@pytest.mark.parametrize("http", [{"proxy": "http://127.0.0.1:8009"}, {"http2": True}])
async def test_settings_without_effect_on_custom_transport_are_refused(
    tmp_path: Path, http: dict[str, object]
) -> None:
    pytest.importorskip("h2")
    chosen = settings(tmp_path, "https://site.example/", **http)
    with pytest.raises(ConfigError, match="have no effect on a transport"):
        async with open_job(chosen, transport=httpx.MockTransport(lambda _: httpx.Response(200))):
            pass
