"""The publish guard: a bad crawl does not replace a good sitemap, and an ordinary one is not held up."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.cli.demo.site import Site
from crawler.errors import PublishRefused
from crawler.model.outcome import Failed, code
from crawler.model.reasons import Cause, Why
from crawler.settings.sections import Guard
from crawler.sitemap.publish.guard import CrawlResult, EarlierPublications, check, failures
from tests.engine.test_crawl import published, settings
from tests.rules.test_keep_failing import WHEN, Nights
from tests.rules.test_keep_failing import nights as nights  # noqa: PLC0414 - a fixture
from tests.sitemap.test_publish import put

pytestmark = pytest.mark.anyio


def refusal(
    outcomes: dict[str, int],
    published: dict[str, int] | None = None,
    before: EarlierPublications = EarlierPublications(),  # noqa: B008 - frozen
    **chosen: Any,
) -> str:
    """The refusal of the guard; empty if it allows publication."""
    urls = sum(count for outcome, count in outcomes.items() if outcome.startswith(("listed", "kept")))
    try:
        check(Guard(**chosen), urls, before, CrawlResult(True, outcomes, published or {}))
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
        ({"listed": 30, "failed:not-found": 271}, "271 failed:not-found"),
        ({"listed": 2, "failed:server-error": 4}, ""),
        ({"listed": 60, "failed:dns": 20, "unlisted:noindex": 19, "moved": 1}, ""),
        ({"listed": 60, "failed:dns": 20, "unlisted:offsite": 900, "unlisted:robots": 900}, "Of 80 fetched pages"),
        ({"listed": 10, "kept:server-error": 90}, ""),
    ],
)  # fmt: skip
def test_too_many_failures_are_refused(outcomes: dict[str, int], said: str) -> None:
    assert said in refusal(outcomes)
    assert bool(said) == bool(refusal(outcomes))
    assert not refusal(outcomes, force=True)
    assert not refusal(outcomes, max_failed=1.0)


@given(st.dictionaries(st.sampled_from(list(Cause)), st.integers(1, 50)), st.integers(1, 500))
def test_pages_not_found_do_not_count_while_most_pages_answer(counts: dict[Cause, int], listed: int) -> None:
    outcomes = {code(Failed(cause)): count for cause, count in counts.items()} | {"listed": listed}
    dead = outcomes.get("failed:not-found", 0)
    assert ("failed:not-found" in failures(outcomes)) == (2 * dead > sum(outcomes.values()))


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


@pytest.mark.system
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


@pytest.mark.slow
async def test_a_first_crawl_with_mostly_failures_publishes_nothing(tmp_path: Path) -> None:
    site = Site()
    site.page("/", links=[f"/{number}" for number in range(300)])
    for number in range(300):
        site.page(f"/{number}", status=200 if number < 29 else 403)
    with (
        site.serve() as origin,
        pytest.raises(PublishRefused, match=r"Of 301 fetched pages, 271 failed \(90%"),
    ):
        await published(settings(origin, tmp_path))
    assert not (tmp_path / "out/sitemap.xml.gz").exists()


@pytest.mark.system
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
        PublishRefused, match=rf"Of 8 published pages, 3 would no longer .*{said}.*--max-verdict-change"
    ):
        await nights.night()
    await nights.night(max_verdict_change=0.5)
