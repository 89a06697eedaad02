"""`--format html`: pages for people beside the sitemap: bounded, escaped, the same bytes, never over others'."""

import json
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from crawler.cli.demo.site import Site
from crawler.errors import ConfigError, OutputError
from crawler.model.facts import Entry
from crawler.parse.url import Url
from crawler.settings.sections import Guard, Output, Settings
from crawler.sitemap.publish.guard import CrawlResult
from crawler.sitemap.publish.publish import CrawlToPublish, check_folder, publish
from crawler.sitemap.write.html_pages import FOLDERS, LINKS, HtmlPages
from crawler.sitemap.write.shards import OldFiles
from crawler.sitemap.write.writer import HTML_PAGE
from tests.cli.test_cli import QUICK
from tests.commands import Run

pytestmark = pytest.mark.anyio
SITE = "https://example.com"


def entry(path: str, title: str | None = None, day: int = 0) -> Entry:
    at = datetime(2026, 11, day, tzinfo=UTC) if day else None
    return Entry(Url(SITE + path), at, title=title)


async def put(folder: Path, entries: Sequence[Entry], **chosen: Any) -> list[str]:
    """The names of the files, the entry point last."""

    async def found() -> AsyncIterator[Sequence[Entry]]:
        yield sorted(entries, key=lambda one: one.url)

    output = Output(**{"output": str(folder), "gzip": False, "format": "html", **chosen})
    settings = Settings(output=output, guard=Guard(max_shrink=1.0, max_removed=1.0))
    done = await publish(found(), settings, CrawlToPublish(SITE, CrawlResult(True, {}, {}), "1"))
    return [file.name for file in done.files]


class Read(HTMLParser):
    """The elements, links and text of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name == "href"]

    def handle_data(self, data: str) -> None:
        self.text += data


MANY = [entry(f"/folder-{number % 7}/{number:05}", day=1 + number % 20) for number in range(LINKS + 1)]


async def test_a_small_site_is_one_page_by_folder(tmp_path: Path) -> None:
    entries = [entry("/", "Home", 3), entry("/blog/a", "About <b>", 21), entry("/blog/stra%C3%9Fe")]
    assert await put(tmp_path, entries) == [HTML_PAGE, "sitemap.xml"]
    page = Read(tmp_path / HTML_PAGE)
    assert page.links == [one.url for one in entries]
    for words in (
        "Sitemap of example.com",
        "3 pages",
        "2026-11-21",
        "/blog/ 2 pages",
        "About <b>",
        "/blog/straße",
    ):
        assert words in page.text
    assert {"script", "b", "img"}.isdisjoint(page.tags)


async def test_a_large_site_is_in_parts(tmp_path: Path) -> None:
    names = await put(tmp_path, MANY)
    assert names == ["sitemap-00001.html", "sitemap-00002.html", HTML_PAGE, "sitemap.xml"]
    parts = [Read(tmp_path / name) for name in names[:2]]
    links = [link for part in parts for link in part.links if link != HTML_PAGE]
    assert sorted(links) == sorted(one.url for one in MANY)
    assert all(len(part.links) <= LINKS + 1 for part in parts)
    overview = Read(tmp_path / HTML_PAGE)
    assert set(overview.links) == {*names[:2]}
    assert "/folder-0/143" in overview.text, "how many pages a folder has"


async def test_the_limit_of_one_page(tmp_path: Path) -> None:
    assert await put(tmp_path, MANY[:LINKS]) == [HTML_PAGE, "sitemap.xml"]


async def test_one_more_page_changes_few_files(tmp_path: Path) -> None:
    for _ in range(2):
        await put(tmp_path, MANY[::2] + MANY[1::2])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    await put(tmp_path, MANY)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    await put(tmp_path, [*MANY, entry("/folder-6/99999")])
    assert (tmp_path / "sitemap-00001.html").read_bytes() == before["sitemap-00001.html"]


async def test_pages_go_with_the_format(tmp_path: Path) -> None:
    await put(tmp_path, MANY)
    await put(tmp_path, MANY[:9])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["manifest.json", HTML_PAGE, "sitemap.xml"]
    assert await put(tmp_path, MANY[:9], format="xml") == ["sitemap.xml"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["manifest.json", "sitemap.xml"]


async def test_the_manifest_counts_each_url_once(tmp_path: Path) -> None:
    await put(tmp_path, MANY)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["urls"] == len(MANY)
    assert [file["urls"] for file in manifest["files"]] == [0, 0, 0, len(MANY)]


HOSTILE = "</a></li><script>alert(1)</script><img src=x onerror=alert(1)>\"' \u202e\x1b[31m"


async def test_text_of_strangers_stays_text(tmp_path: Path) -> None:
    urls = [
        entry("/\"onmouseover='alert(1)'>", HOSTILE),
        entry("/a?x=<script>", HOSTILE * 40),
        entry("/&amp;"),
    ]
    await put(tmp_path, urls)
    page = Read(tmp_path / HTML_PAGE)
    assert {"script", "img"}.isdisjoint(page.tags)
    assert page.links == [one.url for one in sorted(urls, key=lambda one: one.url)]
    assert not {"\u202e", "\x1b"}.intersection((tmp_path / HTML_PAGE).read_text())
    assert (tmp_path / HTML_PAGE).stat().st_size < 10_000


async def test_a_page_of_others_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / HTML_PAGE).write_text("<h1>Made by hand</h1>")
    with pytest.raises(OutputError, match="was not made by this program"):
        await put(tmp_path, MANY[:3])
    with pytest.raises(OutputError, match="was not made by this program"):
        check_folder(Output(output=str(tmp_path), format="html"))
    assert [path.name for path in tmp_path.iterdir()] == [HTML_PAGE]


async def test_standard_output_is_no_place_for_several_files() -> None:
    with pytest.raises(ConfigError, match="--format html is several files"):
        await put(Path("-"), MANY[:3])


def test_folders_beyond_a_limit_count_together(tmp_path: Path) -> None:
    pages = HtmlPages(tmp_path, SITE, OldFiles())
    pages.add([entry(f"/{number:06}/a", day=2) for number in range(FOLDERS + 100)])
    parts = pages.finish()
    assert max(part.size for part in parts) < 400_000
    assert f"other folders{FOLDERS - 400:,}2026-11-02" in Read(tmp_path / HTML_PAGE).text


def test_a_crawl_has_titles_and_its_report_a_link(run: Run, tmp_path: Path) -> None:
    site = Site()
    site.page("/", links=["/a/b"], title="The home of lanterns")
    site.page("/a/b", title="A & B")
    with site.serve() as origin:
        made = []
        for _ in range(2):
            run.ok("crawl", f"{origin}/", *QUICK, "--format", "html", "--report", "report.html")
            made.append({path.name: path.read_bytes() for path in (tmp_path / "sitemaps").glob("sitemap*")})
    assert made[0] == made[1]
    page = Read(tmp_path / "sitemaps" / HTML_PAGE)
    assert "The home of lanterns" in page.text
    assert "A & B" in page.text
    assert f"{origin}/{HTML_PAGE}" in Read(tmp_path / "report.html").links
    run.ok("export", origin, "-o", "again")
    assert (tmp_path / "again" / HTML_PAGE).read_bytes() == made[0][HTML_PAGE]
    run.ok("validate", "sitemaps", "--allow-address", "127.0.0.0/8")
