"""Two sites that are crawled from one folder: each has its own state, and its own sitemap."""

import json
from pathlib import Path

import pytest

from crawler.app.job import open_job
from crawler.testing import MemorySite
from tests.commands import Run
from tests.sites import star

QUICK = ("--rate", "0", "--retries", "0")


def name_of(origin: str) -> str:
    return origin.removeprefix("http://").replace(":", "_")


def sites_in(folder: Path) -> list[str]:
    sites: list[str] = json.loads((folder / "manifest.json").read_text())["site"]["sites"]
    return sites


def test_the_second_site_gets_a_folder_of_its_own(run: Run, tmp_path: Path) -> None:
    with star("/a").serve() as first, star("/b").serve() as second:
        run.ok("crawl", first, *QUICK)
        own = tmp_path / "sitemaps" / name_of(second)
        for _ in range(2):
            _, err = run.ok("crawl", second, *QUICK)
            names = [origin.removeprefix("http://") for origin in (second, first)]
            folder = f"sitemaps/{name_of(second)}"
            assert f"the sitemap of {names[0]} goes to {folder}, as ./sitemaps has that of {names[1]}" in err
            assert f"folder       sitemaps/{name_of(second)}" in err
        run.ok("crawl", first, *QUICK)
        assert sites_in(tmp_path / "sitemaps") == [first.removeprefix("http://")]
        assert sites_in(own) == [second.removeprefix("http://")]
        run.ok("export", second, "--force")
        assert sites_in(tmp_path / "sitemaps") == [first.removeprefix("http://")]
        (tmp_path / "sitemaps/manifest.json").unlink()
        (tmp_path / "sitemaps/sitemap.xml.gz").unlink()
        run.ok("crawl", second, *QUICK)
        assert not (tmp_path / "sitemaps/manifest.json").exists(), "the folder of a site does not move"


async def test_two_sites_crawled_at_the_same_time_for_the_first_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = MemorySite(), MemorySite(origin="https://other.example")
    for memory in (first, second):
        memory.page("/")
    async with (
        open_job(first.settings(), transport=first.transport) as one,
        open_job(second.settings(), transport=second.transport) as two,
    ):
        for job in (one, two):
            await job.crawl()
        assert (await one.publish()).folder == "sitemaps"
        assert (await two.publish()).folder == "sitemaps/other.example"
    assert sites_in(tmp_path / "sitemaps") == ["site.example"]
    assert sites_in(tmp_path / "sitemaps/other.example") == ["other.example"]


@pytest.mark.parametrize("folder", ["out", "./out/"])
def test_a_folder_that_was_named_is_never_shared(run: Run, tmp_path: Path, folder: str) -> None:
    with star("/a").serve() as first, star("/b").serve() as second:
        run.ok("crawl", first, *QUICK, "-o", folder)
        code, _, err = run("crawl", second, *QUICK, "-o", folder)
    assert code == 6
    assert "Choose another place with --output" in " ".join(err.split())
    assert sites_in(tmp_path / "out") == [first.removeprefix("http://")]


def test_a_published_site_keeps_its_folder_for_a_copy(run: Run, tmp_path: Path) -> None:
    base = ("--publish-base", "https://www.example.com/shop")
    with star("/a").serve() as first, star("/a").serve() as second:
        run.ok("crawl", first, *QUICK, *base)
        run.ok("crawl", second, *QUICK, *base)
    assert [path.name for path in (tmp_path / "sitemaps").iterdir() if path.is_dir()] == []
