"""The findings in synthetic states: one of each, new ones, those that need a complete run, and constant memory."""

import random
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.model.external import Answer, ExternalCheck, ExternalRow
from crawler.model.reasons import Cause, SeedKind, Why
from crawler.model.rows import EdgeRow, PageRow
from crawler.model.seed import Seed
from crawler.parse.url import Url
from crawler.report.builder import ReportBuilder
from crawler.report.catalogue import NEEDS_COMPLETE, Code, Severity
from crawler.report.findings import Findings
from crawler.report.forms import as_html, as_json, as_markdown, as_text
from crawler.report.history import EarlierFindings, packed, packed_files, packed_groups
from crawler.report.report import Finding, SiteReport
from crawler.report.url_kind import UrlKind, kind_of
from tests.report.made import AWAY, INPUT, NIGHT, OLD_SITEMAP, SITE, START, MadeState, planted

GOLDEN = {
    "broken-link": ["/gone new 3", "/legal.html 15"],
    "server-error": ["/down new 1"],
    "unreachable": ["/slow 1"],
    "redirect-loop": ["/loop new 0"],
    "canonical-broken": ["/red 0"],
    "sitemap-stale": ["/red 0"],
    "broken-external": [f"{AWAY}/gone new 1"],
    "client-error": ["/odd new 1"],
    "canonical-chain": ["/blue new 0"],
    "noindex-canonical": ["/thanks 0"],
    "canonical-conflict": ["/about new 0"],
    "noindex-for-bot": ["/about new 0"],
    "redirect-chain": ["/shop 1"],
    "redirect-linked": ["/old-name new 1", "/shop 1"],
    "orphan": ["/dated 0", "/workshop 0"],
    "vanished": ["/spring new 0"],
    "duplicate-content": ["/twin-1 0"],
    "duplicate-title": ["/about 0"],
    "hreflang-no-return": ["/lanterns/storm 0"],
    "hreflang-code": ["/lanterns/storm 0"],
    "hreflang-target": ["/lanterns/storm 0"],
    "hreflang-conflict": ["/lanterns/storm 0"],
    "hreflang-no-self": ["/lanterns/storm 0"],
    "images-cut": ["/lanterns/ship 0"],
    "broken-image": ["/ship.jpg 1"],
    "broken-script": ["/shop.js new 9"],
    "broken-style": [f"{AWAY}/a.css 1"],
    "blocked-file": ["/p.js 1"],
    "trap": ["/events/2031/05 0"],
    "lastmod-lies": [" 0"],
    "robots-line": ["/robots.txt 0"],
    "hash-routes": ["/about new 0"],
    "not-rendered": ["/workshop new 0"],
    "restricted": ["/members new 1"],
    "robots-linked": ["/basket 1"],
    "noindex-linked": ["/thanks 1"],
    "needs-scripts": ["/about new 0"],
    "no-lastmod": ["/workshop new 0"],
}


def finding_of(report: SiteReport, code: Code) -> Finding | None:
    return next((finding for finding in report.findings if finding.code is code), None)


def told(state: MadeState) -> dict[str, list[str]]:
    """For each code the items: path, `new`, number of links."""
    return {
        finding.code.value: sorted(
            f"{item.url.removeprefix(SITE)}{' new' if item.new else ''} {item.links}"
            for item in finding.items
        )
        for finding in state.report().findings
    }


def test_site_with_one_of_each_finding() -> None:
    assert told(planted()) == GOLDEN
    # A site with a page that has no date cannot have the same date on all.
    assert list(GOLDEN) == [code.value for code in Code if code is not Code.LASTMOD_UNIFORM]


@pytest.mark.parametrize(
    ("contents", "found"),
    [
        (["1", "1"], {"duplicate-content": (1, 2)}),
        (["1", "1", "1", "2"], {"duplicate-content": (1, 3), "duplicate-title": (1, 4)}),
        (["1", "2"], {"duplicate-title": (1, 2)}),
        (["", ""], {"duplicate-title": (1, 2)}),
        (["1", ""], {"duplicate-title": (1, 2)}),
    ],
)
def test_pages_with_one_content_are_no_duplicate_titles(
    contents: list[str], found: dict[str, tuple[int, int]]
) -> None:
    state = MadeState()
    for number, content in enumerate(contents):
        state.page(f"/{number}", title="One", content=content, seed=START)
    assert {one.code.value: (one.count, one.pages) for one in state.report().findings} == found


def test_findings_are_ordered_by_severity() -> None:
    order = list(Severity)
    places = [order.index(code.severity) for code in Code]
    assert places == sorted(places)


def test_broken_link_shows_linking_pages() -> None:
    finding = finding_of(planted().report(), Code.BROKEN_LINK)
    assert finding
    legal, gone = finding.items
    assert (legal.url, legal.site_wide, len(legal.sources)) == (f"{SITE}/legal.html", True, 8)
    assert list(gone.sources) == [f"{SITE}/lanterns/{name}" for name in ("candle", "paper", "storm")]
    assert (finding.count, finding.new, finding.links, finding.pages) == (2, 1, 18, 15)
    assert "18 links on 15 pages" in finding.says


def test_broken_url_found_in_sitemap_shows_the_sitemap() -> None:
    state = MadeState()
    state.page("/", seed=START)
    state.page("/lost", "failed:not-found", status=404, seed=OLD_SITEMAP)
    [item] = state.report().findings[0].items
    assert list(item.sources) == [OLD_SITEMAP.name]


def test_broken_redirect_target_shows_the_redirect() -> None:
    state = MadeState()
    state.page("/", links=["/old"], seed=START)
    state.page("/old", "moved", redirect="/lost")
    state.page("/lost", "failed:not-found", status=404)
    broken = finding_of(state.report(), Code.BROKEN_LINK)
    assert broken
    [item] = broken.items
    assert (item.url, list(item.sources), item.detail) == (
        f"{SITE}/old",
        [f"{SITE}/"],
        f"redirects to {SITE}/lost",
    )
    assert finding_of(state.report(), Code.REDIRECT_LINKED) is None
    assert (broken.links, broken.pages) == (1, 1)


@pytest.mark.parametrize(
    ("found", "new", "mended"),
    [
        (None, False, {}),
        ({}, True, {}),
        ({"broken-link": ["/old"]}, False, {}),
        ({"redirect-linked": ["/old"]}, True, {}),  # that it fails now does not mend it
        ({"broken-link": ["/lost", "/away"]}, True, {"broken-link": 1}),
    ],
)
def test_a_finding_is_the_same_if_code_and_url_are(
    found: dict[str, list[str]] | None, new: bool, mended: dict[str, int]
) -> None:
    state = MadeState(2, found=found)
    state.page("/", links=["/old"], seed=START, was="listed")
    state.page("/old", "moved", redirect="/lost", was="moved")
    state.page("/lost", "failed:not-found", status=404, was="failed:not-found")
    state.page("/away", "failed:not-found", status=404, run=1)
    assert told(state) == {"broken-link": [f"/old{' new' if new else ''} 1"]}
    report = state.report()
    assert {code.value: some.count for code, some in report.changes.mended.items()} == (
        mended and {"broken-link": 2}
    )


@pytest.mark.parametrize("outcome", ["", "listed"])
@pytest.mark.parametrize("seen", [True, False])
def test_a_redirect_whose_end_is_open_is_not_new(outcome: str, seen: bool) -> None:
    """If its end failed before, it had another finding, and an unfinished run cannot tell."""
    state = MadeState(2, status="interrupted", found={"broken-link": ["/old", "/far"]})
    state.page("/", links=["/old", "/far"], seed=START, was="listed")
    state.page("/old", "moved", redirect="/lost", was="moved")
    state.page("/far", "moved", redirect="/old", was="moved")
    state.page("/lost", outcome, run=2 if seen or outcome else 1, was="failed:not-found")
    new = " new" if outcome else ""
    assert told(state) == {
        "redirect-chain": [f"/far{new} 1"],
        "redirect-linked": [f"/far{new} 1", f"/old{new} 1"],
    }


def test_redirect_chain_shows_each_hop_and_cycle_is_a_loop() -> None:
    state = MadeState()
    state.page("/", seed=START)
    for path, to in {"/1": "/2", "/2": "/3", "/3": "/4", "/a": "/b", "/b": "/a"}.items():
        state.page(path, "moved", redirect=to)
    state.page("/4", "unlisted:canonical", canonical="/")
    report = state.report()
    chains, loops = finding_of(report, Code.REDIRECT_CHAIN), finding_of(report, Code.REDIRECT_LOOP)
    assert chains
    assert loops
    assert [item.detail.replace(SITE, "") for item in chains.items] == ["/2 → /3 → /4"]
    assert [item.url.removeprefix(SITE) for item in loops.items] == ["/a", "/b"]


def test_pages_of_chains_are_those_that_link_to_their_first_urls() -> None:
    state = MadeState()
    for path in ("/", "/x", "/y"):
        state.page(path, links=["/1", "/a", "/2", "/lost-1", "/single"], seed=START)
    state.page("/only-single", links=["/single", "/2", "/lost-1"], seed=START)
    moves = {
        "/1": "/2",
        "/2": "/3",
        "/a": "/b",
        "/b": "/",
        "/lost-1": "/lost-2",
        "/lost-2": "/lost",
        "/single": "/",
    }
    for path, to in moves.items():
        state.page(path, "moved", redirect=to)
    state.page("/lost", "failed:not-found", status=404)
    state.page("/3", seed=START)
    chains, linked = (
        finding_of(state.report(), code) for code in (Code.REDIRECT_CHAIN, Code.REDIRECT_LINKED)
    )
    assert chains
    assert linked
    assert (chains.count, chains.links, chains.pages) == (2, 6, 3)
    assert (linked.count, linked.links, linked.pages) == (4, 14, 4)


def test_start_urls_and_redirect_targets_are_no_orphans() -> None:
    state = MadeState()
    state.page("/", links=["/old"], seed=START)
    state.page("/old", "moved", redirect="/new")
    state.page("/new", seed=OLD_SITEMAP)
    state.page("/self", links=["/self"], seed=OLD_SITEMAP)
    orphans = finding_of(state.report(), Code.ORPHAN)
    assert orphans
    assert [item.url for item in orphans.items] == [f"{SITE}/self"]


@pytest.mark.parametrize("status", ["crawling", "abandoned"])
def test_unfinished_run_omits_findings_that_need_a_complete_one(status: str) -> None:
    report = planted(status=status).report()
    codes = {finding.code for finding in report.findings}
    assert not codes & NEEDS_COMPLETE
    assert {Code.BROKEN_LINK, Code.REDIRECT_CHAIN, Code.CANONICAL_BROKEN} <= codes
    assert (report.changes.removed.count, report.changes.dated.count) == (0, 0)


def test_first_run_has_no_new_findings() -> None:
    assert not [line for lines in told(planted(run=1)).values() for line in lines if "new" in line]


def test_every_outcome_has_a_kind_and_every_failure_is_found() -> None:
    for cause in Cause:
        state = MadeState()
        state.page("/", links=["/x"], seed=START)
        state.page("/x", f"failed:{cause.value}")
        assert len(state.report().findings) == 1, cause
        assert kind_of(f"kept:{cause.value}") is kind_of(f"failed:{cause.value}")
    assert {kind_of(f"unlisted:{why.value}") for why in Why} <= set(UrlKind)
    assert kind_of("listed") is UrlKind.LISTED
    assert kind_of("") is UrlKind.OPEN


@pytest.mark.parametrize(
    "outcome", ["unlisted:offsite", "unlisted:excluded", "unlisted:type", "kept:timeout", "listed"]
)
def test_sitemap_is_not_stale_for_listed_or_excluded_urls(outcome: str) -> None:
    state = MadeState()
    state.page("/", links=["/x"], seed=START)
    state.page("/x", outcome, seed=OLD_SITEMAP)
    assert finding_of(state.report(), Code.SITEMAP_STALE) is None


def external(
    code: str, was: str | None = None, *, page_was: str | None = "unlisted:offsite", **more: object
) -> MadeState:
    """A second run whose start page leads to a URL of another site."""
    state = MadeState(2, found={})
    state.page("/", links=[f"{AWAY}/x"], seed=START)
    row = ExternalRow(code, None, "why", NIGHT, 2, was)
    state.page(f"{AWAY}/x", "unlisted:offsite", status=None, external=row, was=page_was)
    state.more = {"check": ExternalCheck(2, NIGHT)} | more
    return state


@pytest.mark.parametrize("answer", list(Answer))
def test_only_broken_answers_of_other_sites_are_findings(answer: Answer) -> None:
    found = finding_of(external(answer.value).report(), Code.BROKEN_EXTERNAL)
    assert (found is not None) == answer.value.startswith("broken:")
    if found:
        [item] = found.items
        assert item.detail == ("why" if answer is Answer.NOT_FOUND else f"{answer.says}: why")
        assert item.sources == [f"{SITE}/"]


@pytest.mark.parametrize(
    ("was", "page_was", "found", "new"),
    [
        ("ok", "unlisted:offsite", False, True),
        ("unknown:refused", "unlisted:offsite", False, True),
        ("broken:dns", "unlisted:offsite", True, False),
        (None, "unlisted:offsite", False, False),  # asked for the first time: it may have been so for long
        (None, "unlisted:offsite", True, False),
        (None, None, False, True),  # linked for the first time
    ],
)
def test_broken_external_is_new_if_it_was_well_or_not_linked(
    was: str | None, page_was: str | None, found: bool, new: bool
) -> None:
    state = external("broken:not-found", was, page_was=page_was)
    state.found = {"broken-external": [f"{AWAY}/x"]} if found else {}
    finding = finding_of(state.report(), Code.BROKEN_EXTERNAL)
    assert finding
    assert finding.new == new


def test_groups_and_files_of_the_run_before_are_packed() -> None:
    pages = [(3, 3), (7, 7), (9, 3), (4_000_000, 7)]
    files = ["https://a.example/ä.png", "https://a.example/b.png"]
    before = EarlierFindings(
        {
            "duplicate-title": packed_groups(pages),
            "images broken-image": packed_files(files),
            "orphan": packed([7]),
        }
    )
    assert [before.group(Code.DUPLICATE_TITLE, page) for page, _ in pages] == [3, 7, 3, 7]
    assert before.group(Code.DUPLICATE_TITLE, 8) is None
    assert before.group(Code.ORPHAN, 7) is None
    assert before.of(7) == {Code.DUPLICATE_TITLE, Code.ORPHAN}
    assert before.files("images", Code.BROKEN_IMAGE) == files
    assert before.files("images", Code.BLOCKED_FILE) == ()


@pytest.mark.parametrize(
    ("code", "mended"), [("ok", 1), ("unknown:refused", 0), ("broken:not-found", 0), (None, 1)]
)
def test_broken_external_is_mended_if_it_answers_or_is_unlinked(code: str | None, mended: int) -> None:
    state = external(code or "broken:not-found", "broken:dns")
    state.found = {"broken-external": [f"{AWAY}/x"]}
    if code is None:
        state.page("/", seed=START)
        state.page(f"{AWAY}/x", "unlisted:offsite", run=1)
    assert sum(some.count for some in state.report().changes.mended.values()) == mended
    state.more = {}
    assert state.report().changes.mended == {}, "nothing was checked"


def test_external_links_are_no_findings_of_run_without_check() -> None:
    assert external("broken:not-found", check=None).report().findings == []


def test_redirect_or_canonical_to_broken_external_is_reported() -> None:
    state = external("broken:not-found")
    state.page("/", seed=START)
    state.page("/go", "moved", redirect=f"{AWAY}/x")
    state.page("/copy", "unlisted:canonical", canonical=f"{AWAY}/x")
    found = told(state)
    assert found["broken-external"] == [f"{AWAY}/x 0"]
    assert found["canonical-broken"] == ["/copy new 0"]
    state = external("broken:not-found")
    state.page("/", seed=START)
    state.page("/copy", "unlisted:canonical", canonical=f"{AWAY}/x")
    assert set(told(state)) == {"canonical-broken"}


def test_items_are_limited_to_most_linked_and_rest_is_counted() -> None:
    state = MadeState()
    state.page("/", links=["/1", "/2", "/3"], seed=START)
    state.page("/a", links=["/2", "/3"])
    state.page("/b", links=["/3"])
    for path in ("/1", "/2", "/3"):
        state.page(path, "failed:not-found", status=404)
    [cut] = state.report(most=2).findings
    assert ([item.url[-1] for item in cut.items], cut.count, cut.more) == (["3", "2"], 3, 1)
    [whole] = state.report(most=0).findings
    assert whole.more == 0


def test_largest_groups_are_shown_with_their_pages() -> None:
    state = MadeState()
    for title, pages in {"b": 2, "a": 2, "many": 20, "one": 1}.items():
        for number in range(pages):
            state.page(f"/{title}{number:02}", title=title, seed=START)
    finding = finding_of(state.report(most=2), Code.DUPLICATE_TITLE)
    assert finding
    assert (finding.count, finding.pages, finding.more) == (3, 24, 1)
    many, first = finding.items
    assert (many.detail, many.size, len(many.sources), many.url[-2:]) == ("many", 20, 8, "00")
    assert (first.detail, [url[-3:] for url in first.sources]) == ("a", ["a01"])


def test_pages_of_different_hosts_are_no_duplicates() -> None:
    state = MadeState()
    state.page("/a", title="t", content="c", seed=START)
    state.page("https://www.shop.example/a", title="t", content="c", seed=START)
    assert state.report().findings == []


@given(st.randoms(use_true_random=False))
def test_the_order_of_edges_changes_no_count(order: random.Random) -> None:
    state = planted()
    rows = list(state.leading())
    order.shuffle(rows)
    findings = Findings(state.run, complete=True)
    for page in state.in_order():
        findings.add_page(page)
    findings.close()
    for edges in rows:
        findings.link(edges)
    found = [one for page in state.in_order() for one in findings.found(page)]
    by_path = {(one.code.value, one.page.url.removeprefix(SITE)): one.links for one in found}
    assert by_path["broken-link", "/legal.html"] == 15
    assert findings.pages_in(Code.BROKEN_LINK) == 15


@pytest.mark.parametrize("turned", [False, True])
def test_pages_with_most_links_do_not_depend_on_ids(turned: bool) -> None:
    """Ids are in the order in which pages were found, which is another one in each crawl."""
    state, paths = MadeState(), [f"/{number:02}" for number in range(60)]
    for path in reversed(paths) if turned else paths:
        state.id(path)
    for path in paths:
        state.page(path, links=["/gone", *(["/lost"] if path >= "/58" else [])])
    for path in ("/gone", "/lost"):
        state.page(path, "failed:not-found", status=404)
    found = finding_of(state.report(), Code.BROKEN_LINK)
    assert found
    pages = [(page.removeprefix(SITE), urls) for page, urls in found.by_page]
    assert pages == [("/58", 2), ("/59", 2), *((path, 1) for path in paths[:48])]


def test_edges_with_unknown_ids_are_ignored() -> None:
    findings = Findings(1, complete=True)
    page = PageRow(1, Url(f"{SITE}/"), 1, "listed", seed=START)
    findings.add_page(page)
    findings.close()
    findings.link(EdgeRow(1, page.url, [99_999, -99_999, 1], 99_999, 0))
    assert [one.code for one in findings.found(page)] == [Code.NO_LASTMOD]


# -- a site of 20,000 URLs -----------------------------------------------------------------------------------

SIZE = 10_000


def many_pages() -> Iterator[PageRow]:
    seeds = (None, None, Seed(SeedKind.SITEMAP, f"{SITE}/sitemap.xml"), INPUT)
    outcomes = ("listed", "failed:not-found", "moved", "unlisted:noindex", "listed", "unlisted:robots")
    for number in range(1, SIZE + 1):
        outcome = outcomes[number % 6]
        yield PageRow(
            number, Url(f"{SITE}/folder-{number % 997}/{number:07}"), 2, outcome, f"{SITE}/{number % 10}", 200, number % 7,
            outcomes[number % 5], int(NIGHT), "header", None, f"{number // 2:016x}", seeds[number % 4],
            f"Title {number // 3}", "text/html", number, number % 900,
        )  # fmt: skip


def many_edges() -> Iterator[EdgeRow]:
    for number in range(1, SIZE + 1):
        links = [(number * step) % SIZE + 1 for step in range(3, 19)]
        yield EdgeRow(number, Url(f"{SITE}/{number}"), links, (number + 1) % SIZE if number % 6 == 2 else 0)


@pytest.mark.slow
def test_report_of_large_site_uses_little_memory() -> None:
    state = MadeState(2)
    known = state.known()
    builder = ReportBuilder(known, Findings.of(known))
    for page in many_pages():
        builder.findings.add_page(page)
        builder.add_page(page)
    tracemalloc.start()
    builder.findings.close()
    for edges in many_edges():
        builder.findings.link(edges)
    for page in many_pages():
        builder.pick(page)
    report = builder.report({number: f"{SITE}/{number}" for number in builder.wanted()})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4_000_000 + 150 * SIZE, "bytes: what is shown, and little for each URL"
    assert len(as_html.text_of(report)) < as_html.LARGEST
    assert len(as_markdown.text_of(report)) < as_markdown.ROOM
    assert all(len(form.text_of(report)) < 2_000_000 for form in (as_json, as_text))


@pytest.mark.parametrize(
    ("days", "found"),
    [([3] * 10, 1), ([3] * 9, 0), ([3] * 9 + [4], 0), ([3] * 10 + [None], 0), ([None] * 10, 0)],
)
def test_one_date_on_every_page_is_a_finding(days: list[int | None], found: int) -> None:
    state = MadeState()
    for number, day in enumerate(days):
        state.page(f"/{number}", lastmod=int(NIGHT) - day * 86_400 if day else None)
    finding = finding_of(state.report(), Code.LASTMOD_UNIFORM)
    assert (finding.count if finding else 0) == found
    if finding:
        assert finding.items[0].detail == "2026-11-15T11:06:40Z"
    open_state = MadeState(status="crawling")
    open_state.pages = state.pages
    assert finding_of(open_state.report(), Code.LASTMOD_UNIFORM) is None
