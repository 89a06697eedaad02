"""A page under several URLs is listed once; different pages are all listed."""

import random
import re
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.app.job import open_job
from crawler.app.report import each
from crawler.cli.demo.site import Site
from crawler.frontier.duplicates import PAIRS
from crawler.frontier.sqlite.database import SqliteDatabase
from crawler.frontier.sqlite.state_file import open_state
from crawler.model.outcome import Unlisted
from crawler.model.reasons import Why
from crawler.parse.url import Url
from crawler.ports import reads
from crawler.rules.duplicates import outside, unsorted, variant
from crawler.settings.sections import Http, Output, Pace, Scope, Settings, State, Verdicts

HOME = "https://a.example"


@pytest.mark.parametrize(
    ("path", "announced", "counts"),
    [
        ("/foo", "foo.html", True),
        ("/foo.html", "foo.html.en", True),
        ("/docs/", "index.html", True),
        ("/foo", "/foo", False),
        ("/foo", "bar.html", False),
        ("/foo", "/other/foo.html", False),
        ("/foo", "https://b.example/foo.html", False),
        ("/any/route", "/index.html", False),
    ],
)
def test_content_location_counts_only_with_the_same_stem(path: str, announced: str, counts: bool) -> None:
    to = (
        announced
        if "://" in announced
        else HOME + (announced if announced[0] == "/" else path.rpartition("/")[0] + "/" + announced)
    )
    assert (variant(Url(HOME + path), Url(to)) is not None) is counts


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("C=N;O=D", [("", ""), ("?O=D", "C"), ("?C=N", "O")]),
        ("dir=x&C=M&O=A", [("?dir=x", "")]),
        ("sort=price", [("", "sort")]),
        ("dir=x&sort=name", [("", "dir&sort"), ("?dir=x", "sort")]),
        ("month=2024-05", []),
    ],
)
def test_candidates_that_a_url_may_be_a_sort_order_of(query: str, expected: list[tuple[str, str]]) -> None:
    found = [(base.removeprefix(HOME + "/p"), names) for base, names in unsorted(f"{HOME}/p?{query}")]
    assert [pair for pair in expected if pair not in found] == []
    assert expected or not found


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("12")), max_size=8), st.sampled_from("&;"))
def test_candidates_are_shorter_and_on_the_same_path(pairs: list[tuple[str, str]], mark: str) -> None:
    url = f"{HOME}/p?{mark.join(f'{name}={value}' for name, value in pairs)}"
    bases = [base for base, _ in unsorted(url)]
    assert bases == sorted(set(bases), key=lambda base: (len(base), base))
    assert all(len(base) < len(url) and base.partition("?")[0] == HOME + "/p" for base in bases)
    assert len(bases) <= 2 * len(pairs) + 1


def test_links_to_other_urls_of_the_page_itself_are_ignored() -> None:
    links = [Url(HOME + path) for path in ("/a/", "/a/index.html", "/a/?C=N;O=D", "/a/b", "/")]
    assert list(outside(Url(HOME + "/a/index.html"), links)) == [HOME + "/a/b", HOME + "/"]


def test_equal_pages_are_not_compared_pairwise() -> None:
    with closing(open_state(":memory:", read_only=False)) as connection:
        db = SqliteDatabase(connection, time.time)
        plan = [str(row[3]) for row in db.all(f"EXPLAIN QUERY PLAN {PAIRS}", {"rows": "[]", "run": 1})]
    assert any(re.match(r"SEARCH \w+ USING .*INDEX sqlite_autoindex_url_1 \(url=\?\)", step) for step in plan)
    assert not [step for step in plan if step.startswith("SCAN") and "VIRTUAL" not in step], plan


# -- whole crawls ----------------------------------------------------------------------------------------

pytestmark = pytest.mark.anyio
Duplicates = dict[str, str | None]  # path -> None: listed, or the path of its base


async def crawl(origin: str, folder: Path, *, verdicts: Verdicts = Verdicts(), **pace: Any) -> Duplicates:  # noqa: B008
    settings = Settings(
        scope=Scope(start=(origin + "/",)),
        pace=Pace(rate=0.0, **pace),
        http=Http(retries=0),
        verdicts=verdicts,
        output=Output(output=str(folder / "out")),
        state=State(state=str(folder / "s.db")),
    )
    async with open_job(settings) as job:
        await job.crawl()
        await job.publish()
        assert (await job.frontier.read(reads.RunBalance())).balanced
        found: Duplicates = {
            entry.url.removeprefix(origin): None
            async for entry in each(job.frontier.stream(reads.ListedEntries()))
        }
        for url in await job.frontier.read(reads.Examples("unlisted:duplicate", 10_000)):
            record = await job.frontier.read(reads.RecordOf(url))
            assert record
            assert isinstance(record.outcome, Unlisted)
            assert record.outcome.why is Why.DUPLICATE
            assert record.outcome.detail.startswith(origin)
            found[url.removeprefix(origin)] = record.outcome.detail.removeprefix(origin)
        return found


def site_of(*paths: str) -> Site:
    site = Site()
    site.page("/", links=paths, title="Start")
    return site


@pytest.mark.system
async def test_a_folder_and_its_index_are_one_page(tmp_path: Path) -> None:
    site = site_of("/a/", "/a/index.html", "/index.html", "/2024/05/", "/2024/05/index.html")
    for folder in ("/a/", "/2024/05/"):
        for name in ("", "index.html"):
            site.page(
                folder + name,
                title="A",
                text="<p>The same words.",
                links=["/", folder, f"{folder}index.html"],
            )
    site.answers["/index.html"] = site.answers["/"]
    with site.serve() as origin:
        assert await crawl(origin, tmp_path) == {
            "/": None, "/index.html": "/", "/a/": None, "/a/index.html": "/a/",
            "/2024/05/": None, "/2024/05/index.html": "/2024/05/",
        }  # fmt: skip
        assert (await crawl(origin, tmp_path))["/a/index.html"] == "/a/", "also when nothing changed since"


@pytest.mark.system
@pytest.mark.parametrize("lastmod", ["auto", "header"])
async def test_a_folder_and_its_index_that_differ_both_stay(tmp_path: Path, lastmod: str) -> None:
    del lastmod
    names = [
        "/a/",
        "/a/index.html",
        "/b/",
        "/b/index.html",
        "/c/",
        "/c/index.html",
        "/d/",
        "/d/index.html",
        "/e/1.html",
        "/e/2.html",
    ]
    site = site_of(*names)
    site.page("/a/", title="A", text="<p>One.")
    site.page("/a/index.html", title="A", text="<p>Two.")
    site.page("/b/", title="B", links=["/b/x"])
    site.page("/b/index.html", title="B", links=["/b/y"])
    site.page("/b/x", title="X")
    site.page("/b/y", title="Y")
    for number, name in enumerate(["/c/", "/c/index.html"]):
        site.raw(
            name,
            body=b"<!doctype html><script src=/%d.js></script>" % number,
            headers={"Content-Type": "text/html"},
        )
    for number, name in enumerate(["/d/", "/d/index.html"]):
        site.raw(
            name,
            body=b"<!doctype html><title>D</title><img src=/%d.png>" % number,
            headers={"Content-Type": "text/html"},
        )
    for name in ("/e/1.html", "/e/2.html"):
        site.page(name, title="The same")
    with site.serve() as origin:
        found = await crawl(origin, tmp_path)
    assert found == dict.fromkeys(["/", *names, "/b/x", "/b/y"])


def negotiated(site: Site, name: str, to: str, **page: Any) -> None:
    site.page(name, headers={"Content-Location": to, "Vary": "negotiate", "TCN": "choice"}, **page)


@pytest.mark.system
async def test_urls_by_content_negotiation_are_one_page(tmp_path: Path) -> None:
    site = site_of(
        "/foo",
        "/foo.html",
        "/foo.html.en",
        "/foo.html.de",
        "/docs/",
        "/docs/index.html.en",
        "/bar",
        "/bar.html",
        "/q?x=1",
        "/q.php?x=1",
    )
    english: dict[str, Any] = {"title": "Foo", "text": "<p>English.", "links": ["/foo.html", "/foo"]}
    negotiated(site, "/foo", "foo.html.en", **english)
    negotiated(site, "/foo.html", "foo.html.en", **english)
    site.page("/foo.html.en", **english)
    site.page("/foo.html.de", title="Foo", text="<p>Deutsch.", links=["/foo.html", "/foo"])
    negotiated(site, "/docs/", "index.html.en", title="Docs")
    site.page("/docs/index.html.en", title="Docs")
    site.page("/bar", title="Bar")
    site.page("/bar.html", title="Bar")
    negotiated(site, "/q?x=1", "q.php", title="Q")
    site.page("/q.php?x=1", title="Q")
    with site.serve() as origin:
        found = await crawl(origin, tmp_path)
    assert {name: base for name, base in found.items() if base} == {
        "/foo.html": "/foo", "/foo.html.en": "/foo", "/docs/index.html.en": "/docs/", "/q.php?x=1": "/q?x=1",
        "/bar.html": "/bar",
    }  # fmt: skip


@pytest.mark.system
async def test_server_with_one_location_for_all_unlists_nothing(tmp_path: Path) -> None:
    routes = [f"/route/{number}" for number in range(5)]
    site = site_of(*routes, "/index.html")
    for name in [*routes, "/index.html"]:
        negotiated(site, name, "/index.html", title="App", text="<p>Loading")
    with site.serve() as origin:
        assert set((await crawl(origin, tmp_path)).values()) == {None}


@pytest.mark.system
async def test_the_duplicate_that_other_pages_call_canonical_is_listed(tmp_path: Path) -> None:
    site = site_of("/a/", "/a/index.php", "/copy")
    for name in ("/a/", "/a/index.php"):
        site.page(name, title="A", canonical=name)
    site.page("/copy", title="A", canonical="/a/index.php")
    with site.serve() as origin:
        found = await crawl(origin, tmp_path)
    assert found["/a/index.php"] is None
    assert found["/a/"] == "/a/index.php"


def listing(
    site: Site, folder: str, names: Sequence[str], orders: Sequence[str] = ("N", "M", "S", "D")
) -> list[str]:
    """A directory listing as made by Apache's mod_autoindex, and the links of its pages."""
    marks = random.Random(folder)
    rows = [
        (name, f"2024-0{marks.randint(1, 9)}-11 10:{marks.randint(10, 59)}", f"{marks.randint(1, 90)}K")
        for name in names
    ]

    def page(column: str, order: str) -> str:
        columns = {"N": 0, "M": 1, "S": 2, "D": 0}
        ordered = sorted(rows, key=lambda row: (row[columns[column]], row[0]), reverse=order == "D")
        heads = "".join(
            f'<a href="?C={each};O={"D" if (each, order) == (column, "A") else "A"}">{label}</a> '
            for each, label in zip("NMSD", ("Name", "Last modified", "Size", "Description"), strict=True)
        )
        lines = "".join(
            f'<img src="/icons/x.gif" alt="[   ]"> <a href="{name}">{name}</a>  {date}  {size}  \n'
            for name, date, size in ordered
        )
        return (
            f"<html><head><title>Index of {folder}</title></head><body><h1>Index of {folder}</h1><pre>{heads}<hr>"
            f'<a href="../">Parent Directory</a>  -  \n{lines}<hr></pre><address>Apache/2.4 Server at localhost</address></body></html>'
        )

    targets = [f"{folder}?C={column};O={order}" for column in orders for order in "AD"]
    for target in targets:
        column, order = target[-5], target[-1]
        site.raw(
            target, body=page(column, order).encode(), headers={"Content-Type": "text/html;charset=UTF-8"}
        )
    site.raw(folder, body=page("N", "A").encode(), headers={"Content-Type": "text/html;charset=UTF-8"})
    return [folder, *targets]


@pytest.mark.system
async def test_sort_orders_of_a_directory_listing_are_one_page(tmp_path: Path) -> None:
    site = site_of("/pub/", "/pub/one/")
    names = ["b.html", "a.html", "views.html", "c.html"]
    many = listing(site, "/pub/", [*names, "one/", "empty/"])
    one = listing(site, "/pub/one/", ["only.html"])
    none = listing(site, "/pub/empty/", [])
    for number, name in enumerate(["/pub/" + name for name in names] + ["/pub/one/only.html"]):
        site.page(name, title=f"File {number}")
    with site.serve() as origin:
        found = await crawl(origin, tmp_path)
        again = await crawl(origin, tmp_path)
    assert {name: base for name, base in found.items() if base} == {
        target: folder for folder, *targets in (many, one, none) for target in targets
    }
    assert again == found


def table(rows: Sequence[tuple[str, str]], mark: str = "") -> str:
    cells = "".join(
        f'<tr><td><a href="/item/{name}">{name}</a></td><td>{price}</td></tr>' for name, price in rows
    )
    return f"<table><tr><th><a href='?sort=name'>Name{mark}</a></th><th><a href='?sort=price'>Price</a></th></tr>{cells}</table>"


@pytest.mark.system
async def test_sort_orders_of_any_name_are_one_page_filters_are_not(tmp_path: Path) -> None:
    rows = [("a", "300"), ("b", "100"), ("c", "200")]
    queries = ["?sort=name", "?sort=price", "?dir=1", "?dir=1&sort=price", "?only=cheap", "?page=2"]
    site = site_of("/shop", *(f"/shop{query}" for query in queries))
    by_price = sorted(rows, key=lambda row: row[1])
    for target, shown, mark in [
        ("", rows, ""), ("?sort=name", rows, " ▲"), ("?sort=price", by_price, " ▼"), ("?dir=1", rows[:2], ""),
        ("?dir=1&sort=price", by_price[::2], ""), ("?only=cheap", by_price[:2], ""), ("?page=2", [("d", "7")], ""),
    ]:  # fmt: skip
        site.page(f"/shop{target}", title="Shop", text=table(shown, mark))
    site.page("/shop?dir=1&sort=price", title="Shop", text=table(rows[1::-1]))
    for name in "abcd":
        site.page(f"/item/{name}", title=name)
    with site.serve() as origin:
        found = await crawl(origin, tmp_path)
    assert {name: base for name, base in found.items() if base} == {
        "/shop?sort=name": "/shop", "/shop?sort=price": "/shop", "/shop?dir=1&sort=price": "/shop?dir=1",
    }  # fmt: skip


@pytest.mark.system
async def test_pages_that_differ_only_in_pictures_are_both_listed(tmp_path: Path) -> None:
    photos = [f"/photo?id={number}" for number in range(6)]
    site = site_of("/photo", *photos)
    for number, name in enumerate(["/photo", *photos]):
        site.page(
            name, title="Photo", text=f"<img src=/{number}.jpg> Previous, next", links=[*photos[:2], "/"]
        )
    with site.serve() as origin:
        assert set((await crawl(origin, tmp_path)).values()) == {None}


@pytest.mark.system
@pytest.mark.parametrize("concurrency", [1, 16])
async def test_duplicates_do_not_depend_on_the_order_of_arrival(tmp_path: Path, concurrency: int) -> None:
    site = site_of("/pub/?C=M;O=A", "/index.html", "/pub/")
    site.answers["/index.html"] = site.answers["/"]
    targets = listing(site, "/pub/", ["b", "a"])
    with site.serve() as origin:
        found = await crawl(origin, tmp_path, concurrency=concurrency)
    assert {name for name, base in found.items() if base is None} == {"/", "/pub/"}
    assert len(found) == 2 + len(targets)


@pytest.mark.system
async def test_the_rule_can_be_switched_off(tmp_path: Path) -> None:
    site = site_of("/index.html")
    site.answers["/index.html"] = site.answers["/"]
    with site.serve() as origin:
        found = await crawl(origin, tmp_path, verdicts=Verdicts(no_rule=("duplicate",)))
    assert found == {"/": None, "/index.html": None}
