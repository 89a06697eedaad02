"""`--hreflang` over real sockets: from elements and Link fields to the sitemap, the report, `explain` and `validate`."""

import gzip
import re
from pathlib import Path

import pytest

from crawler.app import report as reports
from crawler.app.job import open_job
from crawler.cli.demo.site import Site
from crawler.settings.sections import Settings
from crawler.settings.tables import PageRule
from tests.commands import Run
from tests.engine.test_crawl import settings
from tests.postgres import new_state

pytestmark = pytest.mark.anyio
ALL = {"de": "/de", "en": "/en", "fr": "/fr"}


def head(versions: dict[str, str]) -> str:
    return "".join(f'<link rel="alternate" hreflang="{code}" href="{to}">' for code, to in versions.items())


def three(*, noindex: bool = False, origin: str = "") -> Site:
    """Three versions: in the head, in the body, and in a Link field."""
    site = Site()
    links = {code: origin + path for code, path in ALL.items()}
    fields = ", ".join(f'<{to}>; rel="alternate"; hreflang="{code}"' for code, to in links.items())
    site.page("/", links=["/de"], headers={"ETag": '"1"'})
    site.page("/de", head=head(links), headers={"ETag": '"2"'})
    site.page("/en", text=f"<p>{head(links | {'x-default': origin + '/en'})}</p>", headers={"ETag": '"3"'})
    site.page("/fr", headers={"Link": fields, "ETag": f'"4{noindex}"'}, noindex=noindex)
    return site


async def published(chosen: Settings, folder: Path, origin: str = "") -> dict[str, list[str]]:
    """By path, the language versions that the sitemap has."""
    async with open_job(chosen) as job:
        await job.crawl()
        await job.publish()
    text = gzip.decompress((folder / "out/sitemap.xml.gz").read_bytes()).decode().replace(origin, "")
    lines = [line for line in text.splitlines() if line.startswith("<url>")]
    link = re.compile('<xhtml:link rel="alternate" hreflang="(.*?)" href="(.*?)"/>')
    return {
        re.findall("<loc>(.*?)</loc>", line)[0]: [" ".join(found) for found in link.findall(line)]
        for line in lines
    }


WHOLE = ["de /de", "en /en", "fr /fr"]
SITE = {"/": [], "/de": WHOLE, "/en": [*WHOLE, "x-default /en"], "/fr": WHOLE}


@pytest.mark.parametrize("backend", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
async def test_versions_are_written_and_replayed_on_304(tmp_path: Path, backend: str) -> None:
    state = new_state() if backend == "postgres" else str(tmp_path / "s")
    site = three()
    with site.serve() as origin:
        chosen = settings(origin, tmp_path, hreflang=True, state=state, force=True)
        assert await published(chosen, tmp_path, origin) == SITE
        first = (tmp_path / "out/sitemap.xml.gz").read_bytes()
        site.log.clear()
        assert await published(chosen, tmp_path, origin) == SITE
        assert (tmp_path / "out/sitemap.xml.gz").read_bytes() == first
        assert {
            asked.status for asked in site.log if not asked.target.endswith((".txt", ".xml", "no-such-page"))
        } == {304}
        site.answers |= three(noindex=True).answers
        rest = WHOLE[:2]
        assert await published(chosen, tmp_path, origin) == {
            "/": [], "/de": rest, "/en": [*rest, "x-default /en"],
        }  # fmt: skip
        async with open_job(chosen) as job:
            await job.crawl()
            known = await reports.read_known(job.frontier, chosen)
            report = await reports.build_report(job.frontier, known)
            tallied = await reports.count_findings(job.frontier, known)
        told = {finding.code.value: finding.count for finding in report.findings}
        assert told["hreflang-target"] == 2
        assert {finding.code.value: finding.count for finding in tallied} == told


async def test_every_page_is_read_once_and_nothing_else_changes(tmp_path: Path) -> None:
    site, plain = three(), Site()
    plain.page("/", lastmod="Mon, 01 Jan 2024 00:00:00 GMT")
    with site.serve() as origin, plain.serve() as other:
        state = {"state": str(tmp_path / "s")}
        assert not any((await published(settings(origin, tmp_path, **state), tmp_path, origin)).values())
        assert b"xhtml" not in gzip.decompress((tmp_path / "out/sitemap.xml.gz").read_bytes())
        site.log.clear()
        assert await published(settings(origin, tmp_path, hreflang=True, **state), tmp_path, origin) == SITE
        assert {
            asked.status for asked in site.log if not asked.target.endswith((".txt", ".xml", "no-such-page"))
        } == {200}
        files = []
        for chosen in (False, True):
            await published(
                settings(other, tmp_path / "plain", hreflang=chosen, force=True), tmp_path / "plain"
            )
            files.append((tmp_path / "plain/out/sitemap.xml.gz").read_bytes())
        assert files[0] == files[1]


@pytest.mark.slow
async def test_processes_give_the_same_versions(tmp_path: Path) -> None:
    with three().serve() as origin:
        chosen = settings(origin, tmp_path, hreflang=True, processes=2, concurrency=4)
        assert await published(chosen, tmp_path, origin) == SITE


async def test_versions_of_the_published_site_and_of_other_sites(tmp_path: Path) -> None:
    base = "https://www.example.com"
    site = three(origin=base)
    site.page("/", head=head({"en": f"{base}/", "it": "https://it.example.com/?a=1&b='2'"}), links=["/de"])
    with site.serve() as origin:
        found = await published(settings(origin, tmp_path, hreflang=True, publish_base=base), tmp_path, base)
    assert found == SITE | {"/": ["en /", "it https://it.example.com/?a=1&amp;b=%272%27"]}


async def test_a_page_that_a_rule_unlists_is_no_version(tmp_path: Path) -> None:
    with three().serve() as origin:
        chosen = settings(origin, tmp_path, hreflang=True, rule=(PageRule("/fr", list=False),))
        assert (await published(chosen, tmp_path, origin))["/de"] == WHOLE[:2]


def test_explain_export_and_validate(run: Run, tmp_path: Path) -> None:
    site = three()
    site.page("/en", head=head(ALL | {"en-UK": "/en"}))
    site.page("/fr", head=head({"fr": "/fr"}))
    with site.serve() as origin:
        run.ok("crawl", f"{origin}/", "--rate", "0", "--state", "s.db", "--hreflang", "--no-gzip")
        _, out, _ = run("explain", f"{origin}/en", "--state", "s.db")
        assert f"  hreflang   de {origin}/de: names this page, too\n" in out
        assert f"  hreflang   en {origin}/en: the page itself\n" in out
        assert f"  hreflang   fr {origin}/fr: does not name this page\n" in out
        assert f"  hreflang   en-UK {origin}/en: invalid code: en-GB?\n" in out
        _, out, _ = run("list", "findings", "--state", "s.db", "--only", "hreflang-no-return")
        assert out.count("hreflang-no-return") == 2
        _, out, _ = run("list", "pages", "--state", "s.db", "--only", "hreflang-code")
        assert f"{origin}/en" in out
        run("export", "--state", "s.db", "--hreflang", "--no-gzip", "-o", "out")
    text = (tmp_path / "sitemaps/sitemap.xml").read_text()
    assert text == (tmp_path / "out/sitemap.xml").read_text()
    assert 'xmlns:xhtml="http://www.w3.org/1999/xhtml"' in text
    assert text.count("<xhtml:link ") == 4
    out, _ = run.ok("validate", "sitemaps/sitemap.xml")
    broken = re.sub('<xhtml:link [^>]*hreflang="de"[^>]*/>', "", text, count=1)
    (tmp_path / "broken.xml").write_text(broken.replace('hreflang="en"', 'hreflang="en-UK"'))
    _, out, _ = run("validate", "broken.xml")
    assert "does not name itself among its language versions" in out
    assert "is not a valid hreflang: 'en-UK' (en-GB?)" in out
    one_way = re.sub(r"(<loc>[^<]*/en</loc>.*?)<xhtml:link [^>]*/de\"/>", r"\1", text)
    (tmp_path / "one.xml").write_text(one_way)
    _, out, _ = run("validate", "one.xml")
    assert f"names a language version that does not name it: {origin}/en" in out
