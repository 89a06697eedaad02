"""Host aliases in whole crawls: `www.` and bare host, http and https are one site if they redirect; each is probed once."""

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme

from crawler.app.job import open_job
from crawler.cli.demo.site import CannedResponse, Site
from crawler.engine.crawl import Ending
from tests.engine.test_crawl import Result, crawl, settings
from tests.tls import serve_tls

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

Respond = Callable[[str, str], CannedResponse]  # from origin and target


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Resolve names that end in .test to loopback."""
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

    def get(self, target: str, _: Any = None) -> Callable[[Any], CannedResponse]:
        """Called by `Site` in place of `dict.get`."""

        def answer(request: Any) -> CannedResponse:
            scheme = "https" if isinstance(request.request, ssl.SSLSocket) else "http"
            site = f"{scheme}://{request.headers['Host'].rpartition(':')[0]}"
            if target != "/robots.txt":
                self.asked.append(site + target)
            said = self._respond(site, target)
            headers = tuple(
                (name, value.replace(".test/", f".test:{self.port}/")) for name, value in said.headers
            )
            return CannedResponse(
                said.status, said.body.replace(b".test/", f".test:{self.port}/".encode()), headers
            )

        return answer

    def others(self, than: str) -> list[str]:
        """Requests for pages of origins other than `than`; probes with a random path are shown as `?`."""
        asked = (url.partition("no-such-page")[0] + "?" * ("no-such-page" in url) for url in self.asked)
        return sorted(url for url in asked if not url.startswith(than + "/") and not url.endswith(".xml"))


@contextmanager
def serving(respond: Respond, tmp_path: Path) -> Iterator[tuple[Hosts, dict[str, object]]]:
    """Serve the hosts; yields them and the settings to crawl them with."""
    hosts, site = Hosts(respond), Site()
    site.answers = hosts  # type: ignore[assignment]
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("site.test", "*.site.test").configure_cert(context)
    with serve_tls(site, context, plain=True) as served, authority.cert_pem.tempfile() as pem:
        hosts.port = served.rpartition(":")[2]
        yield hosts, {"ca_file": pem, "allow_address": ("127.0.0.0/8",), "folder": tmp_path}


async def crawled(hosts: Hosts, chosen: dict[str, object], *starts: str, **more: object) -> Result:
    """Crawl until complete, in as many runs as that takes."""
    given = chosen | more
    folder = given.pop("folder")
    assert isinstance(folder, Path)
    begin = tuple(url.replace(".test/", f".test:{hosts.port}/") for url in starts)
    while True:
        result = await crawl(settings("", folder, start=begin, **given))
        if result.ending is Ending.COMPLETE:
            result.listed = [url.replace(f":{hosts.port}", "") for url in result.listed]
            return result


def page(*links: str, head: str = "") -> CannedResponse:
    return Site.answer(200, f"{head}<p>a page{''.join(f'<a href={link}>x</a>' for link in links)}".encode())


def to(url: str) -> CannedResponse:
    return Site.answer(301, b"", [("Location", url)])


HTTPS = "https://site.test"
HTTP = "http://site.test"
PATHS = ("/a", "/b", "/c?d=1")


def aliased(
    home: str, aliases: dict[str, Callable[[str], CannedResponse]], links: tuple[str, ...]
) -> Respond:
    """A site whose start page has these links, and its aliases."""

    def respond(site: str, target: str) -> CannedResponse:
        if target == "/robots.txt":
            return Site.answer(404)
        if site != home:
            return aliases[site](target) if site in aliases else Site.answer(404)
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
async def test_alias_that_redirects_every_page_is_probed_once(
    tmp_path: Path, home: str, alias: str, reach: str
) -> None:
    respond = aliased(home, {alias: lambda target: to(home + target)}, links_to(alias))
    with serving(respond, tmp_path) as (hosts, chosen):
        more: dict[str, object] = {"state": str(tmp_path / "s.db"), "max_pages": 1, "scope": reach}
        result = await crawled(hosts, chosen, home + "/", **more)
    assert result.listed == ["/", *PATHS], (hosts.asked, result.counts)
    assert hosts.others(home) == [f"{alias}/?"]
    assert result.counts == {"listed": 4}


@pytest.mark.parametrize("tasks", [1, 16])
async def test_chain_of_aliases_is_resolved(tmp_path: Path, tasks: int) -> None:
    """http://www redirects to https://www, which redirects to https://; all three are linked."""
    far, near = "http://www.site.test", "https://www.site.test"
    aliases = {far: lambda target: to(near + target), near: lambda target: to(HTTPS + target)}
    with serving(aliased(HTTPS, aliases, links_to(far, near, HTTP)), tmp_path) as (hosts, chosen):
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
async def test_host_that_does_not_redirect_here_is_offsite(
    tmp_path: Path, answer: Callable[[str], CannedResponse]
) -> None:
    aliases = {HTTP: answer, "http://www.site.test": lambda target: to(HTTP + target)}
    with serving(aliased(HTTPS, aliases, links_to(HTTP)), tmp_path) as (hosts, chosen):
        result = await crawled(hosts, chosen, HTTPS + "/")
    assert result.listed == ["/"]
    assert result.counts == {"listed": 1, "unlisted:offsite": 3}
    assert not [url for url in hosts.asked if url in links_to(HTTP) or "evil" in url]


async def test_alias_redirecting_only_its_root_has_no_page_listed(tmp_path: Path) -> None:
    def answer(target: str) -> CannedResponse:
        return to(f"{HTTPS}/") if target == "/" else to(f"{HTTPS}/c?d=1") if target == "/a" else page()

    for alias in (HTTP, "https://www.site.test"):
        with serving(aliased(HTTPS, {alias: answer}, links_to(alias)), tmp_path) as (hosts, chosen):
            result = await crawled(hosts, chosen, HTTPS + "/")
        assert result.listed == ["/", "/c?d=1"]
        assert hosts.others(HTTPS) == [f"{alias}/", f"{alias}/?", *links_to(alias)]


async def test_start_url_redirected_to_https_requests_http_once(tmp_path: Path) -> None:
    respond = aliased(HTTPS, {HTTP: lambda target: to(HTTPS + target)}, links_to(HTTP))
    with serving(respond, tmp_path) as (hosts, chosen):
        result = await crawled(hosts, chosen, HTTP + "/", state=str(tmp_path / "s.db"), max_pages=1)
    assert hosts.others(HTTPS) == [f"{HTTP}/", f"{HTTP}/?"]
    assert result.counts == {"listed": 4, "moved": 1}


async def test_two_start_urls_of_which_one_redirects_to_https(tmp_path: Path) -> None:
    def respond(site: str, target: str) -> CannedResponse:
        if target == "/robots.txt":
            return Site.answer(404)
        return to(HTTPS + target) if site == HTTP else page()

    with serving(respond, tmp_path) as (hosts, chosen):
        result = await crawled(hosts, chosen, HTTP + "/", "http://other.site.test/")
    assert result.counts == {"listed": 2, "moved": 1}


async def test_robots_txt_of_alias_is_obeyed(tmp_path: Path) -> None:
    said = b"User-agent: *\nDisallow: /\n"

    def respond(site: str, target: str) -> CannedResponse:
        if target == "/robots.txt":
            return (
                Site.answer(200, said, [("Content-Type", "text/plain")]) if site == HTTP else Site.answer(404)
            )
        return to(HTTPS + target) if site == HTTP else page(*links_to(HTTP))

    with serving(respond, tmp_path) as (hosts, chosen):
        result = await crawled(hosts, chosen, HTTPS + "/")
    assert hosts.others(HTTPS) == []
    assert result.counts == {"listed": 1, "unlisted:offsite": 3}


async def test_redirect_and_canonical_that_lead_back(tmp_path: Path) -> None:
    """An alias redirects back to the page: a redirect to it is a loop, a canonical to it says nothing."""

    def respond(site: str, target: str) -> CannedResponse:
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
    assert result.listed == ["/", "/named"]
    assert result.counts == {"listed": 2, "moved": 3}


async def test_alias_of_last_publication_is_kept_while_it_fails(tmp_path: Path) -> None:
    """The alias that the last publication recorded is used."""
    is_down: list[bool] = []

    def respond(site: str, target: str) -> CannedResponse:
        if target == "/robots.txt":
            return Site.answer(404)
        if site == HTTP:
            return Site.answer(503) if is_down else to(HTTPS + target)
        pages = {"/": page(*links_to(HTTP)), **dict.fromkeys(PATHS, page())}
        return pages.get(target, Site.answer(404))

    with serving(respond, tmp_path) as (hosts, chosen):
        state: dict[str, object] = {"state": str(tmp_path / "s.db")}
        first = await crawled(hosts, chosen, HTTPS + "/", **state)
        await publish(hosts, chosen, HTTPS + "/", **state)
        is_down.append(True)
        second = await crawled(hosts, chosen, HTTPS + "/", **state)
    assert second.listed == first.listed == ["/", *PATHS]


ELSEWHERE = "https://other.site.test"
WWW = "https://www.site.test"


def moving(site: str, target: str) -> CannedResponse:
    """The start page of one host links to the host that another start URL redirects to; no other page does."""
    if target == "/robots.txt":
        return Site.answer(404)
    if site == ELSEWHERE:
        return page(f"{WWW}/x", f"{WWW}/q?a=1", "http://www.site.test/y", f"{HTTPS}/z", "http://site.test/w")
    if site == WWW:
        return page() if target in ("/", "/x", "/q?a=1", "/y", "/z", "/w") else Site.answer(404)
    return (
        to(("https" if "www" in site else "http") + "://www.site.test" + target)
        if site != HTTPS
        else to(WWW + target)
    )


@pytest.mark.parametrize(
    "more", [{"concurrency": 1}, {"max_pages": 1}, {"concurrency": 16}, {"max_depth": 1}]
)
@pytest.mark.parametrize("first", [True, False])
async def test_links_found_before_start_url_redirected_are_in_scope(
    tmp_path: Path, more: dict[str, object], first: bool
) -> None:
    starts = (ELSEWHERE + "/", HTTPS + "/") if first else (HTTPS + "/", ELSEWHERE + "/")
    with serving(moving, tmp_path) as (hosts, chosen):
        result = await crawled(hosts, chosen, *starts, state=str(tmp_path / "s.db"), **more)
    ends = [url.rpartition(".test")[2] for url in result.listed]
    assert sorted(ends) == ["/", "/", "/q?a=1", "/w", "/x", "/y", "/z"]


@pytest.mark.parametrize("more", [{"concurrency": 1}, {"max_pages": 1}, {"concurrency": 16}])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("refreshes", [True, False])
async def test_start_url_on_alias_is_known_before_links_are(
    tmp_path: Path, more: dict[str, object], first: bool, refreshes: bool
) -> None:
    """Which start URL answers first does not matter: a link to the alias is one to the site."""

    def respond(site: str, target: str) -> CannedResponse:
        if target == "/robots.txt":
            return Site.answer(404)
        if site == ELSEWHERE:
            return page(f"{HTTP}/a", f"{HTTPS}/b")
        if site == HTTP and target == "/" and refreshes:
            return page(head=f"<meta http-equiv=refresh content='0;url={HTTPS}/'>")
        if site == HTTP:
            return to(HTTPS + target)
        return page() if target in ("/", "/a", "/b") else Site.answer(404)

    starts = (ELSEWHERE + "/", HTTP + "/") if first else (HTTP + "/", ELSEWHERE + "/")
    with serving(respond, tmp_path) as (hosts, chosen):
        result = await crawled(hosts, chosen, *starts, state=str(tmp_path / "s.db"), **more)
    assert result.counts == {"listed": 4, "moved": 1}
    assert f"{HTTP}/a" not in hosts.asked


@pytest.mark.parametrize("first", [True, False])
async def test_folder_that_a_start_url_redirects_to_is_in_scope(tmp_path: Path, first: bool) -> None:
    def respond(_: str, target: str) -> CannedResponse:
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
