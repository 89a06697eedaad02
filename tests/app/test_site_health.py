"""What is asked once more before a publication, through whole crawls of a site on loopback."""

import gzip
import itertools
import json
import re
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from crawler.app import site_health
from crawler.app.finding_rows import finding_rows
from crawler.app.job import open_job
from crawler.app.report import read_known
from crawler.cli.demo.site import Site
from crawler.errors import PublishRefused
from crawler.model.note import VANISHED
from crawler.report.catalogue import Code
from crawler.rules.failures import COMPARED
from tests.engine.test_crawl import settings

pytestmark = pytest.mark.anyio


def website(pages: int, prefix: str = "/", linked: int | None = None) -> Site:
    site = Site()
    site.page("/", links=[f"{prefix}{n}" for n in range(pages)][:linked])
    for number in range(pages):
        site.page(f"{prefix}{number}")
    return site


async def night(origin: str, folder: Path, **chosen: Any) -> dict[str, Any]:
    """One run; its changes, and what it says of pages that have vanished."""
    async with open_job(settings(origin, folder, **{"state": str(folder / "s.db")} | chosen)) as job:
        await job.crawl()
        done = await job.publish()
        vanished = await job.frontier.recall(VANISHED)
    return {
        "changes": (done.added, done.removed, done.changed),
        "count": vanished.count,
        "asked": {page.url.removeprefix(origin): page.outcome for page in vanished.asked},
    }


def listed(folder: Path) -> list[str]:
    text = gzip.decompress((folder / "out/sitemap.xml.gz").read_bytes()).decode()
    return re.findall("<loc>(.*?)</loc>", text)


async def test_pages_that_no_link_leads_to_are_asked_once_more(tmp_path: Path) -> None:
    site = website(20)
    with site.serve() as origin:
        first = await night(origin, tmp_path)
        assert (first["changes"], first["count"]) == ((21, 0, 0), 0)
        site.page("/", links=[f"/{n}" for n in range(17)])
        site.page("/18", status=404)
        site.page("/19", noindex=True)
        second = await night(origin, tmp_path)
        assert second["changes"][:2] == (0, 3)
        assert second["asked"] == {"/17": "listed", "/18": "failed:not-found", "/19": "unlisted:noindex"}
        assert len(listed(tmp_path)) == 18
        third = await night(origin, tmp_path)
        assert (third["changes"], third["count"]) == ((0, 0, 0), 0)


async def test_every_vanished_page_has_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were not asked, too: they are too many, or on a host to which no link leads any more."""
    monkeypatch.setattr(site_health, "MOST_VANISHED", 2)
    monkeypatch.setattr(site_health, "MOST_NAMED", 7)
    with (other := website(2)).serve() as away, (site := website(8)).serve() as origin:
        site.page("/", links=[*(f"/{n}" for n in range(8)), f"{away}/"])
        chosen: dict[str, Any] = {
            "allow_host": (away.removeprefix("http://"),),
            "max_removed": 1.0,
            "max_shrink": 1.0,
        }
        await night(origin, tmp_path, **chosen)
        site.page("/", links=["/0", "/1", "/2"])
        requests = len(other.log)
        async with open_job(settings(origin, tmp_path, state=str(tmp_path / "s.db"), **chosen)) as job:
            await job.crawl()
            await job.publish()
            known = await read_known(job.frontier, job.settings)
            rows = [row.item async for row in finding_rows(job.frontier, known, [Code.VANISHED])]
        assert (known.vanished.count, len(other.log)) == (8, requests)
    details = {item.url: item.detail for item in rows}
    assert len(details) == len(rows) == 7
    assert [*details.values()].count("not asked; 1 more is not shown") == 1
    assert set(details) <= {f"{origin}/{n}" for n in range(3, 8)} | {f"{away}/", f"{away}/0", f"{away}/1"}


async def test_a_menu_that_lost_its_links_is_named_by_the_refusal(tmp_path: Path) -> None:
    site = website(20)
    with site.serve() as origin:
        await night(origin, tmp_path)
        site.page("/", links=["/0", "/1"])
        with pytest.raises(
            PublishRefused, match=r"no link leads to 18 of them any more; 18 were asked, and 18 still"
        ):
            await night(origin, tmp_path)
        assert len(listed(tmp_path)) == 21


@pytest.mark.slow
async def test_pages_that_came_through_one_page_may_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stranger posts links to half as many pages as the site has, and removes them after two nights."""
    clock, later = time.time, itertools.count(-20 * 86_400, 86_400)
    site, now = website(20), [0]
    monkeypatch.setattr(time, "time", lambda: clock() + now[0])
    site.page("/", links=["/guests", *(f"/{n}" for n in range(20))])
    posted = [f"/find?word={chr(97 + n)}" for n in range(11)]
    for target in posted:
        site.page(target, text=f"All of {target}")
    with site.serve() as origin:
        for links in (*[[]] * COMPARED, posted, posted, [], []):
            site.page("/guests", links=links)
            now[0] = next(later)
            await night(origin, tmp_path)
            assert len(listed(tmp_path)) == 22 + len(links)
        site.page("/", links=["/guests"])
        with pytest.raises(PublishRefused, match="URLs listed: 2, where 22 are published"):
            await night(origin, tmp_path)


async def test_a_site_that_replaces_its_pages_is_refused(tmp_path: Path) -> None:
    with (site := website(40)).serve() as origin:
        await night(origin, tmp_path)
        site.page("/", links=[f"/new/{n}" for n in range(40)])
        for number in range(40):
            site.page(f"/new/{number}")
        with pytest.raises(PublishRefused, match="Of 41 published URLs, 40 would no longer be listed"):
            await night(origin, tmp_path)
        # The state may be new: the files are compared.
        with pytest.raises(PublishRefused, match=r"Settings\.guard\.max_removed 100% publishes it this once"):
            await night(origin, tmp_path, state=":memory:")
        done = await night(origin, tmp_path, max_removed=1.0)
        assert done["changes"][:2] == (40, 40)
        assert (await night(origin, tmp_path))["changes"] == (0, 0, 0)


@pytest.mark.parametrize("is_linked", [False, True])
@pytest.mark.parametrize(
    ("to", "is_refused"),
    [("/new/{}", False), ("/new/0", True), ("/login?next=/{}", True), ("/gone/{}", True)],
)
async def test_pages_that_redirect_to_their_own_have_moved(
    tmp_path: Path, to: str, *, is_linked: bool, is_refused: bool
) -> None:
    with (site := website(40)).serve() as origin:
        await night(origin, tmp_path)
        site.page("/more", links=["/", *(f"/new/{n}" for n in range(40))])
        site.page("/", links=["/more", *(f"/{n}" if is_linked else f"/new/{n}" for n in range(40))])
        for number in range(40):
            site.page(f"/new/{number}")
            site.page(f"/login?next=/{number}")
            site.redirect(f"/{number}", to.format(number))
        words = "Of 41 published URLs, 39" if to == "/new/0" else "Of 41 published URLs, 40"
        with pytest.raises(PublishRefused, match=words) if is_refused else nullcontext():
            assert (await night(origin, tmp_path))["changes"][:2] == (41, 40)
            assert (await night(origin, tmp_path))["changes"] == (0, 0, 0)


async def test_a_small_site_may_replace_a_page(tmp_path: Path) -> None:
    with (site := website(1)).serve() as origin:
        await night(origin, tmp_path)
        site.page("/", links=["/other"])
        site.page("/other")
        assert (await night(origin, tmp_path))["changes"][:2] == (1, 1)


async def test_another_site_or_folder_is_not_replaced(tmp_path: Path) -> None:
    both = website(20, "/a/")
    both.page("/a/", links=[f"/a/{n}" for n in range(20)])
    both.page("/b/", links=[f"/b/{n}" for n in range(20)])
    for number in range(20):
        both.page(f"/b/{number}")
    with both.serve() as origin, website(20).serve() as other:
        below: dict[str, Any] = {"scope": "path", "state": ":memory:"}
        await night(origin, tmp_path, start=(f"{origin}/a/",), **below)
        whole: dict[str, Any] = {"start": (f"{origin}/",), "state": ":memory:"}
        another: dict[str, Any] = {"start": (f"{other}/",), "state": ":memory:"}
        for chosen in ({"start": (f"{origin}/b/",), **below}, whole, another):
            for force in (False, True):
                with pytest.raises(PublishRefused, match="The published sitemap is of") as refused:
                    await night(origin, tmp_path, force=force, **chosen)
                assert "force" not in str(refused.value)
        assert len(listed(tmp_path)) == 21
        known = json.loads((tmp_path / "out/manifest.json").read_text())["site"]
        assert known["sites"] == [origin.removeprefix("http://")]


async def test_changed_settings_are_named_by_the_refusal(tmp_path: Path) -> None:
    with website(20).serve() as origin:
        await night(origin, tmp_path)
        await night(origin, tmp_path, user_agent="another/1.0", rate=500.0, concurrency=2)
        with pytest.raises(
            PublishRefused,
            match=r"Since the last publication, Settings\.scope\.exclude changed\. If the site",
        ):
            await night(origin, tmp_path, exclude=("/1*",), max_verdict_change=1.0)
        await night(origin, tmp_path, exclude=("/1*",), max_shrink=1.0, max_removed=1.0)
        await night(origin, tmp_path, exclude=("/1*",))


async def test_a_killed_publication_is_checked_again(tmp_path: Path) -> None:
    """A run that was completed, and killed before it was published, is judged as if it had not been killed."""
    with (site := website(20)).serve() as origin:
        await night(origin, tmp_path)
        site.page("/", links=["/0"])
        chosen = settings(origin, tmp_path, state=str(tmp_path / "s.db"))
        async with open_job(chosen) as job:
            await job.crawl()
        said = []
        for _ in range(2):
            async with open_job(chosen) as job:
                await job.crawl()
                with pytest.raises(PublishRefused) as refused:
                    await job.publish()
                said.append(str(refused.value))
        assert said[0] == said[1]
