"""`--images` over real sockets: from elements to the sitemap, the summary, the report, `explain` and `validate`."""

import gzip
import re
from pathlib import Path

import pytest
from lxml import etree

from crawler.app import report as reports
from crawler.app.job import open_job
from crawler.cli.demo.site import Site
from crawler.model.protocol import MAX_IMAGES
from crawler.settings.sections import Settings
from crawler.sitemap.publish.published import Published
from tests.commands import Run
from tests.engine.test_crawl import settings
from tests.postgres import new_state

pytestmark = pytest.mark.anyio
SPACES = {
    "s": "http://www.sitemaps.org/schemas/sitemap/0.9",
    "i": "http://www.google.com/schemas/sitemap-image/1.1",
}
BLANK = "data:image/gif;base64,R0lGODlhAQABAAAAACw="


def shop() -> Site:
    """Pages with images of every kind."""
    site = Site()
    site.page("/", links=["/a/one", "/a/two", "/none", "/hidden", "/kept-out"], headers={"ETag": '"1"'})
    site.page(
        "/a/one",
        head='<base href="/img/"><meta property="og:image" content="https://cdn.example/og.png">',
        text=f"<img src=small.jpg srcset='mid.jpg 300w, big.jpg 1200w'><img src='{BLANK}' data-src='lazy.jpg#x'>"
        "<picture><source srcset='a.avif 1x, a2.avif 2x'><img src=a.jpg></picture>"
        "<noscript><img src='//user:secret@cdn.example/n.jpg?b=1&amp;a=2&amp;utm_source=x'></noscript>",
        headers={"ETag": '"2"'},
    )
    site.page(
        "/a/two",
        text="<img src=a.jpg><img src=/img/a.jpg><img src=/img/a.jpg?><img src='it&apos;s &lt;1&gt;\x07 ü\".jpg'>"
        "<img src=http://bücher.example/ß.jpg><img src=javascript:x()><img src=http:///><img src=http://[::1>"
        f"<img src=/{'x' * 2_100}><img src=?><img src='/a/two#x'>",
        headers={"ETag": '"3"'},
    )
    site.page("/none", headers={"ETag": '"4"'})
    site.page("/hidden", noindex=True, text="<img src=no.jpg>", headers={"ETag": '"5"'})
    robots = {"ETag": '"6"', "X-Robots-Tag": "noimageindex"}
    site.page("/kept-out", text="<img src=no.jpg>", headers=robots)
    return site


SHOP = {
    "/": [],
    "/a/one": [
        "https://cdn.example/og.png", "/img/big.jpg", "/img/lazy.jpg", "/img/a2.avif", "/img/a.jpg",
        "http://cdn.example/n.jpg?b=1&a=2&utm_source=x",
    ],
    "/a/two": [
        "/a/a.jpg", "/img/a.jpg", "/a/it's%20%3C1%3E%07%20%C3%BC%22.jpg", "http://xn--bcher-kva.example/%C3%9F.jpg",
    ],
    "/kept-out": [],
    "/none": [],
}  # fmt: skip


async def publication(chosen: Settings) -> Published:
    async with open_job(chosen) as job:
        await job.crawl()
        return await job.publish()


def written(folder: Path, origin: str) -> dict[str, list[str]]:
    """By path, the images in the sitemap."""
    root = etree.fromstring(gzip.decompress((folder / "out/sitemap.xml.gz").read_bytes()))
    return {
        url.findtext("s:loc", "", SPACES).removeprefix(origin): [
            (loc.text or "").removeprefix(origin) for loc in url.iterfind("i:image/i:loc", SPACES)
        ]
        for url in root
    }


@pytest.mark.parametrize("backend", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
async def test_images_are_written_and_replayed_on_304(tmp_path: Path, backend: str) -> None:
    state = new_state() if backend == "postgres" else str(tmp_path / "s")
    site = shop()
    with site.serve() as origin:
        chosen = settings(origin, tmp_path, images=True, state=state)
        published = await publication(chosen)
        assert written(tmp_path, origin) == SHOP
        assert published.optional == 10
        first = (tmp_path / "out/sitemap.xml.gz").read_bytes()
        site.log.clear()
        assert (await publication(chosen)).optional == 10
        assert (tmp_path / "out/sitemap.xml.gz").read_bytes() == first
        assert {
            asked.status for asked in site.log if not asked.target.endswith((".txt", ".xml", "no-such-page"))
        } == {304}
        site.page("/none", text="<img src=new.jpg>", headers={"ETag": '"7"'})
        await publication(chosen)
        assert written(tmp_path, origin) == SHOP | {"/none": ["/new.jpg"]}


async def test_images_of_pages_whose_canonical_is_ignored(run: Run, tmp_path: Path) -> None:
    """Also on the night in which the canonical URL fails, and the page answers 304."""
    site, state = Site(), {"images": True, "state": str(tmp_path / "s")}
    canonicals = {"/dead": "/gone", "/one": "/two", "/two": "/one", "/copy": "/", "/later": "/some"}
    site.page("/", links=[*canonicals, "/some", "/several"])
    site.page("/some", text="<img src=some.png>")
    for path, to in canonicals.items():
        site.page(path, canonical=to, text=f"<img src={path}.png>", headers={"ETag": f'"{path}"'})
    several = {"Link": '</some>; rel="canonical"'}
    site.page("/several", canonical="/", headers=several, text="<img src=/several.png>")
    expected = {path: [f"{path}.png"] for path in ("/dead", "/one", "/several", "/some", "/two")}
    with site.serve() as origin:
        await publication(settings(origin, tmp_path, **state))
        assert written(tmp_path, origin) == {"/": []} | expected
        shown = run("explain", f"{origin}/copy", "--state", str(tmp_path / "s"))[1]
        assert "image" not in shown, "it is stored, and the page not listed"
        site.answers.pop("/some")
        await publication(settings(origin, tmp_path, force=True, keep_failing=0, **state))
        assert written(tmp_path, origin) == {"/": [], "/later": ["/later.png"]} | {
            path: images for path, images in expected.items() if path != "/some"
        }


async def test_images_are_not_requested(tmp_path: Path) -> None:
    site = shop()
    with site.serve() as origin:
        await publication(settings(origin, tmp_path, images=True))
    assert not [asked.target for asked in site.log if re.search("[.](jpg|avif|png)", asked.target)]


async def test_every_page_is_read_once_and_nothing_else_changes(tmp_path: Path) -> None:
    site, plain = shop(), Site()
    plain.page("/", lastmod="Mon, 01 Jan 2024 00:00:00 GMT")
    with site.serve() as origin, plain.serve() as other:
        state = {"state": str(tmp_path / "s")}
        await publication(settings(origin, tmp_path, **state))
        assert not any(written(tmp_path, origin).values())
        assert b"image" not in gzip.decompress((tmp_path / "out/sitemap.xml.gz").read_bytes())
        site.log.clear()
        await publication(settings(origin, tmp_path, images=True, **state))
        assert written(tmp_path, origin) == SHOP
        assert {
            asked.status for asked in site.log if not asked.target.endswith((".txt", ".xml", "no-such-page"))
        } == {200}
        site.log.clear()
        await publication(settings(origin, tmp_path, **state))
        assert not any(written(tmp_path, origin).values())
        assert {
            asked.status for asked in site.log if not asked.target.endswith((".txt", ".xml", "no-such-page"))
        } == {200}
        files = []
        for chosen in (False, True):
            await publication(settings(other, tmp_path / "plain", images=chosen, force=True))
            files.append((tmp_path / "plain/out/sitemap.xml.gz").read_bytes())
        assert files[0] == files[1]


@pytest.mark.slow
async def test_processes_give_the_same_images(tmp_path: Path) -> None:
    with shop().serve() as origin:
        await publication(settings(origin, tmp_path, images=True, processes=2, concurrency=4))
        assert written(tmp_path, origin) == SHOP


async def test_images_of_the_published_site(tmp_path: Path) -> None:
    base = "https://www.example.com"
    site = Site()
    site.page(
        "/",
        text=f"<img src=/a.jpg><img src={base}/a.jpg><img src={base}/b.jpg><img src=http://www.example.com/c>",
    )
    with site.serve() as origin:
        await publication(settings(origin, tmp_path, images=True, publish_base=base))
    assert written(tmp_path, base) == {"/": ["/a.jpg", "/b.jpg", "http://www.example.com/c"]}


def gallery(pages: int, marked: int, *, extra: int = 0) -> Site:
    """`pages` pages, of which `marked` show the same logo; the start page has `extra` images more."""
    site = Site()
    names = [f"/{number:03}" for number in range(1, pages)]
    for number, name in enumerate(["/", *names]):
        logo = "<img src=/logo.svg>" if number < marked else ""
        more = "".join(f"<img src=/more{place}>" for place in range(extra)) if name == "/" else ""
        site.page(
            name, links=names if name == "/" else (), text=f"{logo}<img src=/{number}.jpg>{more}", title=name
        )
    return site


@pytest.mark.parametrize(
    ("pages", "marked", "is_site_wide"),
    [(20, 20, True), (19, 19, False), (66, 20, True), (67, 20, False), (70, 21, True), (70, 20, False)],
)
async def test_an_image_on_many_pages_is_left_out(
    tmp_path: Path, pages: int, marked: int, is_site_wide: bool
) -> None:
    with gallery(pages, marked).serve() as origin:
        published = await publication(settings(origin, tmp_path, images=True))
        found = [image for images in written(tmp_path, origin).values() for image in images]
    assert ("/logo.svg" not in found) is is_site_wide
    assert published.optional == len(found) == pages + (0 if is_site_wide else marked)


async def test_at_most_a_thousand_are_written_and_rest_is_finding(tmp_path: Path) -> None:
    for extra, expected in ((MAX_IMAGES - 1, 0), (MAX_IMAGES, 1)):
        with gallery(20, 20, extra=extra).serve() as origin:
            chosen = settings(origin, tmp_path / str(extra), images=True)
            async with open_job(chosen) as job:
                await job.crawl()
                await job.publish()
                known = await reports.read_known(job.frontier, chosen)
                report = await reports.build_report(job.frontier, known)
                tallied = await reports.count_findings(job.frontier, known)
            images = written(tmp_path / str(extra), origin)["/"]
        assert len(images) == MAX_IMAGES
        assert images[:2] == ["/0.jpg", "/more0"]
        told = {finding.code.value: finding.count for finding in report.findings}
        assert told.get("images-cut", 0) == expected
        assert {finding.code.value: finding.count for finding in tallied} == told
        details = [
            item.detail
            for found in report.findings
            for item in found.items
            if found.code.value == "images-cut"
        ]
        assert details == ["1,001 images"] * expected


async def test_bytes_of_images_count_and_no_page_is_left_out_for_them(tmp_path: Path) -> None:
    site = Site()
    site.page("/", links=["/b"], text="".join(f"<img src=/{'x' * 200}{number}>" for number in range(100)))
    site.page("/b", text=f"<img src=/b{'x' * 300}>")
    with site.serve() as origin:
        await publication(settings(origin, tmp_path, images=True, max_bytes=10_000, gzip=False))
    files = {path.name: path.read_text() for path in (tmp_path / "out").glob("sitemap-*.xml")}
    assert len(files) == 2
    assert all(len(text) <= 10_000 for text in files.values())
    counts = [text.count("<image:image>") for _, text in sorted(files.items())]
    assert 30 < counts[0] < 36
    assert counts[1] == 1


@pytest.mark.parametrize("form", ["txt", "jsonl"])
async def test_other_formats_have_no_images(tmp_path: Path, form: str) -> None:
    with shop().serve() as origin:
        for chosen in (False, True):
            folder = tmp_path / str(chosen)
            published = await publication(settings(origin, folder, images=chosen, format=form))
            assert published.optional == 0
    assert (tmp_path / f"True/out/sitemap.{form}.gz").read_bytes() == (
        tmp_path / f"False/out/sitemap.{form}.gz"
    ).read_bytes()


def test_summary_explain_list_export_and_validate(run: Run, tmp_path: Path) -> None:
    with gallery(24, 21, extra=MAX_IMAGES + 5).serve() as origin:
        _, err = run.ok("crawl", f"{origin}/", "--rate", "0", "--state", "s.db", "--images", "--no-gzip")
        assert "1,023 images in the sitemap; 1 left out that is on 30% of the pages or more" in " ".join(
            err.split()
        )
        assert "images-cut: 1 URL" in " ".join(err.split())
        _, out, _ = run("explain", f"{origin}/", "--state", "s.db")
        assert f"  image      {origin}/0.jpg: in the sitemap with --images\n" in out
        assert "  image      and 990 more in the sitemap with --images\n" in out
        assert f"  image      {origin}/logo.svg: left out, being on 30% of the listed pages or more\n" in out
        assert f"  image      {origin}/more999: left out, being beyond the first 1,000\n" in out
        _, out, _ = run("list", "pages", "--state", "s.db", "--only", "images-cut")
        assert f"{origin}/\n" in out
        _, out, _ = run("list", "images", "--state", "s.db", "--format", "csv")
        lines = out.splitlines()
        assert lines[0] == "page,image,place"
        assert lines[1] == f"{origin}/,{origin}/0.jpg,sitemap"
        assert f"{origin}/023,{origin}/23.jpg,sitemap" in lines
        assert sum(line.endswith(",site-wide") for line in lines) == 21
        assert sum(line.endswith(",cut") for line in lines) == 6
        run("export", "--state", "s.db", "--images", "--no-gzip", "-o", "out")
    text = (tmp_path / "sitemaps/sitemap.xml").read_text()
    assert text == (tmp_path / "out/sitemap.xml").read_text()
    run.ok("validate", "sitemaps/sitemap.xml")
