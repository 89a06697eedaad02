"""Host aliases in whole crawls: `www.` and bare, http and https, asked once, and one site if they redirect here."""

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme

from crawler.app.job import open_job
from crawler.cli.demo.site import Answer, Site
from crawler.engine.crawl import Ending
from tests.engine.test_crawl import Result, crawl, settings

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

Respond = Callable[[str, str], Answer]  # from origin and target


@pytest.fixture
def anyio_backend() -> str:
    """Whole crawls: what depends on the event loop is tested with the transport."""
    return "asyncio"


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that end in .test are this machine."""
    real: Any = socket.getaddrinfo

    def resolve(host: Any, *rest: Any, **more: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else str(host)
        return real("127.0.0.1" if name.endswith(".test") else host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


class Hosts:
    """Two schemes and any number of names at one port."""

    def __init__(self, respond: Respond) -> None:
        self.port, self.asked = "", list[str]()
        self._respond = respond

    def get(self, target: str, _: Any = None) -> Callable[[Any], Answer]:
        """As `Site.answers` are asked."""

        def answer(request: Any) -> Answer:
            scheme = "https" if isinstance(request.request, ssl.SSLSocket) else "http"
            site = f"{scheme}://{request.headers['Host'].rpartition(':')[0]}"
            if target != "/robots.txt":
                self.asked.append(site + target)
            said = self._respond(site, target)
            headers = tuple(
                (name, value.replace(".test/", f".test:{self.port}/")) for name, value in said.headers
            )
            return Answer(said.status, said.body.replace(b".test/", f".test:{self.port}/".encode()), headers)

        return answer

    def others(self, than: str) -> list[str]:
        """What was asked of other origins, pages that cannot be as `?`."""
        asked = (url.partition("no-such-page")[0] + "?" * ("no-such-page" in url) for url in self.asked)
        return sorted(url for url in asked if not url.startswith(than + "/"))


@contextmanager
def serving(respond: Respond, tmp_path: Path) -> Iterator[tuple[Hosts, dict[str, object]]]:
    """The hosts, and the settings to crawl them with."""
    hosts, site = Hosts(respond), Site()
    site.answers = hosts  # type: ignore[assignment]
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("site.test", "*.site.test").configure_cert(context)
    with site.serve(context=context, plain=True) as served, authority.cert_pem.tempfile() as pem:
        hosts.port = served.rpartition(":")[2]
        yield hosts, {"ca_file": pem, "allow_address": ("127.0.0.0/8",), "folder": tmp_path}


async def crawled(hosts: Hosts, chosen: dict[str, object], *starts: str, **more: object) -> Result:
    """A crawl, to its end, by as many runs as that takes."""
    given = chosen | more
    folder = given.pop("folder")
    assert isinstance(folder, Path)
    begin = tuple(url.replace(".test/", f".test:{hosts.port}/") for url in starts)
    while True:
        result = await crawl(settings("", folder, start=begin, **given))
        if result.ending is Ending.COMPLETE:
            result.listed = [url.replace(f":{hosts.port}", "") for url in result.listed]
            return result


def page(*links: str, head: str = "") -> Answer:
    return Site.answer(200, f"{head}<p>a page{''.join(f'<a href={link}>x</a>' for link in links)}".encode())


def to(url: str) -> Answer:
    return Site.answer(301, b"", [("Location", url)])


HTTPS = "https://site.test"
HTTP = "http://site.test"
PATHS = ("/a", "/b", "/c?d=1")


def twin(home: str, twins: dict[str, Callable[[str], Answer]], links: tuple[str, ...]) -> Respond:
    """A site whose start page has links, and its twins."""

    def respond(site: str, target: str) -> Answer:
        if target == "/robots.txt":
            return Site.answer(404)
        if site != home:
            return twins[site](target) if site in twins else Site.answer(404)
        return page(*links) if target == "/" else page() if target in PATHS else Site.answer(404)

    return respond


def links_to(*sites: str) -> tuple[str, ...]:
    return tuple(site + path for site in sites for path in PATHS)


@pytest.mark.parametrize(
    ("home", "alias"),
    [
        (HTTPS, HTTP),
        (HTTP, HTTPS),
        (HTTPS, "http://www.site.test"),
        ("http://www.site.test", HTTPS),
        (HTTPS, "https://www.site.test"),
    ],
)
@pytest.mark.parametrize("reach", ["host", "subdomains"])
async def test_a_twin_that_redirects_page_by_page_is_asked_once(
    tmp_path: Path, home: str, alias: str, reach: str
) -> None:
    respond = twin(home, {alias: lambda target: to(home + target)}, links_to(alias))
    with serving(respond, tmp_path) as (hosts, chosen):
        more: dict[str, object] = {"state": str(tmp_path / "s.db"), "max_pages": 1, "scope": reach}
        result = await crawled(hosts, chosen, home + "/", **more)
    assert result.listed == ["/", *PATHS], (hosts.asked, result.counts)
    assert hosts.others(home) == [f"{alias}/?"]
    assert result.counts == {"listed": 4}


@pytest.mark.parametrize("tasks", [1, 16])
async def test_a_twin_by_way_of_a_twin(tmp_path: Path, tasks: int) -> None:
    """http://www -> https://www -> https://, and all of them are linked."""
    far, near = "http://www.site.test", "https://www.site.test"
    twins = {far: lambda target: to(near + target), near: lambda target: to(HTTPS + target)}
    with serving(twin(HTTPS, twins, links_to(far, near, HTTP)), tmp_path) as (hosts, chosen):
        result = await crawled(hosts, chosen, HTTPS + "/", concurrency=tasks)
    assert result.listed == ["/", *PATHS], (hosts.asked, result.counts)
    assert hosts.others(HTTPS) == [f"{HTTP}/", f"{HTTP}/?", f"{far}/?", f"{near}/?"]
    assert result.counts == {"listed": 4, "unlisted:offsite": 3}


@pytest.mark.parametrize(
    "answer",
    [
        lambda _: page("/more"),
        lambda _: Site.answer(503),
        lambda target: to("https://site.test.evil.test" + target),
        lambda target: to(f"{HTTPS}:1{target}"),
        lambda target: to(HTTP + target),
        lambda target: to(f"http://www.site.test{target}"),
        lambda target: to(f"https://evil.test/?{HTTPS}{target}"),
        lambda target: to(f"https://site.test@evil.test{target}"),
    ],
)
async def test_a_twin_that_does_not_redirect_here_is_another_site(
    tmp_path: Path, answer: Callable[[str], Answer]
) -> None:
    twins = {HTTP: answer, "http://www.site.test": lambda target: to(HTTP + target)}
    with serving(twin(HTTPS, twins, links_to(HTTP)), tmp_path) as (hosts, chosen):
        result = await crawled(hosts, chosen, HTTPS + "/")
    assert result.listed == ["/"]
    assert result.counts == {"listed": 1, "unlisted:offsite": 3}
    assert not [url for url in hosts.asked if url in links_to(HTTP) or "evil" in url]


async def test_a_twin_that_redirects_its_root_only_lists_nothing_of_its_own(tmp_path: Path) -> None:
    def answer(target: str) -> Answer:
        return to(f"{HTTPS}/") if target == "/" else to(f"{HTTPS}/c?d=1") if target == "/a" else page()

    for alias in (HTTP, "https://www.site.test"):
        with serving(twin(HTTPS, {alias: answer}, links_to(alias)), tmp_path) as (hosts, chosen):
            result = await crawled(hosts, chosen, HTTPS + "/")
        assert result.listed == ["/", "/c?d=1"]
        assert hosts.others(HTTPS) == [f"{alias}/", f"{alias}/?", *links_to(alias)]


async def test_a_start_that_moves_to_https_asks_its_old_origin_once(tmp_path: Path) -> None:
    respond = twin(HTTPS, {HTTP: lambda target: to(HTTPS + target)}, links_to(HTTP))
    with serving(respond, tmp_path) as (hosts, chosen):
        result = await crawled(hosts, chosen, HTTP + "/", state=str(tmp_path / "s.db"), max_pages=1)
    assert hosts.others(HTTPS) == [f"{HTTP}/", f"{HTTP}/?"]
    assert result.counts == {"listed": 4, "moved": 1}


async def test_one_of_two_starts_moves_to_https_and_the_other_stays(tmp_path: Path) -> None:
    def respond(site: str, target: str) -> Answer:
        if target == "/robots.txt":
            return Site.answer(404)
        return to(HTTPS + target) if site == HTTP else page()

    with serving(respond, tmp_path) as (hosts, chosen):
        result = await crawled(hosts, chosen, HTTP + "/", "http://other.site.test/")
    assert result.counts == {"listed": 2, "moved": 1}


async def test_robots_txt_of_the_twin_holds(tmp_path: Path) -> None:
    said = b"User-agent: *\nDisallow: /\n"

    def respond(site: str, target: str) -> Answer:
        if target == "/robots.txt":
            return (
                Site.answer(200, said, [("Content-Type", "text/plain")]) if site == HTTP else Site.answer(404)
            )
        return to(HTTPS + target) if site == HTTP else page(*links_to(HTTP))

    with serving(respond, tmp_path) as (hosts, chosen):
        result = await crawled(hosts, chosen, HTTPS + "/")
    assert hosts.others(HTTPS) == []
    assert result.counts == {"listed": 1, "unlisted:offsite": 3}


async def test_redirects_and_canonicals_to_the_twin_mean_what_they_say(tmp_path: Path) -> None:
    """A page that redirects to its twin, which redirects back, is no page."""

    def respond(site: str, target: str) -> Answer:
        if target == "/robots.txt":
            return Site.answer(404)
        if site == HTTP:
            return to(HTTPS + target)
        pages = {
            "/": page("/down", "/named"),
            "/down": to(HTTP + "/down"),
            "/named": page(head=f'<link rel=canonical href="{HTTP}/named">'),
        }
        return pages.get(target, Site.answer(404))

    with serving(respond, tmp_path) as (hosts, chosen):
        result = await crawled(hosts, chosen, HTTPS + "/")
    assert result.listed == ["/"]
    assert result.counts == {"listed": 1, "moved": 3, "unlisted:canonical": 1}


async def test_an_alias_that_fails_for_a_night_is_what_it_was(tmp_path: Path) -> None:
    """What the last publication knew of it holds."""
    is_ill: list[bool] = []

    def respond(site: str, target: str) -> Answer:
        if target == "/robots.txt":
            return Site.answer(404)
        if site == HTTP:
            return Site.answer(503) if is_ill else to(HTTPS + target)
        return page(*links_to(HTTP)) if target == "/" else page()

    with serving(respond, tmp_path) as (hosts, chosen):
        state: dict[str, object] = {"state": str(tmp_path / "s.db")}
        first = await crawled(hosts, chosen, HTTPS + "/", **state)
        await publish(hosts, chosen, HTTPS + "/", **state)
        is_ill.append(True)
        second = await crawled(hosts, chosen, HTTPS + "/", **state)
    assert second.listed == first.listed == ["/", *PATHS]


ELSEWHERE = "https://other.site.test"
WWW = "https://www.site.test"


def moving(site: str, target: str) -> Answer:
    """A start page that links to where another one redirects to; nothing else does."""
    if target == "/robots.txt":
        return Site.answer(404)
    if site == ELSEWHERE:
        return page(f"{WWW}/x", f"{WWW}/q?a=1", "http://www.site.test/y", f"{HTTPS}/z", "http://site.test/w")
    if site == WWW:
        return page()
    return (
        to(("https" if "www" in site else "http") + "://www.site.test" + target)
        if site != HTTPS
        else to(WWW + target)
    )


@pytest.mark.parametrize(
    "more", [{"concurrency": 1}, {"max_pages": 1}, {"concurrency": 16}, {"max_depth": 1}]
)
@pytest.mark.parametrize("first", [True, False])
async def test_what_was_found_before_a_start_moved_belongs_as_what_is_found_later(
    tmp_path: Path, more: dict[str, object], first: bool
) -> None:
    starts = (ELSEWHERE + "/", HTTPS + "/") if first else (HTTPS + "/", ELSEWHERE + "/")
    with serving(moving, tmp_path) as (hosts, chosen):
        result = await crawled(hosts, chosen, *starts, state=str(tmp_path / "s.db"), **more)
    ends = [url.rpartition(".test")[2] for url in result.listed]
    assert sorted(ends) == ["/", "/", "/q?a=1", "/w", "/x", "/y", "/z"]


@pytest.mark.parametrize("first", [True, False])
async def test_a_folder_that_a_start_moved_to_belongs(tmp_path: Path, first: bool) -> None:
    def respond(_: str, target: str) -> Answer:
        pages = {"/a/": page("/new/x"), "/b/": to("/new/"), "/new/": page(), "/new/x": page()}
        return pages.get(target, Site.answer(404))

    starts = (f"{HTTP}/a/", f"{HTTP}/b/") if first else (f"{HTTP}/b/", f"{HTTP}/a/")
    with serving(respond, tmp_path) as (hosts, chosen):
        result = await crawled(hosts, chosen, *starts, scope="path", concurrency=1)
    assert result.counts == {"listed": 3, "moved": 1}


async def publish(hosts: Hosts, chosen: dict[str, object], start: str, **more: object) -> None:
    given = chosen | more
    folder = given.pop("folder")
    assert isinstance(folder, Path)
    begin = (start.replace(".test/", f".test:{hosts.port}/"),)
    async with open_job(settings("", folder, start=begin, **given)) as job:
        await job.crawl()
        await job.publish()
