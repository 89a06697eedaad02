"""Whole crawls of sites that answer endlessly many URLs with few contents: they end, and the end is always the same."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from crawler.app import seeding
from crawler.cli.demo.site import CannedResponse, Site
from crawler.engine.crawl import Ending
from crawler.rules import traps
from crawler.rules.traps import REQUESTS_PER_CONTENT
from tests import program
from tests.engine.test_rounds import Page, asked, command, crawl, html, moved, served, start
from tests.frontier.test_nothing_lost import sitemaps
from tests.postgres import new_state
from tests.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

GRANTED = 300  # requests of a crawl, beside those for each content
PATCH = f"from crawler.rules import traps; traps.REQUESTS = {GRANTED}"
STORIES = [f"/story/{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(60)]


def story(path: str, _: dict[str, str]) -> CannedResponse:
    return html(f"the story of {path} is long", *STORIES[:3])


def same(path: str, _: dict[str, str]) -> CannedResponse:
    """Whatever is asked in the shop: the same page, whose links are relative."""
    links = ("orders/", "clients/", "orders/open")
    return html("a front controller", *links) if path.startswith("/shop/") else Site.answer(404, b"")


ENDLESS: dict[str, Page] = {
    "/": start("/shop/", *STORIES),
    "/story/*": story,
    "/shop/": lambda *_: html("the shop", "orders/", "clients/"),
    "*": same,
}


def answering(page: CannedResponse) -> Page:
    return lambda *_: page


def most(contents: int) -> int:
    return GRANTED + REQUESTS_PER_CONTENT * contents + 100


@pytest.fixture(autouse=True)
def _granted(monkeypatch: pytest.MonkeyPatch) -> None:
    """An endless site uses up what it is granted."""
    monkeypatch.setattr(traps, "REQUESTS", GRANTED)


async def test_endless_site_ends_the_same_at_any_concurrency(tmp_path: Path) -> None:
    seen = set()
    for delay, tasks in [(0.0, 1), (0.0, 16), (0.01, 64)]:
        with served(ENDLESS, delay=delay) as (site, origin):
            result = await crawl(origin, tmp_path, concurrency=tasks)
            assert len(asked(site)) <= most(len(STORIES) + 3)
            seen.add(tuple(result.listed))
    assert len(seen) == 1
    assert set(STORIES) <= set(result.listed)
    # The start, the shop, and one of the pages below it, which are all the same for any address.
    assert set(result.listed) - set(STORIES) == {"/", "/shop/", "/shop/orders/"}
    assert "repeats" in {trap.kind for trap in result.traps}


async def test_posted_redirects_stay_within_the_budget(tmp_path: Path) -> None:
    """Each of them leads on nine times, and to nothing."""
    posted = [f"/go/{number}-0" for number in range(300)]

    def hop(path: str, _: dict[str, str]) -> CannedResponse:
        number, at = path.removeprefix("/go/").split("-")
        location = f"/go/{number}-{int(at) + 1}"
        return Site.answer(302, b"", [("Location", location)]) if int(at) < 9 else Site.answer(404, b"")

    pages: dict[str, Page] = {"/": start(*STORIES[:9], *posted), "/story/*": story, "/go/*": hop}
    counts = set()
    for tasks in (1, 32):
        with served(pages) as (site, origin):
            result = await crawl(origin, tmp_path, concurrency=tasks)
        assert len(asked(site)) <= most(10)
        counts.add(len(result.listed))
    assert counts == {10}


async def test_resumed_crawl_of_endless_site_lists_the_same(tmp_path: Path) -> None:
    with served(ENDLESS) as (_, origin):
        whole = await crawl(origin, tmp_path, concurrency=1)
        chosen: dict[str, object] = {"concurrency": 16, "max_pages": 83, "state": str(tmp_path / "s.db")}
        runs = 1
        while (part := await crawl(origin, tmp_path, **chosen)).ending is not Ending.COMPLETE:
            runs += 1
    assert runs > 3
    assert part.listed == whole.listed


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, bytes]]]:
    """The origin of a served site, and the sitemaps of an uninterrupted crawl."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    with served(ENDLESS) as (_, origin):
        assert program.run(command(origin, folder), patch=PATCH).returncode == 0
        yield origin, sitemaps(folder)


def size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def test_killed_crawl_of_endless_site_writes_the_same(
    tmp_path: Path, uninterrupted: tuple[str, dict[str, bytes]]
) -> None:
    origin, expected = uninterrupted
    words = command(origin, tmp_path, "--concurrency", "16", "--processes", "2")
    state = tmp_path / "s.db"
    for _ in range(2):
        before = size(state)
        running = program.start(words, patch=PATCH)
        until(lambda: running.poll() is not None or size(state) > before + 20_000)  # noqa: B023
        running.kill()
        running.wait()
    assert program.run(words, patch=PATCH).returncode == 0
    assert sitemaps(tmp_path) == expected


@pytest.mark.parametrize("extra", [0, 1, 2, 3, 12])
async def test_no_page_is_lost_where_each_has_other_urls(tmp_path: Path, extra: int) -> None:
    """Views, copies and redirects beside each page: just below, above and far beyond the share of a poor site."""
    pages: dict[str, Page] = {"/": start(*STORIES)}
    for number, path in enumerate(STORIES):
        views = [f"/view{view}{path}" for view in range(extra)]
        later = f"/later/{path[7:]}"
        pages[path] = answering(html(f"the story of {path[7:]}", *views, later))
        pages[later] = answering(html(f"{path[7:]} went on"))
        for view in views:
            copied = html(f"the story of {path[7:]}", "/")
            pages[view] = moved(path) if number % 2 else answering(copied)
    with served(pages) as (_, origin):
        result = await crawl(origin, tmp_path)
    assert set(STORIES) | {f"/later/{path[7:]}" for path in STORIES} <= set(result.listed)


@pytest.mark.parametrize("steps", [150, 300])
async def test_pages_behind_repeats_are_found(tmp_path: Path, steps: int) -> None:
    """Pages "under construction" all say the same, and each links to a page of its own."""
    empty = [f"/empty/{chr(97 + n // 26 % 26)}{chr(97 + n % 26)}{chr(97 + n // 676)}" for n in range(steps)]
    pages: dict[str, Page] = {
        "/": start(*empty),
        "/empty/*": lambda path, _: (
            html("under construction", f"/full/{path[7:]}") if path in empty else Site.answer(404, b"")
        ),
        "/full/*": lambda path, _: html(f"all about {path[6:]}"),
    }
    with served(pages) as (_, origin):
        result = await crawl(origin, tmp_path)
    listed = set(result.listed)
    assert {f"/full/{path[7:]}" for path in empty} <= listed
    assert set(empty) <= listed, "the start page links to them: they are a finding, and stay"


async def test_what_a_page_of_its_own_links_to_later_is_fetched(tmp_path: Path) -> None:
    """First only repeats link to it, and their links were given up."""
    steps = "abcdefghijklmnopqrstuvwxyz"
    chain = {f"/way/{here}": answering(html(f"the way {here}", f"/way/{to}")) for here, to in pairwise(steps)}
    pages: dict[str, Page] = {
        "/": start("/shop/", "/way/a"),
        **chain,
        "/way/z": lambda *_: html("the last of the way", "/shop/orders/treasure"),
        "/shop/orders/treasure": lambda *_: html("a page that is worth it"),
        "*": lambda *_: html(
            "a front controller", *(f"{name}/" for name in "abcdefghijklmnopqrst"), "treasure"
        ),
    }
    with served(pages) as (_, origin):
        result = await crawl(origin, tmp_path)
    assert "/shop/orders/treasure" in result.listed


@pytest.mark.parametrize("said", ["{}", "Older ones (page {})", "older"])
async def test_empty_pages_beyond_the_last_number_are_not_listed(tmp_path: Path, said: str) -> None:
    """Each one links to the next number. To the first one a true page links."""

    def numbered(path: str, _: dict[str, str]) -> CannedResponse:
        at = int(path.removeprefix("/page/"))
        text = f"{STORIES[at]} is here" if at < 12 else "Nothing here yet."
        return Site.answer(200, f'{text} <a href="/page/{at + 1}">{said.format(at + 1)}</a>'.encode())

    with served({"/": start("/page/1"), "/page/*": numbered}) as (site, origin):
        result = await crawl(origin, tmp_path)
    assert result.listed == ["/", *sorted(f"/page/{at}" for at in range(1, 13))]
    assert len(asked(site)) <= most(12)


@pytest.mark.parametrize(
    ("form", "is_shared"), [("/old/{}", False), ("/old?id={}", False), ("/old/{}", True)]
)
async def test_a_sitemap_of_junk_stays_within_the_budget(
    tmp_path: Path, form: str, is_shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pages, which are a chain, are found all the same."""
    monkeypatch.setattr(seeding, "URLS_AT_ONCE", 500)
    following = dict(pairwise(STORIES))

    def step(path: str, _: dict[str, str]) -> CannedResponse:
        return html(f"the story of {path} is long", following.get(path, "/"))

    pages: dict[str, Page] = {"/": start(STORIES[0]), "/story/*": step}
    junk = tmp_path / "map.txt"
    state = new_state() if is_shared else str(tmp_path / "state.db")
    with served(pages) as (site, origin):
        junk.write_text("".join(f"{origin}{form.format(n)}\n" for n in range(3_000)))
        result = await crawl(origin, tmp_path, concurrency=8, seed_sitemaps=str(junk), state=state)
        assert len(asked(site)) <= most(len(STORIES) + 1)
        assert set(result.listed) == {"/", *STORIES}


async def test_what_a_file_of_input_names_is_requested(tmp_path: Path) -> None:
    """It is the user's choice, whatever most of it turns out to be."""
    named = [f"/old/{n}" for n in range(1_500)] + STORIES
    pages: dict[str, Page] = {"/": start(), "/story/*": story}
    with served(pages) as (_, origin):
        file = tmp_path / "urls.txt"
        file.write_text("".join(f"{origin}{path}\n" for path in named))
        result = await crawl(origin, tmp_path, concurrency=8, input=(str(file),))
    assert result.outcomes == {"listed": len(STORIES) + 1, "failed:not-found": 1_500}
