"""A sitemap that has not changed, as the server says, is not sent again, and its URLs stay known."""

import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from crawler.app.job import open_job
from crawler.app.seeding import LARGEST_COPY, NO_COPY, _copied, _inflated
from crawler.cli.demo.site import CannedResponse
from crawler.model.reply import Headers, Response
from crawler.settings.sections import Guard, State
from crawler.testing import MemorySite

pytestmark = pytest.mark.anyio
INDEX, ONE, TWO = "/sitemap.xml", "/one.xml", "/two.xml"


def entries(
    site: MemorySite, target: str, paths: Sequence[str], kind: str = "url", tag: str | None = ""
) -> None:
    """A sitemap with an ETag that follows its content; `tag`: another one, or none."""
    items = "".join(f"<{kind}><loc>{site.origin}{path}</loc></{kind}>" for path in paths)
    root = "urlset" if kind == "url" else "sitemapindex"
    body = f'<{root} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{items}</{root}>'.encode()
    fields = [("Content-Type", "application/xml")]
    if tag is not None:
        fields.append(("ETag", f'"{tag or zlib.crc32(body)}"'))
    site.raw(target, body=body, headers=fields)


async def crawl(site: MemorySite, folder: Path) -> tuple[list[str], dict[str, int]]:
    """The listed paths, and the status of each request for a sitemap."""
    site.log.clear()
    guard = Guard(max_shrink=1.0, max_removed=1.0)
    settings = site.settings(folder / "out", state=State(state=str(folder / "s.db")), guard=guard)
    async with open_job(settings, transport=site.transport) as job:
        await job.crawl()
        await job.publish()
        listed = [entry.url.removeprefix(site.origin) async for entry in job.entries()]
    return listed, {asked.target: asked.status for asked in site.log if asked.target.endswith(".xml")}


def built(**tags: str | None) -> MemorySite:
    site = MemorySite()
    site.robots(f"Sitemap: {site.origin}{INDEX}")
    for path in ("/", "/a", "/b", "/c"):
        site.page(path, text=f"<p>This is {path}.")
    entries(site, INDEX, [ONE, TWO], "sitemap")
    entries(site, ONE, ["/a"], tag=tags.get("one", ""))
    entries(site, TWO, ["/b"], tag=tags.get("two", ""))
    return site


def days(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """What moves the clock to a day."""
    clock = time.time

    def to_day(day: float) -> None:
        monkeypatch.setattr(time, "time", lambda: clock() + (day - 40) * 86_400)

    to_day(0)
    return to_day


async def test_only_the_sitemap_that_changed_is_sent_again(tmp_path: Path) -> None:
    site = built()
    assert await crawl(site, tmp_path) == (["/", "/a", "/b"], {INDEX: 200, ONE: 200, TWO: 200})
    for _ in range(2):
        assert await crawl(site, tmp_path) == (["/", "/a", "/b"], {INDEX: 304, ONE: 304, TWO: 304})
    entries(site, TWO, ["/c"])
    assert await crawl(site, tmp_path) == (["/", "/a", "/c"], {INDEX: 304, ONE: 304, TWO: 200})
    entries(site, INDEX, [TWO], "sitemap")
    assert await crawl(site, tmp_path) == (["/", "/c"], {INDEX: 200, TWO: 304})
    site.raw(TWO, status=404)
    assert await crawl(site, tmp_path) == (["/"], {INDEX: 304, TWO: 404})


async def test_what_is_falsely_called_unchanged_is_found_within_a_week(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And never believed again; what is true is asked for in full once a week."""
    site, to_day = built(two="same"), days(monkeypatch)
    await crawl(site, tmp_path)
    entries(site, TWO, ["/b", "/c"], tag="same")
    for day in range(1, 7):
        to_day(day)
        assert await crawl(site, tmp_path) == (["/", "/a", "/b"], {INDEX: 304, ONE: 304, TWO: 304})
    to_day(6.99)  # somewhat earlier in the night
    assert await crawl(site, tmp_path) == (["/", "/a", "/b", "/c"], {INDEX: 200, ONE: 200, TWO: 200})
    assert [asked.target for asked in site.log].count(ONE) == 2
    for day, paths in (8, ["/b"]), (9, ["/c"]):
        to_day(day)
        entries(site, TWO, paths, tag="same")
        assert await crawl(site, tmp_path) == (["/", "/a", *paths], {INDEX: 304, ONE: 304, TWO: 200})


async def test_what_cannot_be_checked_stays_as_the_server_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, to_day = built(), days(monkeypatch)
    await crawl(site, tmp_path)
    conditional = site.answers[TWO]
    site.answers[TWO] = lambda asked: (
        conditional(asked) if "if-none-match" in asked.headers else CannedResponse(404)
    )
    for day in 8, 9:
        to_day(day)
        assert (await crawl(site, tmp_path))[0] == ["/", "/a", "/b"]


async def test_sitemap_without_validators_is_read_again(tmp_path: Path) -> None:
    site = built(two=None)
    for _ in range(2):
        listed, statuses = await crawl(site, tmp_path)
        assert (listed, statuses[TWO]) == (["/", "/a", "/b"], 200)
    entries(site, ONE, ["/a", "/c"], tag=None)  # it has none any more
    for _ in range(2):
        listed, statuses = await crawl(site, tmp_path)
        assert (listed, statuses[ONE]) == (["/", "/a", "/b", "/c"], 200)


async def test_sitemap_that_could_not_be_read_in_full_is_read_again(tmp_path: Path) -> None:
    site = built()
    site.raw(TWO, body=b"<urlset><url><loc>/b</loc></url><url", headers=[("ETag", '"x"')])
    for _ in range(2):
        assert (await crawl(site, tmp_path))[1][TWO] == 200


async def test_a_copy_is_bounded_and_needs_validators() -> None:
    headers = Headers([("ETag", '"x"')])
    kept = _copied(Response(200, headers, b"<urlset>" * 90_000))
    assert b"".join(_inflated(kept.body)) == b"<urlset>" * 90_000
    assert _copied(Response(200, Headers(), b"<urlset>")) == NO_COPY
    noise = b"".join(number.to_bytes(4, "big") for number in range(0, LARGEST_COPY * 1_000, 997))
    assert len(zlib.compress(noise, 1)) > LARGEST_COPY
    assert _copied(Response(200, headers, noise)) == NO_COPY
