"""A published page that fails temporarily stays listed for a while; a page that is gone is removed at once."""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from crawler.app.job import open_job
from crawler.app.report import each
from crawler.cli.demo.site import CannedResponse, Site
from crawler.errors import CrawlerError, PublishRefused
from crawler.model.outcome import Failed, Kept, Listed, Moved, Outcome, Unlisted, code
from crawler.model.reasons import Cause, Why
from crawler.parse import url
from crawler.parse.url import Url
from crawler.ports import reads
from crawler.rules.record import UNCLEAR_FOR, keep_for, patience_by_code
from tests.engine.test_crawl import settings

pytestmark = pytest.mark.anyio

DAY = 86_400.0
WEEK = 7 * DAY
WHEN = datetime(2024, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("outcome", "seconds"),
    [
        *((Failed(cause), WEEK) for cause in (Cause.SERVER_ERROR, Cause.RATE_LIMITED, Cause.TIMEOUT, Cause.TRUNCATED)),
        *((Failed(cause), WEEK) for cause in (Cause.CONNECT, Cause.DNS, Cause.TLS, Cause.PROTOCOL, Cause.PARSE, Cause.WALL)),
        (Failed(Cause.INTERSTITIAL), WEEK),
        (Unlisted(Why.ROBOTS_DOWN), WEEK),
        *((Failed(cause), UNCLEAR_FOR) for cause in (Cause.FORBIDDEN, Cause.CLIENT_ERROR, Cause.STATUS)),
        *((Failed(cause), UNCLEAR_FOR) for cause in (Cause.REDIRECT, Cause.REDIRECT_LOOP, Cause.REDIRECTS)),
        *((Failed(cause), 0) for cause in (Cause.NOT_FOUND, Cause.ADDRESS, Cause.TOO_LARGE)),
        *((Unlisted(why), 0) for why in Why if why is not Why.ROBOTS_DOWN),
        (Listed(), 0),
        (Moved(Url("https://a.example/")), 0),
    ],
)  # fmt: skip
def test_how_long_a_published_page_stays(outcome: Outcome, seconds: float) -> None:
    assert keep_for(outcome, WEEK) == seconds
    assert keep_for(outcome, 3600.0) == min(seconds, 3600.0), "never longer than --keep-failing"
    assert keep_for(outcome, 0.0) == 0


def test_kept_page_stays_as_long_as_its_failure_allows() -> None:
    assert all(
        keep_for(Kept(cause), WEEK) == keep_for(Failed(cause), WEEK)
        for cause in Cause
        if cause.value != "robots-down"
    )
    by_code = patience_by_code(WEEK)
    assert by_code["unlisted:robots-down"] == ("unlisted:robots-down", "kept:robots-down", WEEK)
    assert all(one.failed.partition(":")[2] == one.kept.partition(":")[2] for one in by_code.values())
    assert all(code in one[:2] for code, one in by_code.items())


@dataclass
class Nights:
    """A site that is crawled and published every night, with a clock set by the test."""

    folder: Path
    site: Site
    chosen: dict[str, Any] = field(default_factory=dict)
    later: float = 0.0
    status: dict[str, int] = field(default_factory=dict)  # what pages answer instead of 200
    origin: str = ""

    def page(self, path: str, *links: str, **more: Any) -> None:
        self.site.page(path, links=links, **({"lastmod": WHEN} | more))
        well = self.site.answers[path]

        def answer(request: Any) -> CannedResponse:
            status = self.status.get(path, 200)
            return well(request) if status == 200 else Site.answer(status, b"ill")

        self.site.respond(path, answer)

    async def night(self, after: float = DAY, **chosen: Any) -> dict[str, str]:
        """Another crawl, `after` seconds later. Returns the outcome of each page by its path."""
        self.later += after
        given = (
            {"state": str(self.folder / "s.db"), "max_failed": 1.0, "max_shrink": 1.0} | self.chosen | chosen
        )
        async with open_job(settings(self.origin, self.folder, **given)) as job:
            await job.crawl()
            try:
                await job.publish()
            finally:
                self.entries = {
                    url.target(entry.url): entry.lastmod
                    async for entry in each(job.frontier.stream(reads.ListedEntries()))
                }
                balance = await job.frontier.read(reads.RunBalance())
                assert balance.balanced
                assert balance.listed == len(self.entries)
                self.outcomes = {}
                for path in self.site.answers:
                    record = await job.frontier.read(reads.RecordOf(Url(self.origin + path)))
                    if record and record.run == job.run.number and record.outcome:
                        self.outcomes[path] = code(record.outcome)
        return self.outcomes


@pytest.fixture
def nights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    made = Nights(tmp_path, Site())
    clock = time.time
    monkeypatch.setattr(time, "time", lambda: clock() + made.later)
    made.page("/", *(f"/{number}" for number in range(5)), "/hub")
    for number in range(5):
        made.page(f"/{number}")
    made.page("/hub", "/below")
    made.page("/below")
    with made.site.serve() as made.origin:
        yield made


@pytest.mark.system
async def test_temporarily_failing_page_stays_listed_for_a_week(nights: Nights) -> None:
    await nights.night()
    nights.status["/1"] = 500
    for _ in range(7):
        assert (await nights.night())["/1"] == "kept:server-error"
        assert nights.entries["/1"] == WHEN
    assert (await nights.night())["/1"] == "failed:server-error"
    assert "/1" not in nights.entries
    del nights.status["/1"]
    assert (await nights.night())["/1"] == "listed"


def consent(_: Any) -> CannedResponse:
    return Site.answer(200, b"<title>Before you continue</title><p>Do you agree?")


@pytest.mark.system
async def test_page_behind_an_unknown_check_is_as_it_was_for_two_days(nights: Nights) -> None:
    nights.page("/1", "/2", "/3", "/4", title="One")
    nights.page("/2", "/3", "/4", title="Two")
    await nights.night(-WEEK)
    nights.site.respond("/1", consent)
    nights.site.respond("/2", consent)
    for _ in range(2):
        outcomes = await nights.night()
        assert (outcomes["/1"], nights.entries["/1"]) == ("kept:interstitial", WHEN)
        assert outcomes["/2"] == "listed", "it had few links"
    assert (await nights.night())["/1"] == "listed"
    assert nights.entries["/1"] != WHEN, "after two days it is what it shows"


@pytest.mark.system
async def test_who_keeps_nothing_lists_what_is_shown(nights: Nights) -> None:
    nights.page("/1", "/2", "/3", "/4", title="One")
    await nights.night(-WEEK)
    nights.site.respond("/1", consent)
    assert (await nights.night(keep_failing=DAY))["/1"] == "listed"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "cause"),
    [(401, "forbidden"), (403, "forbidden"), (405, "client-error"), (202, "status"), (302, "redirect")],
)
async def test_what_says_nothing_of_a_page_keeps_it_for_two_days(
    nights: Nights, status: int, cause: str
) -> None:
    """A login, or a firewall."""
    await nights.night()
    nights.status["/1"] = status
    seen = [(await nights.night(DAY * 0.9))["/1"] for _ in range(4)]
    assert seen == [f"kept:{cause}"] * 3 + [f"failed:{cause}"]


@pytest.mark.slow
@pytest.mark.parametrize("status", [404, 410])
async def test_removed_page_is_unlisted_at_once_and_stays_so(nights: Nights, status: int) -> None:
    await nights.night()
    nights.status["/1"] = 500
    assert (await nights.night())["/1"] == "kept:server-error"
    nights.status["/1"] = status
    assert (await nights.night())["/1"] == "failed:not-found"
    nights.status["/1"] = 500
    assert (await nights.night())["/1"] == "failed:server-error", "it is in no publication any more"


@pytest.mark.system
async def test_only_published_pages_are_kept(nights: Nights) -> None:
    nights.status["/1"] = 500
    assert (await nights.night())["/1"] == "failed:server-error"
    assert (await nights.night())["/1"] == "failed:server-error"


@pytest.mark.system
async def test_pages_of_a_refused_run_were_not_published(nights: Nights) -> None:
    nights.status["/1"] = 404
    await nights.night()
    nights.status["/1"] = 200
    with pytest.raises(PublishRefused):
        await nights.night(min_urls=100)
    assert nights.outcomes["/1"] == "listed"
    nights.status["/1"] = 500
    assert (await nights.night())["/1"] == "failed:server-error"


@pytest.mark.slow
async def test_the_time_counts_through_refused_and_dry_runs(nights: Nights) -> None:
    await nights.night()
    nights.status["/1"] = 503
    assert (await nights.night(dry_run=True))["/1"] == "kept:server-error"
    await nights.night(DAY / 4)
    with pytest.raises(PublishRefused):
        await nights.night(DAY / 4, min_urls=100)
    for _ in range(4):
        assert (await nights.night(DAY / 4))["/1"] == "kept:server-error"
    assert (await nights.night(5 * DAY))["/1"] == "kept:server-error"
    assert (await nights.night(DAY))["/1"] == "failed:server-error"


@pytest.mark.slow
async def test_a_successful_response_resets_the_time(nights: Nights) -> None:
    await nights.night()
    for status in (500, 200, 500):
        nights.status["/1"] = status
        outcome = (await nights.night(4 * DAY))["/1"]
        assert outcome == ("listed" if status == 200 else "kept:server-error")
    assert (await nights.night(6 * DAY))["/1"] == "kept:server-error"


@pytest.mark.system
async def test_the_time_counts_through_partial_runs(nights: Nights) -> None:
    await nights.night()
    nights.status["/1"] = 500
    for _ in range(2):
        await nights.night(DAY, max_pages=4)
    for _ in range(5):
        await nights.night(DAY)
        assert nights.outcomes["/1"] == "kept:server-error"
    assert (await nights.night(2 * DAY))["/1"] == "failed:server-error"


@pytest.mark.system
async def test_keep_failing_can_be_shortened_and_switched_off(nights: Nights) -> None:
    await nights.night()
    nights.status["/1"] = nights.status["/hub"] = 500
    nights.chosen["keep_failing"] = 2 * DAY
    assert (await nights.night())["/1"] == "kept:server-error"
    nights.chosen["keep_failing"] = 0.0
    outcomes = await nights.night()
    assert (outcomes["/1"], outcomes["/hub"]) == ("failed:server-error", "failed:server-error")
    assert "/below" not in outcomes, "no page that answered links to it"


@pytest.mark.slow
@pytest.mark.parametrize("noindex", [False, True])
async def test_pages_linked_only_by_failing_pages_are_still_fetched(nights: Nights, noindex: bool) -> None:
    """A failing page keeps its links, whether it is listed or not, also on the following nights."""
    nights.page("/hub", "/below", noindex=noindex)
    await nights.night()
    nights.status["/hub"] = 500
    for _ in range(3):
        outcomes = await nights.night()
        assert outcomes["/hub"] == ("failed:server-error" if noindex else "kept:server-error")
        assert outcomes["/below"] == "listed"
    for _ in range(5):
        await nights.night()
    outcomes = await nights.night()
    assert (outcomes["/hub"], outcomes.get("/below")) == ("failed:server-error", None), "a week is over"


@pytest.mark.slow
@pytest.mark.parametrize("error", [30 * DAY, -30 * DAY])
async def test_a_wrong_clock_of_one_night_ends_no_patience(nights: Nights, error: float) -> None:
    """Neither with a page nor with a sitemap, whose pages nothing else names."""
    nights.page("/orphan")
    nights.site.robots("Sitemap: {origin}/map.xml")
    nights.site.sitemap("/map.xml", ["/orphan"])
    good, is_down = nights.site.answers["/map.xml"], False
    nights.site.respond("/map.xml", lambda request: Site.answer(503) if is_down else good(request))
    for _ in range(3):
        await nights.night()
    nights.status["/1"], is_down = 500, True
    for after in (DAY, DAY + error, DAY - error, DAY, DAY):
        assert (await nights.night(after))["/1"] == "kept:server-error"
        assert "/orphan" in nights.entries


@pytest.mark.system
async def test_the_current_scope_applies_to_a_failing_page(nights: Nights) -> None:
    await nights.night()
    nights.status["/1"] = nights.status["/2"] = 500
    outcomes = await nights.night(no_list=("/1",), exclude=("/3",))
    assert (outcomes["/1"], outcomes["/2"], outcomes["/3"]) == (
        "failed:server-error",
        "kept:server-error",
        "unlisted:excluded",
    )


@pytest.mark.system
async def test_a_robots_rule_takes_a_failing_page_out(nights: Nights) -> None:
    await nights.night()
    nights.status["/1"] = 500
    nights.site.robots("User-agent: *\nDisallow: /1")
    assert (await nights.night())["/1"] == "unlisted:robots"


@pytest.mark.slow
async def test_pages_of_a_host_whose_robots_txt_is_down_are_kept(nights: Nights) -> None:
    other, up = Site(), True
    other.respond("/robots.txt", lambda _: other.answer(404 if up else 503))
    other.page("/a", links=["/b"])
    other.page("/b")
    with other.serve("127.0.0.2") as there:
        nights.page("/", "/hub", f"{there}/a")
        nights.chosen |= {"allow_host": (there.partition("//")[2],), "allow_address": ("127.0.0.2/32",)}
        await nights.night()
        up, asked = False, len(other.log)
        for _ in range(7):
            await nights.night()
            assert set(nights.entries) == {"/", "/hub", "/below", "/a", "/b"}
        assert {one.target for one in other.log[asked:]} == {"/robots.txt"}
        await nights.night()
        assert set(nights.entries) == {"/", "/hub", "/below"}


@pytest.mark.system
async def test_a_site_that_is_down_completely_changes_nothing(nights: Nights) -> None:
    await nights.night()
    before = (nights.folder / "out/sitemap.xml.gz").read_bytes()
    nights.status |= dict.fromkeys(nights.site.answers, 500)
    with pytest.raises(CrawlerError):
        await nights.night()
    assert (nights.folder / "out/sitemap.xml.gz").read_bytes() == before
    nights.status.clear()
    assert set((await nights.night()).values()) == {"listed"}


@pytest.mark.system
async def test_unmodified_page_is_kept_and_its_next_response_is_parsed(nights: Nights) -> None:
    await nights.night()
    answer, up = nights.site.answers["/1"], False
    nights.site.respond("/1", lambda request: answer(request) if up else request.connection.close())
    assert (await nights.night())["/1"].startswith("kept:")
    up = True
    assert (await nights.night())["/1"] == "listed"
    assert nights.entries["/1"] == WHEN
    assert [one.status for one in nights.site.log if one.target == "/1"][-1] == 200


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
async def test_kept_pages_do_not_depend_on_concurrency(nights: Nights, processes: int) -> None:
    await nights.night()
    nights.status |= {"/1": 500, "/hub": 429, "/below": 403}
    for concurrency in (1, 4, 16):
        outcomes = await nights.night(60.0, concurrency=max(2, concurrency), processes=processes)
        assert (outcomes["/1"], outcomes["/hub"], outcomes["/below"]) == (
            "kept:server-error", "kept:rate-limited", "kept:forbidden",
        )  # fmt: skip


@pytest.mark.slow
async def test_pages_only_in_a_failing_sitemap_are_still_fetched(nights: Nights) -> None:
    """The index fails one night, a sitemap in it the next: for a week, but not once it is gone."""
    site, down = nights.site, dict[str, int]()
    nights.page("/orphan")
    nights.page("/other")
    site.robots("Sitemap: {origin}/index.xml\nSitemap: {origin}/plain.xml")
    site.raw(
        "/index.xml", body=b"<sitemapindex><sitemap><loc>{origin}/map.xml</loc></sitemap></sitemapindex>"
    )
    site.sitemap("/map.xml", ["/orphan"])
    site.sitemap("/plain.xml", ["/other"])

    def failing(path: str, good: Any) -> Any:
        return lambda request: Site.answer(down[path]) if path in down else good(request)

    for path in ("/index.xml", "/map.xml", "/plain.xml"):
        site.respond(path, failing(path, site.answers[path]))
    await nights.night()
    assert {"/orphan", "/other"} <= set(nights.entries)
    for ill in (
        {"/index.xml": 503},
        {"/map.xml": 500},
        {"/index.xml": 500, "/map.xml": 429, "/plain.xml": 503},
    ):
        down.clear()
        down |= ill
        await nights.night()
        assert {"/orphan", "/other"} <= set(nights.entries), ill
    for _ in range(6):
        await nights.night()
    assert "/other" in nights.entries
    await nights.night()
    assert not {"/orphan", "/other"} & set(nights.entries), "a week is over"
    down.clear()
    await nights.night()
    assert {"/orphan", "/other"} <= set(nights.entries)
    down["/plain.xml"] = 404
    await nights.night()
    assert "/other" not in nights.entries
