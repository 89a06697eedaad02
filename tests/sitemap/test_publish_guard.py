"""The publish guard: a bad crawl does not replace a good sitemap, and an ordinary one is not held up."""

import json
import random
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from crawler.app.job import open_job
from crawler.cli.demo.site import Site
from crawler.errors import PublishRefused
from crawler.model.reasons import Why
from crawler.model.survey import AlikePages, Failures, SiteHealth, VanishedPages
from crawler.rules.failures import FailedUrl, is_ill, weigh
from crawler.settings.sections import Guard
from crawler.sitemap.publish.difference import Difference
from crawler.sitemap.publish.guard import CrawlResult, EarlierPublications, check
from crawler.sitemap.publish.identity import SitemapIdentity
from tests.engine.test_crawl import published, settings
from tests.rules.test_keep_failing import WHEN, Nights
from tests.rules.test_keep_failing import nights as nights  # noqa: PLC0414 - a fixture
from tests.sitemap.test_publish import put

pytestmark = [pytest.mark.anyio, pytest.mark.system]


WELL = SiteHealth(5, 5)
ILL = SiteHealth(5, 1, ["https://example.com/1 (answered 503)"] * 4)


def refusal(
    outcomes: dict[str, int],
    published: dict[str, int] | None = None,
    before: EarlierPublications = EarlierPublications(),  # noqa: B008 - frozen
    health: SiteHealth | None = ILL,
    **chosen: Any,
) -> str:
    """The refusal of the guard; empty if it allows publication."""
    urls = sum(count for outcome, count in outcomes.items() if outcome.startswith(("listed", "kept")))
    failed = {code: count for code, count in outcomes.items() if code.startswith("failed:")}
    failed.pop("failed:not-found", None)
    result = CrawlResult(True, outcomes, published or {}, failures=Failures(failed, failed), health=health)
    try:
        check(Guard(**chosen), urls, before, result)
    except PublishRefused as refused:
        return str(refused)
    return ""


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        ({"listed": 30, "failed:forbidden": 271}, "Of 301 fetched pages, 271 failed (90%; 271 failed:forbidden"),
        ({"listed": 100, "failed:server-error": 200}, "Of 300 fetched pages, 200 failed (67%"),
        ({"listed": 79, "failed:timeout": 11, "failed:rate-limited": 10}, "21 failed (21%; 11 failed:timeout"),
        ({"listed": 80, "failed:timeout": 20}, ""),
        ({"listed": 70, "failed:client-error": 30}, "30 failed:client-error"),
        ({"listed": 70, "failed:redirect-loop": 30}, "30 failed:redirect-loop"),
        ({"listed": 75, "failed:not-found": 25}, ""),
        ({"listed": 51, "failed:not-found": 49, "failed:server-error": 10}, ""),
        ({"listed": 30, "failed:not-found": 271}, ""),
        ({"listed": 2, "failed:server-error": 4}, ""),
        ({"listed": 60, "failed:dns": 20, "unlisted:noindex": 19, "moved": 1}, ""),
        ({"listed": 60, "failed:dns": 20, "unlisted:offsite": 900, "unlisted:robots": 900}, "Of 80 fetched pages"),
        ({"listed": 10, "kept:server-error": 90}, ""),
    ],
)  # fmt: skip
def test_many_failures_are_refused_if_the_site_is_ill(outcomes: dict[str, int], said: str) -> None:
    assert said in refusal(outcomes)
    assert bool(said) == bool(refusal(outcomes)) == bool(refusal(outcomes, health=None))
    assert not refusal(outcomes, health=WELL)
    assert not refusal(outcomes, force=True)
    assert not refusal(outcomes, max_failed=1.0)


def test_the_refusal_says_which_pages_do_not_answer() -> None:
    said = refusal({"listed": 30, "failed:forbidden": 271})
    assert "of 5 pages that had answered, 4 do not any more: https://example.com/1 (answered 503)" in said
    assert "Crawl again when it works." in said
    assert "--force" not in said


@pytest.mark.parametrize(
    ("asked", "answered", "passing", "ill"),
    [
        (5, 5, 1_000, False), (5, 4, 1_000, False), (5, 3, 5, True), (5, 0, 5, True), (0, 0, 5, True),
        (4, 4, 16, False), (4, 4, 17, True), (1, 1, 4, False), (1, 1, 5, True), (3, 2, 5, True),
    ],
)  # fmt: skip
def test_few_pages_vouch_for_few_failures(asked: int, answered: int, passing: int, ill: bool) -> None:
    weights = {"failed:server-error": passing}
    assert is_ill(SiteHealth(asked, answered), Failures(weights, weights)) is ill
    places = {"failed:forbidden": 1_000}
    assert not is_ill(SiteHealth(1, 1), Failures(places, places))


URLS = st.builds("https://example.com/{}/{}".format, st.sampled_from("abc"), st.integers(0, 99))
FAILED = st.builds(
    FailedUrl,
    st.sampled_from(["failed:forbidden", "failed:not-found", "failed:server-error"]),
    URLS,
    st.one_of(st.none(), st.integers(1, 3)),
    st.booleans(),
    st.booleans(),
)


@given(st.lists(FAILED), st.randoms())
def test_failures_weigh_the_same_in_any_order(failed: list[FailedUrl], order: random.Random) -> None:
    shuffled = failed.copy()
    order.shuffle(shuffled)
    assert weigh(failed) == weigh(shuffled)
    found = weigh(failed)
    assert sum(found.weights.values()) <= sum(found.counts.values()) <= len(failed)


@given(
    st.integers(1, 500),
    st.sampled_from(["failed:forbidden", "failed:server-error"]),
    st.sampled_from(["", "/", "?a=/b"]),
)
def test_links_posted_on_one_page_weigh_one(count: int, outcome: str, end: str) -> None:
    posted = [FailedUrl(outcome, f"https://example.com/x/{n}{end}", 7, False, False) for n in range(count)]
    assert weigh(posted).weights == {outcome: 1}
    assert weigh([replace(one, is_published=True) for one in posted]).weights == {outcome: count}
    assert weigh([replace(one, is_seed=True) for one in posted]).weights == {outcome: count}
    assert not weigh([replace(one, outcome="failed:not-found") for one in posted]).counts


@pytest.mark.parametrize(("named", "codes"), [((), {"failed:not-found"}), (("example.com/old",), set())])
def test_examples_of_a_refusal_are_named_once(named: tuple[str, ...], codes: set[str]) -> None:
    crawled = CrawlResult(True, {"listed": 40}, {"failed:not-found": 60, "listed": 40})
    before = EarlierPublications(100, difference=Difference(100, 60, 60, 0, named))
    with pytest.raises(PublishRefused, match=r"URLs listed: 40.* Of 100 published URLs, 60") as refused:
        check(Guard(), 40, before, crawled)
    assert refused.value.codes == codes


@pytest.mark.parametrize(("urls", "words"), [(0, "nothing is published"), (9, "the old files are kept")])
def test_a_refusal_says_what_is_there_now(urls: int, words: str) -> None:
    assert words in refusal({"failed:not-found": 1}, before=EarlierPublications(urls))


def test_pages_that_came_and_went_are_not_compared() -> None:
    """Each limit is tried with as many as it allows, and one more."""

    def publish(lasting: int, passing: int, left: int) -> None:
        before = lasting + passing
        gone = before - left
        found = EarlierPublications(before, (before,), difference=Difference(before, 0, gone, 0))
        vanished = VanishedPages(gone, passing=passing)
        check(Guard(max_removed=0.2), left, found, CrawlResult(True, {"listed": left}, {}, vanished=vanished))

    publish(100, 0, 80)
    publish(100, 900, 80)
    for passing in (0, 900):
        with pytest.raises(PublishRefused, match="URLs listed: 79"):
            publish(100, passing, 79)


def test_a_wide_removal_is_refused_whatever_takes_its_place() -> None:
    def said(before: int, removed: int, **chosen: Any) -> str:
        found = Difference(before, removed, removed, 0, ("example.com/old",))
        return refusal({"listed": 100}, before=EarlierPublications(100, difference=found), **chosen)

    assert "Of 41 published URLs, 40 would no longer be listed (98%, such as example.com/old)" in said(41, 40)
    assert "--max-removed is 50%; the old files are kept." in said(41, 40)
    assert "--max-removed 100% publishes it this once" in said(41, 40)
    assert "--force" not in said(41, 40)
    refused = [(100, 51), (10, 6), (9, 5), (4, 4), (2, 2)]
    passing = [(100, 50), (10, 5), (8, 4), (5, 4), (2, 1), (1, 1), (0, 0)]
    assert all(said(*counts) for counts in refused)
    assert not any(said(*counts) for counts in passing)
    assert not said(41, 40, max_removed=1.0)
    assert [bool(said(100, removed, max_removed=0.0)) for removed in (0, 4, 5)] == [False, False, True]
    assert [bool(said(pages, pages, max_removed=0.0)) for pages in (1, 2, 3)] == [False, True, True]
    assert not said(41, 40, force=True)


@pytest.mark.parametrize(
    ("visited", "removed", "is_refused"), [(20, 11, True), (20, 10, False), (4, 4, False), (5, 5, True)]
)
def test_removal_of_a_partial_run_is_a_share_of_what_it_visited(
    visited: int, removed: int, *, is_refused: bool
) -> None:
    published = {"listed": visited - removed, "failed:not-found": removed}
    before = EarlierPublications(1_000, difference=Difference(1_000, 0, removed, 0))
    crawled = CrawlResult(True, {"listed": visited}, published, is_partial=True)
    words = f"Of {visited} published URLs that were visited, {removed} would"
    with pytest.raises(PublishRefused, match=words) if is_refused else nullcontext():
        check(Guard(), 1_000 - removed, before, crawled)


@given(st.integers(10, 2_000), st.integers(0, 99))
def test_exactly_the_limit_is_allowed_and_one_more_is_not(total: int, percent: int) -> None:
    """Also where the share has no exact binary fraction, such as 29% and 58%."""
    most, share = total * percent // 100, percent / 100
    for gone, is_refused in ((most, False), (most + 1, True)):
        left, is_counted = total - gone, gone >= 5
        removal = EarlierPublications(total, difference=Difference(total, gone, gone))
        assert bool(refusal({"listed": total}, before=removal, max_removed=share)) == (
            is_refused and is_counted
        )
        if left:
            shrunk = EarlierPublications(total)
            assert bool(refusal({"listed": left}, before=shrunk, max_shrink=share)) == is_refused
        verdicts = {"listed": left, "unlisted:noindex": gone}
        assert bool(refusal({"listed": total}, verdicts, max_verdict_change=share)) == is_refused


def test_a_refusal_names_its_flags_and_changed_settings() -> None:
    old, new = (
        SitemapIdentity(["a.com"], settings={"--exclude": "1"}),
        SitemapIdentity(["a.com"], settings={"--include": "2"}),
    )
    before = EarlierPublications(100, identity=old, difference=Difference(100, 0, 90))
    with pytest.raises(PublishRefused) as refused:
        check(Guard(), 10, before, CrawlResult(True, {"listed": 10}, {}, identity=new))
    said = str(refused.value)
    assert "Since the last publication, --exclude and --include changed." in said
    assert "--max-shrink is 20%. Of 100 published URLs, 90 would no longer be listed" in said
    assert "--max-shrink 100% --max-removed 100% publishes it this once." in said


@pytest.mark.parametrize(
    ("old", "new", "other"),
    [
        (SitemapIdentity(["a.com"]), SitemapIdentity(["a.com"]), ""),
        (SitemapIdentity(["a.com"]), SitemapIdentity(["b.com"]), "is of a.com, and this crawl is of b.com"),
        (SitemapIdentity(["a.com", "b.com"]), SitemapIdentity(["b.com", "c.com"]), ""),
        (SitemapIdentity(["a.com:8080"]), SitemapIdentity(["a.com:8081"]), "is of a.com:8080"),
        (SitemapIdentity(["a.com"], "path", ["a.com/a/"]), SitemapIdentity(["a.com"], "path", ["a.com/a/"]), ""),
        (SitemapIdentity(["a.com"], "path", ["a.com/a/"]), SitemapIdentity(["a.com"], "path", ["a.com/b/"]), "only of a.com/b/"),
        (SitemapIdentity(["a.com"], "path", ["a.com/a/b/"]), SitemapIdentity(["a.com"], "path", ["a.com/a/"]), ""),
        (SitemapIdentity(["a.com"], "path", ["a.com/a/"]), SitemapIdentity(["a.com"]), "is of a.com/a/ (--scope path), and this crawl is of a.com (--scope host)"),
        (SitemapIdentity(["a.com"]), SitemapIdentity(["a.com"], "path", ["a.com/a/"]), "this crawl is of a.com/a/ (--scope path)"),
        (SitemapIdentity(["a.com"]), SitemapIdentity(["a.com"], "subdomains"), "(--scope subdomains)"),
    ],
)  # fmt: skip
def test_another_site_is_not_replaced_even_with_force(
    old: SitemapIdentity, new: SitemapIdentity, other: str
) -> None:
    assert other in old.differs_from(new)
    assert bool(other) == bool(old.differs_from(new))
    facts = json.loads(json.dumps(asdict(old)))
    known = SitemapIdentity.read(facts)
    assert known
    assert asdict(known) == facts
    with pytest.raises(PublishRefused) if other else nullcontext() as refused:
        check(
            Guard(force=True),
            10,
            EarlierPublications(10, identity=old),
            CrawlResult(True, {"listed": 10}, {}, identity=new),
        )
    assert not other or "--force" not in str(refused and refused.value)


@pytest.mark.parametrize(
    "damage", [None, 3, [], {}, {"sites": "a"}, {"sites": [1], "folders": [], "settings": {}}]
)
def test_a_damaged_identity_is_none(damage: object) -> None:
    assert SitemapIdentity.read(damage) is None


@pytest.mark.parametrize("verdict", [Why.NOINDEX, Why.CANONICAL, Why.EMPTY, Why.SOFT_404, Why.TYPE])
def test_mass_change_of_verdicts_is_refused_at_equal_number(verdict: Why) -> None:
    changed = {"listed": 79, f"unlisted:{verdict.value}": 21}
    said = refusal({"listed": 200}, changed, EarlierPublications(100))
    assert (
        f"Of 100 published pages, 21 would no longer be listed (21%; 21 unlisted:{verdict.value}: {verdict.says})"
        in said
    )
    assert "--max-verdict-change is 20%" in said
    assert not refusal(
        {"listed": 200}, {"listed": 80, f"unlisted:{verdict.value}": 20}, EarlierPublications(100)
    )
    assert not refusal({"listed": 200}, changed, EarlierPublications(100), max_verdict_change=0.3)


def test_changed_verdicts_are_summed() -> None:
    said = refusal(
        {"listed": 99},
        {"listed": 70, "unlisted:noindex": 16, "unlisted:canonical": 14},
        EarlierPublications(100),
    )
    assert "30 would no longer be listed (30%; 16 unlisted:noindex" in said


def test_pages_that_turned_alike_count_as_changed_verdicts() -> None:
    def said(alike: int, **codes: int) -> str:
        published = {"listed": 100 - sum(codes.values()), **codes}
        crawled = CrawlResult(
            True, {"listed": 100}, published, alike=AlikePages(alike, "https://a.example/x")
        )
        try:
            check(Guard(), 100, EarlierPublications(100), crawled)
        except PublishRefused:
            return "refused"
        return ""

    assert (said(20), said(21)) == ("", "refused")
    assert said(11, **{"unlisted:noindex": 10}) == "refused"
    crawled = CrawlResult(True, {}, {"listed": 9}, alike=AlikePages(6, "https://a.example/x"))
    words = "Of 9 published pages, 6 have changed .67%; 6 say the same now, unlike before, such as https://a"
    with pytest.raises(PublishRefused, match=words):
        check(Guard(), 9, EarlierPublications(9), crawled)


def test_refusal_of_empty_sitemap_tells_what_happened_to_pages() -> None:
    said = refusal({"unlisted:noindex": 50}, {"unlisted:noindex": 50}, EarlierPublications(50))
    assert said.startswith(
        "No page is listed, and an empty sitemap is never published (of the published pages, 50 unlisted:noindex"
    )


def test_shrinking_is_measured_against_largest_publication() -> None:
    assert not refusal({"listed": 85}, before=EarlierPublications(100, (100,)))
    said = refusal({"listed": 72}, before=EarlierPublications(85, (100, 85)))
    assert (
        "URLs listed: 72, where 85 are published and 100 were in the largest of the last 7 publications: 28% fewer"
        in said
    )


async def test_the_history_of_publications_is_limited(tmp_path: Path) -> None:
    await put(tmp_path, 100)
    for count in (90, 82, 83, 82, 83, 82):
        await put(tmp_path, count)
    with pytest.raises(
        PublishRefused, match=r"70, where 82 are published and 100 were in the largest of the last 7"
    ):
        await put(tmp_path, 70)
    await put(tmp_path, 83)
    await put(tmp_path, 82)
    assert json.loads((tmp_path / "manifest.json").read_text())["publications"] == [
        82,
        83,
        82,
        83,
        82,
        83,
        82,
    ]
    await put(tmp_path, 70)


async def test_after_force_the_history_starts_again(tmp_path: Path) -> None:
    await put(tmp_path, 100)
    await put(tmp_path, 50, force=True)
    await put(tmp_path, 45)


async def test_a_dry_run_does_not_count_as_a_publication(tmp_path: Path) -> None:
    await put(tmp_path, 10)
    await put(tmp_path, 1_000, dry_run=True)
    await put(tmp_path, 9)


@pytest.mark.parametrize("value", [None, 3, "x", [None, "9", -5, True, 1.5], {"a": 1}])
async def test_a_forged_history_is_ignored(tmp_path: Path, value: object) -> None:
    await put(tmp_path, 10)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps(manifest | {"publications": value}))
    await put(tmp_path, 9)


URLSET = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{}</urlset>'
INDEX = '<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{}</sitemapindex>'


def urlset(count: int, start: int = 0) -> str:
    return URLSET.format(
        "".join(f"<url><loc>https://example.com/{n}</loc></url>" for n in range(start, start + count))
    )


def index(*locs: str) -> str:
    return INDEX.format("".join(f"<sitemap><loc>{loc}</loc></sitemap>" for loc in locs))


@pytest.mark.parametrize(
    "files",
    [
        {"sitemap.xml": urlset(100)},
        {"sitemap.xml": index("https://example.com/a.xml", "https://example.com/b.xml"), "a.xml": urlset(50), "b.xml": urlset(50, 50)},
        {"sitemap.xml": index("https://example.com/maps/a.xml"), "maps/a.xml": urlset(100)},
        {"sitemap.xml": index("https://example.com/static/maps/a.xml?v=2"), "maps/a.xml": urlset(100)},
        {"sitemap_index.xml": index("https://example.com/post-sitemap.xml"), "post-sitemap.xml": urlset(100)},
        {"sitemap.txt": "".join(f"https://example.com/{n}\n" for n in range(100))},
    ],
)  # fmt: skip
async def test_sitemap_of_another_program_is_counted_before_replaced(
    tmp_path: Path, files: dict[str, str]
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    with pytest.raises(PublishRefused, match="URLs listed: 30, where 100 are published: 70% fewer"):
        await put(tmp_path, 30)
    assert sorted(path.name for path in tmp_path.glob("*.*")) == sorted(
        name for name in files if "/" not in name
    )
    await put(tmp_path, 30, force=True)
    await put(tmp_path, 29)


async def test_a_sitemap_overwritten_by_another_program_is_counted(tmp_path: Path) -> None:
    await put(tmp_path, 30)
    (tmp_path / "sitemap.xml.gz").write_text(urlset(100))
    with pytest.raises(PublishRefused, match="URLs listed: 30, where 100 are published"):
        await put(tmp_path, 30)


class Posted:
    """A site of good pages, and links on one page that a stranger may write on."""

    def __init__(self, good: int, bad: int, status: int, path: str) -> None:
        self.site = Site()
        self.site.page("/", links=[f"/{n}" for n in range(good - 1)] + [path.format(n) for n in range(bad)])
        for number in range(good - 1):
            self.site.page(f"/{number}")
        for number in range(bad):
            self.site.page(path.format(number), status=status)


@pytest.mark.parametrize(
    ("good", "bad", "status", "path"),
    [
        (101, 30, 403, "/private/{}"), (101, 40, 500, "/broken-{}/x"), (101, 150, 404, "/none/{}"),
        (30, 271, 403, "/members/{}"), (6, 60, 500, "/at/{}/x"), (101, 200, 404, "/{}/rel/a.html"),
    ],
)  # fmt: skip
async def test_failing_places_do_not_stop_a_publication(
    tmp_path: Path, good: int, bad: int, status: int, path: str
) -> None:
    posted = Posted(good, bad, status, path)
    with posted.site.serve() as origin:
        for _ in range(2):
            listed = await published(settings(origin, tmp_path, state=str(tmp_path / "s.db")))
            assert len(listed) == good


async def test_a_site_that_stops_answering_is_refused(tmp_path: Path) -> None:
    """A firewall that lets 29 pages through: they do not answer any more either."""
    posted = Posted(30, 270, 403, "/members/{}")

    def blocked() -> None:
        for path in ["/", *(f"/{number}" for number in range(29))]:
            posted.site.page(path, status=403)

    with posted.site.serve() as origin:
        async with open_job(settings(origin, tmp_path)) as job:
            await job.crawl()
            blocked()
            with pytest.raises(
                PublishRefused, match="of 5 pages that had answered, 5 do not any more"
            ) as refused:
                await job.publish()
    assert "Of 300 fetched pages, 270 failed (90%" in str(refused.value)
    assert re.search(
        r"For example: http\S+/members/\d+, http\S+/members/\d+, http\S+/members/\d+\.$", str(refused.value)
    )
    assert not (tmp_path / "out/sitemap.xml.gz").exists()


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ('<meta name="robots" content="noindex">', "3 unlisted:noindex"),
        ('<link rel="canonical" href="/">', "3 unlisted:canonical"),
    ],
)
async def test_a_site_that_turns_noindex_by_mistake_is_refused(nights: Nights, head: str, said: str) -> None:
    await nights.night()
    for number in range(3):
        nights.page(f"/{number}", head=head, lastmod=WHEN.replace(day=2))
    with pytest.raises(
        PublishRefused, match=rf"Of 8 published pages, 3 would no longer .*{said}.*guard.max_verdict_change"
    ):
        await nights.night()
    await nights.night(max_verdict_change=0.5)
