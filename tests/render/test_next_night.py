"""The next crawl of rendered pages: of those whose inputs are unchanged, none is rendered again."""

import json
import signal
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import format_datetime
from itertools import count
from pathlib import Path

import pytest

from crawler import open_job
from crawler.cli.demo.site import Site
from crawler.fetch.render import renderer
from crawler.fetch.render.inputs import DAYS
from crawler.fetch.render.renderer import Renderer
from crawler.model.rows import UrlRecord
from crawler.parse.url import target
from crawler.ports import Request
from crawler.settings.sections import Settings
from tests import postgres
from tests.program import Program, start
from tests.render.crawls import crawled, settings

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.usefixtures("browser")]

SHELL = b"<!doctype html><title>Shop</title><div id=app></div><script src=/menu.js></script><script src=/app.js></script>"
MENU = b"document.body.insertAdjacentHTML('beforeend', '<a href=/>home</a>');"
SCRIPT = b"""
Promise.all(["/api/names", `/api${location.pathname}`].map((of) => fetch(of).then((reply) => reply.json()))).then(
    ([names, page]) => {
        const made = page.links.map((to) => `<a href=${to}>${names[to]}</a>`).join(" ");
        document.querySelector("#app").innerHTML = `<h1>${page.title}</h1>${made}`;
    });
"""
NAMES = {"/a": "Lamps", "/b": "Chairs"}
APIS = ("/api/", "/api/a", "/api/b")


def shop() -> Site:
    """Some of its answers have validators."""
    site = Site()
    for path in ("/", "/a", "/b"):
        put(site, path, SHELL, "text/html", etags=path != "/a")
        data(site, path, sorted(NAMES) if path == "/" else ["/"], etags=path != "/b")
    put(site, "/menu.js", MENU, "text/javascript")
    put(site, "/app.js", SCRIPT, "text/javascript", etags=False)
    put(site, "/api/names", json.dumps(NAMES).encode(), "application/json", etags=False)
    return site


def put(site: Site, path: str, body: bytes, kind: str, *, etags: bool = True) -> None:
    tag = {"ETag": f'"{hash(body):x}"'} if etags else {}
    site.raw(path, body=body, headers={"Content-Type": kind, **tag})


def data(site: Site, path: str, links: list[str], title: str = "Page", *, etags: bool = True) -> None:
    page = {"title": f"{title} {path}", "links": links}
    put(site, f"/api{path}", json.dumps(page).encode(), "application/json", etags=etags)


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The pages that are rendered; the browser starts with the first one."""
    found = list[str]()
    render = Renderer._render

    async def noted(self: Renderer, request: Request, *rest: object) -> object:
        found.append(target(request.url))
        return await render(self, request, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Renderer, "_render", noted)
    return found


async def night(chosen: Settings) -> Mapping[str, UrlRecord]:
    """A crawl that is published."""
    found = await crawled(chosen)
    async with open_job(chosen) as job:
        await job.crawl()
        await job.publish()
    return found


def sitemap(folder: Path) -> str:
    return (folder / "out/sitemap.xml").read_text()


async def test_where_nothing_moved_nothing_is_rendered(rendered: list[str], tmp_path: Path) -> None:
    site = shop()
    with site.serve() as origin:
        chosen = settings(origin, tmp_path)
        first = await night(chosen)
        assert sorted(set(rendered)) == ["/", "/a", "/b"]
        before = sitemap(tmp_path)
        rendered.clear()
        site.log.clear()
        second = await night(chosen)
    assert rendered == []
    assert sitemap(tmp_path) == before
    assert {path: page.facts for path, page in second.items()} == {
        path: page.facts for path, page in first.items()
    }
    asked = {each.target: each.status for each in site.log if each.status != 404}
    assert asked.keys() == {"/", "/a", "/b", "/menu.js", "/app.js", "/api/names", *APIS}
    assert {path for path, status in asked.items() if status == 200} == {
        "/a",
        "/api/b",
        "/app.js",
        "/api/names",
    }
    assert [site.requests(path) for path in ("/menu.js", "/app.js", "/api/names")] == [1, 1, 1]


async def test_nights_with_a_budget_lose_no_rendered_page(rendered: list[str], tmp_path: Path) -> None:
    site = shop()
    with site.serve() as origin:
        chosen = settings(origin, tmp_path)
        await night(chosen)
        before = sitemap(tmp_path)
        rendered.clear()
        few = replace(chosen, scope=replace(chosen.scope, budget=3))
        await night(few)
        assert rendered == []
        assert sitemap(tmp_path) == before
        put(site, "/c", SHELL, "text/html")
        put(site, "/api/names", json.dumps(NAMES | {"/c": "Shelves"}).encode(), "application/json")
        data(site, "/", ["/a", "/b", "/c"])
        data(site, "/c", ["/"])
        for _ in range(2):
            await night(few)
        assert sorted(set(rendered)) == ["/", "/a", "/b", "/c"]
    assert sitemap(tmp_path).count("<loc>") == before.count("<loc>") + 1


async def test_a_page_is_rendered_again_if_an_answer_changed(rendered: list[str], tmp_path: Path) -> None:
    site = shop()
    with site.serve() as origin:
        chosen = settings(origin, tmp_path)
        await night(chosen)
        rendered.clear()
        data(site, "/a", ["/", "/new"])
        put(site, "/new", SHELL, "text/html")
        data(site, "/new", ["/"])
        put(site, "/b", SHELL.replace(b"Shop", b"Sale"), "text/html")
        found = await night(chosen)
        assert sorted(rendered) == ["/a", "/b", "/new"]
        assert f"{origin}/new" in sitemap(tmp_path)
        assert (facts := found["/b"].facts)
        assert facts.title == "Sale"
        rendered.clear()
        put(site, "/menu.js", MENU.replace(b"home", b"start"), "text/javascript")
        await night(chosen)
    assert sorted(rendered) == ["/", "/a", "/b", "/new"], "all that used the script"


async def test_an_answer_that_says_when_it_was_made_is_the_same(rendered: list[str], tmp_path: Path) -> None:
    """And tells its request by a number of its own: a page is rendered again if anything else changes."""
    site, asked = shop(), count(1)

    def stamped(names: Mapping[str, str]) -> Callable[[object], object]:
        def answered(_: object) -> object:
            now = datetime.now(UTC)
            said = {**names, "requestId": f"{next(asked):012}", "served": now.isoformat()}
            fields = {"Content-Type": "application/json", "Date": format_datetime(now, usegmt=True)}
            return Site.answer(200, json.dumps(said).encode(), fields)

        return answered

    site.respond("/api/names", stamped(NAMES))
    with site.serve() as origin:
        chosen = settings(origin, tmp_path)
        await night(chosen)
        assert sorted(set(rendered)) == ["/", "/a", "/b"]
        rendered.clear()
        await night(chosen)
        assert rendered == []
        site.respond("/api/names", stamped(NAMES | {"/a": "Lanterns"}))
        await night(chosen)
    assert sorted(rendered) == ["/", "/a", "/b"]


async def test_pages_are_rendered_again_by_another_browser_or_day(
    rendered: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    everything, site = ["/", "/a"], shop()
    data(site, "/", ["/a"])
    with site.serve() as origin:
        chosen = settings(origin, tmp_path)
        await night(chosen)
        rendered.clear()
        await night(settings(origin, tmp_path, mode="always"))
        assert sorted(rendered) == everything
        rendered.clear()
        today = renderer._today()
        with monkeypatch.context() as later:
            later.setattr(renderer, "_today", lambda: today + DAYS)
            await night(settings(origin, tmp_path, mode="always"))
        assert sorted(rendered) == everything
        rendered.clear()
        monkeypatch.setattr(renderer, "DRIVEN", "otherwise")
        await night(settings(origin, tmp_path, mode="always"))
        assert sorted(rendered) == everything


STARTED = "a browser was started"
DEADLY = "/api/b"  # kills the crawler that asks for it


def command(origin: str, folder: Path, state: str, *more: str) -> list[str]:
    return [
        "crawl", f"{origin}/", "--render", "auto", "--rate", "0",
        "--seed-sitemaps", "off", "--state", state, "-o", str(folder / "out"), "--no-gzip", "--log-format", "json", *more,
    ]  # fmt: skip


def ended(process: Program) -> str:
    """The log of a process that succeeds."""
    assert process.wait() == 0, process.stderr
    return process.stderr


def test_a_killed_second_night_goes_on_where_it_was(tmp_path: Path) -> None:
    site = shop()
    with site.serve() as origin:
        words = command(origin, tmp_path, str(tmp_path / "state.db"))
        assert STARTED in ended(start(words))
        before, answer = sitemap(tmp_path), site.answers[DEADLY]
        running = start(words)
        site.respond(DEADLY, lambda _: running.kill())
        assert running.wait() == -signal.SIGKILL
        site.respond(DEADLY, answer)
        site.log.clear()
        assert STARTED not in ended(start(words))
    assert site.requests(DEADLY) == 1
    assert sitemap(tmp_path) == before


@pytest.mark.system
def test_two_members_need_no_browser_in_second_night(tmp_path: Path) -> None:
    site, state = shop(), postgres.new_state()
    with site.serve() as origin:
        assert STARTED in ended(start(command(origin, tmp_path, state)))
        before = sitemap(tmp_path)
        both = [start(command(origin, tmp_path, state, "--run", "second")) for _ in range(2)]
        logs = [ended(one) for one in both]
    assert not any(STARTED in log for log in logs)
    assert sitemap(tmp_path) == before
