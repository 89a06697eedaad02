"""`[[section]]`: files of their own, the index over all, and what a change of the sections leaves behind."""

import gzip
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from crawler.errors import PublishRefused
from crawler.model.facts import Entry
from crawler.parse.url import Url
from crawler.rules.page_rules import SitemapSections
from crawler.settings.load import resolve
from crawler.settings.sections import Guard, Output, Settings, Split
from crawler.settings.tables import SitemapSection
from crawler.sitemap.publish.guard import CrawlResult
from crawler.sitemap.publish.manifest import place_of
from crawler.sitemap.publish.publish import CrawlToPublish, publish
from tests.cli.test_cli import QUICK
from tests.commands import Run
from tests.sites import star

pytestmark = pytest.mark.anyio
SITE = "https://example.com"
BLOG, NEWS = SitemapSection("blog", "/blog/*"), SitemapSection("news", "re:^/(blog/new|news/)")


async def put(folder: Path, paths: Iterable[str], *sections: SitemapSection, **chosen: Any) -> list[str]:
    """The names of the files, in the order of the index."""

    async def found() -> AsyncIterator[Sequence[Entry]]:
        for path in sorted(paths):
            yield [Entry(Url(f"{SITE}{path}"))]

    guard = Guard(**{name: chosen.pop(name) for name in list(chosen) if name in Guard.__dataclass_fields__})
    output = Output(**{"output": str(folder), "gzip": False, **chosen})
    settings = Settings(output=output, guard=guard, split=Split(section=sections))
    done = await publish(found(), settings, CrawlToPublish(SITE, CrawlResult(True, {}, {}), "1"))
    return [file.name for file in done.files]


def paths_in(folder: Path, name: str) -> list[str]:
    lines = (folder / name).read_text().splitlines()
    locs = (line.partition("<loc>")[2].partition("</loc>")[0] for line in lines)
    return [loc.removeprefix(SITE) for loc in locs if loc]


PATHS = ["/", "/a", "/blog/a", "/blog/b", "/blog/new", "/news/1", "/z"]


@pytest.mark.parametrize(
    ("sections", "of"),
    [((), ""), ((BLOG, NEWS), "blog"), ((NEWS, BLOG), "news"), ((SitemapSection("q", "*?x=*"),), "")],
)
def test_the_first_section_that_matches_decides(sections: tuple[SitemapSection, ...], of: str) -> None:
    assert SitemapSections(sections).of(Url(f"{SITE}/blog/new")) == of


async def test_each_section_has_files_and_the_index_names_all(tmp_path: Path) -> None:
    names = await put(tmp_path, PATHS, NEWS, BLOG)
    assert names == ["sitemap-00001.xml", "sitemap-news-00001.xml", "sitemap-blog-00001.xml", "sitemap.xml"]
    assert paths_in(tmp_path, "sitemap.xml") == [f"/{name}" for name in names[:-1]]
    assert [paths_in(tmp_path, name) for name in names[:-1]] == [
        ["/", "/a", "/z"], ["/blog/new", "/news/1"], ["/blog/a", "/blog/b"],
    ]  # fmt: skip
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert await put(tmp_path, PATHS, NEWS, BLOG) == names
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


async def test_a_section_is_split_by_the_limits(tmp_path: Path) -> None:
    names = await put(tmp_path, [f"/blog/{n}" for n in range(5)], BLOG, max_urls=2)
    assert names[:-1] == [f"sitemap-blog-0000{n}.xml" for n in (1, 2, 3)]


async def test_an_empty_section_leaves_the_index_and_its_file_goes(tmp_path: Path) -> None:
    await put(tmp_path, PATHS, BLOG)
    names = await put(tmp_path, ["/", "/a", "/news/1", "/z"], BLOG, max_shrink=1.0, max_removed=1.0)
    assert names == ["sitemap-00001.xml", "sitemap.xml"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["manifest.json", *names]


async def test_other_sections_get_other_numbers(tmp_path: Path) -> None:
    """The old index must not lead to files that lost pages to another section."""
    await put(tmp_path, PATHS, BLOG)
    names = await put(tmp_path, PATHS, BLOG, NEWS)
    assert names == ["sitemap-00002.xml", "sitemap-blog-00002.xml", "sitemap-news-00001.xml", "sitemap.xml"]
    assert await put(tmp_path, PATHS, BLOG, NEWS) == names
    assert await put(tmp_path, PATHS) == ["sitemap.xml"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["manifest.json", "sitemap.xml"]


async def test_the_guard_counts_all_files(tmp_path: Path) -> None:
    await put(tmp_path, PATHS, BLOG)
    with pytest.raises(PublishRefused, match="URLs listed: 3, where 7 are published"):
        await put(tmp_path, PATHS[:3], BLOG)


async def test_a_page_is_found_in_its_file(tmp_path: Path) -> None:
    await put(tmp_path, PATHS, BLOG)
    assert place_of(Url(f"{SITE}/blog/b"), tmp_path) == ("sitemap-blog-00001.xml", 2)
    assert place_of(Url(f"{SITE}/z"), tmp_path) == ("sitemap-00001.xml", 4)


async def test_text_has_sections_and_json_lines_are_one_file(tmp_path: Path) -> None:
    names = await put(tmp_path / "txt", PATHS, BLOG, format="txt", gzip=True)
    assert names == ["sitemap-00001.txt.gz", "sitemap-blog-00001.txt.gz", "sitemap.xml.gz"]
    assert gzip.decompress((tmp_path / "txt" / names[1]).read_bytes()).startswith(
        b"https://example.com/blog/a"
    )
    assert await put(tmp_path / "jsonl", PATHS, BLOG, format="jsonl") == ["sitemap.jsonl"]


async def test_standard_output_is_one_file(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    await put(Path("-"), PATHS, BLOG)
    assert capfdbinary.readouterr().out.count(b"<loc>") == len(PATHS)


async def test_the_manifest_names_the_sections(tmp_path: Path) -> None:
    await put(tmp_path, PATHS, BLOG)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["sections"] == [{"name": "blog", "match": "/blog/*"}]
    assert manifest["urls"] == len(PATHS)


def test_commands_know_sections(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('[[section]]\nname = "blog"\nmatch = "/blog/*"\n')
    site = star("/blog/a", "/c")
    with site.serve() as origin:
        for _ in range(2):
            run.ok("crawl", f"{origin}/", *QUICK, "--config", "a.toml", "--no-gzip")
            made = {path.name: path.read_bytes() for path in (tmp_path / "sitemaps").iterdir()}
    assert {"sitemap-00001.xml", "sitemap-blog-00001.xml", "sitemap.xml"} < made.keys()
    run.ok("export", origin, "-o", "again")
    for name in made.keys() - {"manifest.json"}:
        assert (tmp_path / "again" / name).read_bytes() == made[name]
    run.ok("validate", "sitemaps")
    run.ok("diff", "sitemaps", "again")
    assert "sitemap-blog-00001.xml" in run("explain", f"{origin}/blog/a")[1]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ('[{"match": "/a"}]', "1 name: '' must not be missing"),
        ('[{"name": "a"}]', "1 match: '' must not be missing"),
        ('[{"name": "../a", "match": "/a"}]', "1 name: '../a' must be at most 40 lower-case letters"),
        ('[{"name": "1a", "match": "/a"}]', "1 name: '1a' must be"),
        ('[{"name": "a-", "match": "/a"}]', "1 name: 'a-' must be"),
        ('[{"name": "a", "match": "re:("}]', "1 match: 're:(' is not a valid regular expression"),
        ('[{"name": "a", "match": "/a"}, {"name": "a", "match": "/b"}]', "2 name: 'a' is the name of two"),
        (
            '[{"name": "a", "match": "/a", "priority": 1}]',
            "'priority' is not a key of a section (name, match)",
        ),
        ("blog", "must be tables: [[section]] with a name"),
    ],
)
def test_wrong_sections_are_named(given: str, says: str) -> None:
    with pytest.raises(Exception, match="SITEMAP_CRAWLER_SECTION") as raised:
        resolve(environ={"SITEMAP_CRAWLER_SECTION": given})
    assert says in str(raised.value)
