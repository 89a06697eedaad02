"""Whole crawls that begin with more than links: sitemaps, lists of URLs, both; what is asked, listed and said."""

import signal
from itertools import pairwise
from pathlib import Path

import pytest

from crawler.crawl import Ending
from crawler.demo.site import Site
from tests.test_crawl import crawl, settings
from tests.test_nothing_lost import DYING, process, sitemaps, words

pytestmark = pytest.mark.anyio


def index(site: Site, target: str, locs: list[str]) -> None:
    items = "".join(f"<sitemap><loc>{{origin}}{loc}</loc></sitemap>" for loc in locs)
    site.raw(
        target, body=f"<sitemapindex>{items}</sitemapindex>".encode(), headers=[("Content-Type", "text/xml")]
    )


def site_of_sitemaps(count: int = 8, pages: int = 5) -> Site:
    """Pages that sitemaps name, some of them twice; half of them are linked in a chain from the start page."""
    site = Site()
    names = [f"/{number}-{page}" for number in range(count) for page in range(pages)]
    site.page("/", links=names[:1])
    for place, name in enumerate(names):
        site.page(name, links=names[place + 1 : place + 2] if place < len(names) // 2 else [])
    site.robots("Sitemap: {origin}/index.xml\nSitemap: {origin}/gone.xml")
    index(site, "/index.xml", [f"/map-{number}.xml" for number in range(count)])
    for number in range(count):
        site.sitemap(f"/map-{number}.xml", [*(f"/{number}-{page}" for page in range(pages)), "/0-0"])
    return site


def asked(site: Site, word: str) -> list[int]:
    """When it was asked for what has `word` in its path, counted in requests."""
    return [place for place, request in enumerate(site.log) if word in request.target]


@pytest.mark.parametrize("rate", [0.0, 100.0])
async def test_pages_are_visited_while_sitemaps_are_read(tmp_path: Path, rate: float) -> None:
    site = site_of_sitemaps(30, 2)
    with site.serve() as origin:
        result = await crawl(settings(origin, tmp_path, rate=rate, concurrency=1))
    assert len(result.listed) == 61
    maps, pages = asked(site, "/map-"), [*asked(site, "/0-"), *asked(site, "/1-")]
    assert len(maps) == 30
    assert min(pages) < maps[5]


async def test_where_slots_are_rare_pages_and_sitemaps_take_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawler.frontier.ledger.HORIZON", 0.001)  # as far ahead as leases book slots
    site = site_of_sitemaps(6, 1)
    site.page("/", links=[f"/p{number}" for number in range(12)])
    for number in range(12):
        site.page(f"/p{number}")
    with site.serve() as origin:
        await crawl(settings(origin, tmp_path, rate=50.0))
    maps = asked(site, "/map-")
    assert len(maps) == 6
    assert all(later - earlier >= 2 for earlier, later in pairwise(maps)), [r.target for r in site.log]


async def test_a_run_in_portions_reads_each_sitemap_once_and_lists_the_same(tmp_path: Path) -> None:
    site = site_of_sitemaps()
    with site.serve() as origin:
        calm = await crawl(settings(origin, tmp_path))
        del site.log[:]
        chosen = settings(origin, tmp_path, state=str(tmp_path / "s.db"), max_pages=3)
        runs, result = 0, None
        while result is None or result.ending is Ending.LIMIT:
            before = len(site.log)
            result = await crawl(chosen)
            assert len(site.log) > before, "each run makes progress"
            runs += 1
    assert runs > 5
    assert result.listed == calm.listed
    assert [site.requests(f"/map-{number}.xml") for number in range(8)] == [1] * 8
    assert site.requests("/gone.xml") == site.requests("/index.xml") == 1


@pytest.mark.parametrize("depth", [0, 1, 2])
async def test_with_a_depth_limit_it_makes_no_difference_when_sitemaps_are_read(
    tmp_path: Path, depth: int
) -> None:
    site = Site()
    site.page("/", links=["/a"])
    for page, link in ("ab", "bc", "cd", "de"):
        site.page(f"/{page}", links=[f"/{link}"])
    site.page("/e")
    site.robots("Sitemap: {origin}/map.xml")
    site.sitemap("/map.xml", ["/b"])
    found = []
    for concurrency in (1, 4):
        with site.serve() as origin:
            found.append(
                (await crawl(settings(origin, tmp_path, concurrency=concurrency, max_depth=depth))).listed
            )
    assert (
        found
        == [["/", *["/b", "/a", "/b", "/c", "/a", "/b", "/c", "/d"][[0, 1, 4][depth] : [1, 4, 8][depth]]]] * 2
    )


def test_death_at_every_moment_of_a_sitemap_loses_nothing(tmp_path: Path) -> None:
    site = site_of_sitemaps(4, 4)
    with site.serve() as origin:
        log = tmp_path / "log"
        assert process(DYING, str(log), "", "0", *words(origin, tmp_path / "calm")).returncode == 0
        moments = log.read_text().splitlines()
        for moment in (
            "commit of name_seeds",
            "commit of add",
            "commit of settle_seed",
            "commit of next_seed",
        ):
            for side in ("before", "after"):
                folder = tmp_path / f"{side}-{moment.rpartition(' ')[2]}"
                name = f"{side} {moment}"
                turn = (moments.count(name) + 1) // 2
                died = process(DYING, str(log), name, str(turn), *words(origin, folder))
                assert died.returncode == -signal.SIGKILL, (name, died.stderr)
                del site.log[:]
                again = process(DYING, str(log), "", "0", *words(origin, folder))
                assert again.returncode == 0, (name, again.stderr)
                assert sitemaps(folder) == sitemaps(tmp_path / "calm"), name
                assert max(site.requests(f"/map-{number}.xml") for number in range(4)) <= 1
