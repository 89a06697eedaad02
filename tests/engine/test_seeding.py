"""Whole crawls with seeds other than start URLs: sitemaps and lists of URLs."""

import gzip
import signal
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest

from crawler.app.job import open_job
from crawler.app.report import each
from crawler.cli.demo.site import Site
from crawler.engine.crawl import Ending
from crawler.engine.seed_reader import SeedReader
from crawler.errors import ConfigError
from crawler.model.reasons import SeedKind
from crawler.model.seed import Seed
from crawler.parse.url import Url
from crawler.ports import reads
from tests import program
from tests.engine.test_crawl import crawl, settings
from tests.frontier.test_nothing_lost import LOGGING, sitemaps, words
from tests.waiting import eventually, until

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


def index(site: Site, target: str, locs: list[str]) -> None:
    items = "".join(f"<sitemap><loc>{{origin}}{loc}</loc></sitemap>" for loc in locs)
    site.raw(
        target, body=f"<sitemapindex>{items}</sitemapindex>".encode(), headers=[("Content-Type", "text/xml")]
    )


def site_of_sitemaps(count: int = 8, pages: int = 5) -> Site:
    """Pages named in sitemaps, some of them twice; half of them are also linked in a chain from the start page."""
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
    """The positions in the request log of targets that contain `word`."""
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


async def test_pages_and_sitemaps_alternate_when_slots_are_scarce(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawler.frontier.pace.HORIZON", 0.001)  # how far ahead leases book slots, in seconds
    site = site_of_sitemaps(6, 1)
    site.page("/", links=[f"/p{number}" for number in range(12)])
    for number in range(12):
        site.page(f"/p{number}")
    with site.serve() as origin:
        await crawl(settings(origin, tmp_path, rate=50.0))
    maps = asked(site, "/map-")
    assert len(maps) == 6
    assert all(later - earlier >= 2 for earlier, later in pairwise(maps)), [r.target for r in site.log]


async def test_resumed_run_reads_each_sitemap_once_and_lists_the_same(tmp_path: Path) -> None:
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
async def test_max_depth_does_not_depend_on_when_sitemaps_are_read(tmp_path: Path, depth: int) -> None:
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


def test_kill_at_any_commit_while_reading_sitemaps_loses_nothing(tmp_path: Path) -> None:
    site, log = site_of_sitemaps(4, 4), tmp_path / "log"
    with site.serve() as origin:
        logging = LOGGING.format(log=str(log), folder=str(tmp_path / "calm"))
        calm = program.run(words(origin, tmp_path / "calm"), patch=logging)
        assert (calm.returncode, calm.stderr) == (0, "")
        moments = [line.partition(" ")[2] for line in log.read_text().splitlines()]
        for moment in (
            "commit of add_seeds",
            "commit of add",
            "commit of settle_seed",
            "commit of next_seed",
        ):
            for side in ("before", "after"):
                folder = tmp_path / f"{side}-{moment.rpartition(' ')[2]}"
                name = f"{side} {moment}"
                turn = (moments.count(name) + 1) // 2
                killed = program.run(words(origin, folder), dies=name, turn=turn)
                assert (killed.returncode, killed.stderr) == (-signal.SIGKILL, ""), name
                del site.log[:]
                again = program.run(words(origin, folder))
                assert (again.returncode, again.stderr) == (0, ""), name
                assert sitemaps(folder) == sitemaps(tmp_path / "calm"), name
                assert max(site.requests(f"/map-{number}.xml") for number in range(4)) <= 1


def paths(site: Site) -> list[str]:
    """The requested targets without robots.txt, sorted."""
    return sorted({request.target for request in site.log} - {"/robots.txt"})


async def test_list_only_fetches_named_urls_and_their_redirect_targets(tmp_path: Path) -> None:
    site = Site()
    site.page("/", links=["/a", "/linked"])
    site.page("/a", links=["/b", "/linked"])
    site.redirect("/old", "/new")
    for name in ("/b", "/linked", "/new"):
        site.page(name)
    site.robots("Sitemap: {origin}/map.xml")
    site.sitemap("/map.xml", ["/a", "/old"])
    with site.serve() as origin:
        (tmp_path / "list.txt").write_text(f"{origin}/b\n")
        result = await crawl(settings(origin, tmp_path, list_only=True, input=(str(tmp_path / "list.txt"),)))
    assert result.listed == ["/", "/a", "/b", "/new"]
    assert result.counts["unlisted:not-named"] == 1
    assert paths(site) == ["/", "/a", "/b", "/map.xml", "/new", "/old"]


async def test_input_list_without_start_url_crawls_each_host_it_names(tmp_path: Path) -> None:
    sites = Site(), Site()
    for site in sites:
        site.page("/b", links=["/c"])
        site.page("/c")
    with sites[0].serve() as one, sites[1].serve() as two:
        (tmp_path / "list.txt").write_text(f"# a list\n\n{one}/gone\n{one}/b\n{two}/b\n")
        chosen = settings(one, tmp_path, start=(), input=(str(tmp_path / "list.txt"),))
        async with open_job(chosen) as job:
            assert job.starts == (Url(f"{one}/gone"), Url(f"{two}/b"))
            assert await job.crawl() is Ending.COMPLETE
            listed = [entry.url async for entry in each(job.frontier.stream(reads.ListedEntries()))]
            record = await job.frontier.read(reads.RecordOf(Url(f"{one}/b")))
    assert sorted(listed) == sorted([f"{one}/b", f"{one}/c", f"{two}/b", f"{two}/c"])
    assert record
    assert record.seed == Seed(SeedKind.INPUT, str(tmp_path / "list.txt"))


@pytest.mark.parametrize(
    ("content", "chosen", "sentence"),
    [
        ("# nothing\nmailto:x\n", {}, "no line in"),
        ("http://a.example/x/\n", {"scope": "path"}, "scope path needs a start URL"),
        ("".join(f"http://{n}.example/\n" for n in range(1_001)), {}, "more than 1,000 hosts"),
    ],
)
async def test_input_list_without_usable_url_is_a_config_error(
    tmp_path: Path, content: str, chosen: dict[str, object], sentence: str
) -> None:
    (tmp_path / "list.txt").write_text(content)
    with pytest.raises(ConfigError, match=sentence):
        async with open_job(settings("", tmp_path, start=(), input=(str(tmp_path / "list.txt"),), **chosen)):
            pass


async def test_seed_sitemap_may_be_a_local_file(tmp_path: Path) -> None:
    site = Site()
    for name in ("/", "/a", "/b"):
        site.page(name)
    with site.serve() as origin:
        (tmp_path / "map.txt.gz").write_bytes(
            gzip.compress(f"{origin}/a\n/b\nhttps://other.example/\n".encode())
        )
        result = await crawl(settings(origin, tmp_path, seed_sitemaps=str(tmp_path / "map.txt.gz")))
        with pytest.raises(ConfigError, match="there is no file"):
            await crawl(settings(origin, tmp_path, seed_sitemaps=str(tmp_path / "map.txt")))
    assert result.listed == ["/", "/a", "/b"]


async def test_sitemap_outside_start_folder_is_read_and_filtered(
    tmp_path: Path,
) -> None:
    site = Site()
    for name in ("/docs/", "/docs/a", "/blog/b"):
        site.page(name)
    site.robots("Sitemap: {origin}/sitemap.xml")
    site.sitemap("/sitemap.xml", ["/docs/a", "/blog/b"])
    with site.serve() as origin:
        result = await crawl(settings(origin, tmp_path, start=(f"{origin}/docs/",), scope="path"))
    assert result.listed == ["/", "/a"], "below the start folder"
    assert result.counts["unlisted:excluded"] == 1
    assert site.requests("/blog/b") == 0


@pytest.mark.parametrize("start", [True, False])
def test_input_from_pipe_is_read_to_end_or_interrupted(tmp_path: Path, start: bool) -> None:
    site = Site()
    for name in ("/", "/a"):
        site.page(name)
    with site.serve() as origin:
        command = [sys.executable, "-m", "crawler", *words(origin, tmp_path), "-i", "-"]
        if not start:
            command.remove(origin + "/")
        whole = subprocess.run(
            command, input=f"{origin}/a\n", text=True, check=False, cwd=tmp_path, capture_output=True
        )
        assert whole.returncode == 0, whole.stderr
        assert f"{origin}/a" in gzip.decompress((tmp_path / "out/sitemap.xml.gz").read_bytes()).decode()
        asked = len(site.log)
        with subprocess.Popen(
            [*command, "--fresh"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
        ) as waiting:
            if start:
                until(lambda: len(site.log) >= asked + 2)
            else:  # the pipe takes more than it holds once it is read
                assert waiting.stdin
                waiting.stdin.write(b"\n" * 200_000)
            waiting.terminate()
            assert waiting.wait(timeout=300) == 143


async def test_a_stop_waits_once_for_pages_and_sitemaps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page and a sitemap that hang are given up together: TERM takes effect within ten seconds."""
    monkeypatch.setattr("crawler.engine.crawl.GRACE", 0.3)
    left, gone = list[float](), threading.Event()
    end = SeedReader.end

    async def ends(reader: SeedReader, grace: float) -> None:
        left.append(grace)
        await end(reader, grace)

    monkeypatch.setattr(SeedReader, "end", ends)
    site = Site()
    site.page("/", links=["/slow"])
    site.robots("Sitemap: {origin}/map.xml")
    hanging = list[object]()

    def hang(request: object) -> Any:
        hanging.append(request)
        gone.wait(600)
        return site.answer(200, b"", ())

    site.answers |= {"/slow": hang, "/map.xml": hang}
    with site.serve() as origin:
        async with open_job(settings(origin, tmp_path)) as job, anyio.create_task_group() as tasks:
            tasks.start_soon(job.crawl)
            await eventually(lambda: len(hanging) == 2)
            job.stop("test")
        gone.set()
    assert [grace <= 0 for grace in left] == [True]


FEED = b"<rss><channel><link>/</link><item><link>/post-1</link></item><item><link>/post-2</link></item></channel></rss>"


async def test_usual_sitemaps_are_read_where_robots_names_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    site = Site()
    site.page("/")
    site.page("/only-in-sitemap")
    site.sitemap("/wp-sitemap.xml", ["/only-in-sitemap"])
    with site.serve() as origin:
        result = await crawl(settings(origin, tmp_path))
        again = await crawl(settings(origin, tmp_path))
    assert [url.removeprefix(origin) for url in result.listed] == ["/", "/only-in-sitemap"]
    assert again.listed == result.listed
    for name in ("/sitemap.xml", "/sitemap_index.xml", "/wp-sitemap.xml"):
        assert len(asked(site, name)) == 2, name
    assert not [record for record in caplog.records if record.message == "sitemap skipped"]


@pytest.mark.parametrize("answer", ["names one", "disallows", "off", "answers anything"])
async def test_usual_sitemaps_are_asked_only_without_better_knowledge(
    tmp_path: Path, answer: str, caplog: pytest.LogCaptureFixture
) -> None:
    site = Site()
    site.page("/")
    if answer == "names one":
        site.robots("Sitemap: {origin}/map.xml")
        site.sitemap("/map.xml", ["/"])
    elif answer == "disallows":
        site.robots("User-agent: *\nDisallow: /*.xml")
    elif answer == "answers anything":
        for name in ("/sitemap.xml", "/sitemap_index.xml", "/wp-sitemap.xml"):
            site.raw(
                name,
                body=b"<!doctype html><title>Home</title><p>Hello.",
                headers=[("Content-Type", "text/html")],
            )
    with site.serve() as origin:
        chosen = settings(origin, tmp_path, seed_sitemaps="off" if answer == "off" else "auto")
        result = await crawl(chosen)
    assert len(result.listed) == 1
    assert len(asked(site, "sitemap")) == (3 if answer == "answers anything" else 0)
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


@pytest.mark.parametrize("kind", ["application/rss+xml", "text/xml; charset=utf-8", "text/plain"])
async def test_feed_that_a_page_links_to_is_read(tmp_path: Path, kind: str) -> None:
    site = Site()
    site.page("/", links=["/feed"])
    site.raw("/feed", body=FEED, headers=[("Content-Type", kind)])
    site.page("/post-1")
    site.page("/post-2")
    with site.serve() as origin:
        result = await crawl(settings(origin, tmp_path))
    found = ["/", "/post-1", "/post-2"] if "xml" in kind else ["/"]
    assert [url.removeprefix(origin) for url in result.listed] == found
