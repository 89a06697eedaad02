"""Crawling a copy (staging) and publishing the site: URLs of the published site are mapped to the copy before judging."""

import gzip
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.app.job import open_job
from crawler.cli.demo.site import Site
from crawler.errors import ConfigError, StartUnreachable
from crawler.parse.normalise import Normaliser
from crawler.parse.publish_base import PublishBase
from crawler.parse.url import Url
from crawler.settings.load import resolve
from tests.commands import Run
from tests.engine.test_crawl import crawl, settings

WWW = "https://www.example.com"
COPY = "http://127.0.0.1:8000"


@pytest.mark.parametrize(
    ("base", "url", "crawled"),
    [
        (WWW, f"{WWW}/a?b", f"{COPY}/a?b"),
        (WWW, f"{WWW}/", f"{COPY}/"),
        (WWW, "http://www.example.com/a", f"{COPY}/a"),
        (WWW, "https://example.com/a", f"{COPY}/a"),
        (WWW, "http://example.com/a", f"{COPY}/a"),
        (WWW, "https://www.example.com:8443/a", None),
        (WWW, "https://www.example.com.evil.net/a", None),
        (WWW, "https://shop.example.com/a", None),
        (WWW, "https://other.example/?u=https://www.example.com/a", None),
        (WWW, f"{COPY}/a", None),
        ("https://www.example.com:8443", "https://www.example.com:8443/a", f"{COPY}/a"),
        ("https://www.example.com:8443", "http://www.example.com:8443/a", None),
        ("https://www.example.com:8443", f"{WWW}/a", None),
        (f"{WWW}/docs", f"{WWW}/docs/a", f"{COPY}/a"),
        (f"{WWW}/docs", f"{WWW}/docs", f"{COPY}/"),
        (f"{WWW}/docs", f"{WWW}/docs?a", f"{COPY}/?a"),
        (f"{WWW}/docs", f"{WWW}/docs-old/a", None),
        (f"{WWW}/docs", f"{WWW}/a", None),
        (COPY, f"{COPY}/a", None),
        ("http://[::1]:81", "http://[::1]:81/a", f"{COPY}/a"),
    ],
)
def test_urls_below_the_base_are_mapped_to_the_copy(base: str, url: str, crawled: str | None) -> None:
    assert PublishBase(base, COPY).crawled(Url(url)) == (crawled or url)


@pytest.mark.parametrize("alias", ["http://www.example.com/a", "https://example.com/a"])
def test_canonicals_are_mapped_only_for_the_exact_origin(alias: str) -> None:
    base = PublishBase(WWW, COPY)
    assert base.crawled(Url(alias), exactly=True) == alias
    assert base.crawled(Url(f"{WWW}/a"), exactly=True) == f"{COPY}/a"


HOSTS = ["http://a.example", "https://b.example", "https://b.example/docs", "http://c.example:81"]
PATHS = st.text("a/-.0?", max_size=6).map(lambda text: f"/{text}")


@given(st.sampled_from(HOSTS), st.sampled_from([h for h in HOSTS if "docs" not in h]), PATHS)
def test_mapping_round_trip(base: str, site: str, path: str) -> None:
    mapping, url = PublishBase(base, site), Url(site + path)
    assert mapping.crawled(mapping.published(url), exactly=True) == url


@given(
    st.sampled_from(HOSTS),
    st.sampled_from([h for h in HOSTS if "docs" not in h]),
    st.sets(st.tuples(st.sampled_from([h for h in HOSTS if "docs" not in h]), PATHS)),
)
def test_ranges_are_in_the_order_of_published_urls(base: str, site: str, parts: set[tuple[str, str]]) -> None:
    mapping = PublishBase(base, site)
    urls = sorted({mapping.crawled(Url(host + path)) for host, path in parts})
    shown = [url for first, below in mapping.ranges() for url in urls if first <= url < below]
    assert sorted(shown) == urls, "each once"
    published = [mapping.published(url) for url in shown]
    assert published == sorted(published)


@pytest.mark.parametrize(
    "text", ["a", "../a", "/d/a", f"{WWW}/d/a", "//www.example.com/d/a", "HTTPS://WWW.example.com:443/d/a#x"]
)
def test_links_are_mapped_in_any_spelling(text: str) -> None:
    normalise = Normaliser(base=PublishBase(WWW, COPY))
    for page in (f"{COPY}/d/x/y", f"{WWW}/d/x/y"):
        [[url]] = normalise.chunks([text], page)
        assert url.startswith(COPY)
        assert url == normalise(text, page)


def test_links_relative_to_a_base_element_of_a_published_folder() -> None:
    normalise = Normaliser(base=PublishBase(f"{WWW}/docs", COPY))
    [links] = normalise.chunks(["a", "/docs/b", "/c", "../d"], f"{WWW}/docs/x/")
    assert list(links) == [f"{COPY}/x/a", f"{COPY}/b", f"{WWW}/c", f"{COPY}/d"]


def copy_of(www: str = WWW) -> Site:
    """A site as it is on production: absolute canonicals, links, redirects and sitemaps."""
    site = Site()
    site.robots(f"User-agent: *\nAllow: /\nSitemap: {www}/map.xml\n")
    site.sitemap("/map.xml", [f"{www}/", f"{www}/seeded", "http://www.example.com/old"])
    site.page("/", links=["/a", f"{www}/b", f"{www}/copy", "https://elsewhere.example/"], canonical=f"{www}/")
    site.page("/a", canonical=f"{www}/a", headers={"Link": f'<{www}/a>; rel="canonical"'})
    site.page("/b", canonical="/b", links=["http://www.example.com/c"])
    site.page("/c", head=f'<base href="{www}/d/"><link rel="canonical" href="../c">', links=["e"])
    site.page("/copy", canonical=f"{www}/a")
    site.page("/d/e", canonical="http://www.example.com/d/e")
    site.page("/seeded", canonical=f"{www}/seeded")
    site.redirect("/old", f"{www}/new")
    site.page("/new", canonical=f"{www}/new")
    return site


LISTED = ["/", "/a", "/b", "/c", "/new", "/seeded"]


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("chosen", [{}, {"processes": 2, "concurrency": 4}], ids=["one process", "workers"])
async def test_a_copy_is_judged_as_the_published_site(tmp_path: Path, chosen: dict[str, object]) -> None:
    site = copy_of()
    with site.serve() as origin:
        result = await crawl(settings(origin, tmp_path, publish_base=WWW, **chosen))
    assert result.listed == LISTED
    assert result.counts == {
        "listed": 6,
        "moved": 1,
        "unlisted:canonical": 2,  # a copy, and one that names http
        "unlisted:offsite": 2,
    }


@pytest.mark.anyio
async def test_without_publish_base_hardly_any_page_is_listed(tmp_path: Path) -> None:
    with copy_of().serve() as origin:
        result = await crawl(settings(origin, tmp_path))
    assert result.listed == ["/b"] or result.listed == []


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("chosen", [{}, {"processes": 2, "concurrency": 4}], ids=["one process", "workers"])
async def test_a_redirected_start_url_moves_the_mapping(tmp_path: Path, chosen: dict[str, object]) -> None:
    home, old = copy_of(), Site()
    with home.serve() as origin, old.serve() as before:
        old.redirect("/", origin + "/")
        host = origin.removeprefix("http://")
        result = await crawl(settings(before, tmp_path, publish_base=WWW, allow_host=(host,), **chosen))
    assert result.listed == [origin + path for path in LISTED]


@pytest.mark.anyio
async def test_copy_whose_start_redirects_to_published_site_is_refused(tmp_path: Path) -> None:
    site = Site()
    site.redirect("/", f"{WWW}/")
    with (
        site.serve() as origin,
        pytest.raises(StartUnreachable, match=r"redirects to https://www.example.com/, another site"),
    ):
        await crawl(settings(origin, tmp_path, publish_base=WWW))


@pytest.mark.anyio
async def test_a_base_equal_to_the_site_maps_nothing(tmp_path: Path) -> None:
    site = Site()
    site.page("/", links=["/a"], canonical="{origin}/")
    site.page("/a", canonical="{origin}/a")
    with site.serve() as origin:
        result = await crawl(settings(origin, tmp_path, publish_base=origin))
    assert result.listed == ["/", "/a"]


@pytest.mark.anyio
async def test_a_second_run_with_304_lists_the_same(tmp_path: Path) -> None:
    site = Site()
    site.page("/", links=[f"{WWW}/a"], canonical=f"{WWW}/", headers={"ETag": '"1"'})
    site.page("/a", canonical=f"{WWW}/a", headers={"ETag": '"2"'})
    with site.serve() as origin:
        for _ in range(2):
            async with open_job(
                settings(origin, tmp_path, publish_base=WWW, state=str(tmp_path / "s"))
            ) as job:
                await job.crawl()
                assert (await job.publish()).urls == 2
    assert [
        asked.status for asked in site.log if not asked.target.endswith((".txt", ".xml", "no-such-page"))
    ] == [200, 200, 304, 304]


@pytest.mark.anyio
async def test_a_different_base_fetches_every_page_again(tmp_path: Path) -> None:
    site = Site()
    site.page("/", canonical=f"{WWW}/", headers={"ETag": '"1"'}, text="word " * 100)
    with site.serve() as origin:
        for base, listed in ((None, []), (WWW, ["/"])):
            result = await crawl(settings(origin, tmp_path, publish_base=base, state=str(tmp_path / "s")))
            assert result.listed == listed


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("base", "start", "sentence"),
    [
        ("https://user:secret@www.example.com", "/", "must not contain a user name or password"),
        ("https://www.example.com/?a", "/", "must be an address such as"),
        ("ftp://www.example.com", "/", "must be an address such as"),
        ("www.example.com", "/", "must be an address such as"),
        ("https://exa mple.com", "/", "must be an address such as"),
        (f"{WWW}/3", "/3/index.html", r"is already below /3/, .* give https://www.example.com, or"),
    ],
)
async def test_an_invalid_base_is_one_sentence(tmp_path: Path, base: str, start: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence) as caught:
        async with open_job(
            settings(
                "http://127.0.0.1:8000", tmp_path, start=(f"http://127.0.0.1:8000{start}",), publish_base=base
            )
        ):
            pass
    assert "secret" not in str(caught.value)


def locs(folder: Path) -> list[str]:
    return re.findall("<loc>(.*?)</loc>", gzip.decompress((folder / "sitemap.xml.gz").read_bytes()).decode())


QUICK = ("--rate", "0", "--retries", "0", "--state", "state.db")


def test_explain_diff_and_export_use_the_base(run: Run, tmp_path: Path) -> None:
    with copy_of().serve() as origin:
        run.ok("crawl", origin + "/", *QUICK, "--publish-base", "HTTPS://www.Example.com:443/")
        assert locs(tmp_path / "sitemaps") == [WWW + path for path in LISTED]
        for url in (f"{WWW}/a", f"{origin}/a"):
            out, _ = run.ok("explain", url, "--state", "state.db")
            assert out.startswith(f"{origin}/a\n")
            assert "  outcome    listed: in the sitemap\n" in out
            assert f"  published  as {WWW}/a\n" in out
            assert "  file       sitemap.xml.gz, entry 2\n" in out
        _, out, _ = run("explain", f"{WWW}/a", "--state", "state.db", "--format", "json")
        assert json.loads(out)["published"] == f"{WWW}/a"
        run.ok("diff", "sitemaps", "state.db")
        (tmp_path / "live.txt").write_text(f"{WWW}/\n{WWW}/copy\n")
        code, out, _ = run("diff", "live.txt", "state.db")
        assert code == 8
        assert f"- {WWW}/copy  (unlisted:canonical: canonical URL is another page)\n" in out
        assert f"+ {WWW}/a  (new)\n" in out
        run.ok("export", "--state", "state.db", "-o", "exported")
        assert locs(tmp_path / "exported") == [WWW + path for path in LISTED]
        run("export", "--state", "state.db", "-o", "again", "--publish-base", "https://x.example/docs/")
        assert locs(tmp_path / "again") == [f"https://x.example/docs{path}" for path in LISTED]


def test_entries_of_other_hosts_are_sorted_among_mapped_ones(run: Run, tmp_path: Path) -> None:
    one, other = Site(), Site()
    with one.serve() as origin, other.serve() as beside:
        one.page("/", links=["/a", f"{beside}/x"])
        one.page("/a")
        other.page("/x")
        for base in ("http://a.example", "http://z.example"):
            host, folder = beside.removeprefix("http://"), base.rpartition("/")[2]
            run("crawl", origin + "/", *QUICK, "--publish-base", base, "--allow-host", host, "-o", folder)
            assert locs(tmp_path / folder) == sorted([f"{base}/", f"{base}/a", f"{beside}/x"])


def test_a_base_can_be_a_folder(run: Run, tmp_path: Path) -> None:
    docs, site = f"{WWW}/3", Site()
    site.page("/", links=["a.html", f"{docs}/b.html", f"{WWW}/2/a.html"], canonical=f"{docs}/")
    site.page("/a.html", canonical=f"{docs}/a.html")
    site.page("/b.html", canonical=f"{docs}/b.html")
    with site.serve() as origin:
        code, _, err = run("crawl", origin + "/", *QUICK, "--publish-base", docs)
    assert code == 0, err
    assert locs(tmp_path / "sitemaps") == [f"{docs}/", f"{docs}/a.html", f"{docs}/b.html"]
    assert f"Sitemap: {docs}/sitemap.xml.gz" in err


@pytest.mark.anyio
async def test_input_and_seed_sitemaps_may_contain_published_urls(tmp_path: Path) -> None:
    (tmp_path / "urls").write_text(f"{WWW}/new\n")
    with copy_of().serve() as origin:
        result = await crawl(
            settings(
                origin, tmp_path, publish_base=WWW, input=(str(tmp_path / "urls"),), seed_sitemaps=f"{WWW}/map.xml",
                max_depth=0,
            )
        )  # fmt: skip
    assert result.listed == ["/", "/new", "/seeded"]


@pytest.mark.parametrize(
    ("typed", "base"),
    [
        ("HTTPS://WWW.Example.com:443/", WWW),
        ("https://b\u00fccher.example", "https://xn--bcher-kva.example"),
        (f"{WWW}/docs/", f"{WWW}/docs"),
        (f"{WWW}/a/../docs", f"{WWW}/docs"),
        ("http://[::1]:8080", "http://[::1]:8080"),
    ],
)
def test_a_base_is_normalised(typed: str, base: str) -> None:
    assert resolve(None, {}, {"publish_base": typed})[0].output.publish_base == base


@pytest.mark.anyio
async def test_alternates_and_link_fields_of_published_site_are_used(tmp_path: Path) -> None:
    site = Site()
    site.page(
        "/",
        head=f'<link rel="alternate" hreflang="de" href="{WWW}/de"><link rel="next" href="//www.example.com/2">',
        headers={"Link": f'<{WWW}/fr>; rel="alternate"; hreflang="fr"'},
        text=f'<iframe src="{WWW}/frame"></iframe>',
    )
    for path in ("/de", "/2", "/fr", "/frame"):
        site.page(path, canonical=WWW + path)
    with site.serve() as origin:
        result = await crawl(settings(origin, tmp_path, publish_base=WWW))
    assert result.listed == ["/", "/2", "/de", "/fr", "/frame"]


@pytest.mark.anyio
async def test_a_refresh_to_the_published_site_stays_in_the_copy(tmp_path: Path) -> None:
    site = Site()
    site.page("/", links=["/a"])
    site.page("/a", head=f'<meta http-equiv="refresh" content="0; url={WWW}/b">')
    site.page("/b")
    with site.serve() as origin:
        result = await crawl(settings(origin, tmp_path, publish_base=WWW))
    assert result.listed == ["/", "/b"]
