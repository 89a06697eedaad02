"""Of which pages the text is fingerprinted."""

from datetime import UTC, datetime

import pytest

from crawler.model.facts import Facts
from crawler.model.reply import Headers, Response
from crawler.model.visit import Lease, Visit
from crawler.parse.extract import Extract
from crawler.parse.html import PageSource, extract
from crawler.parse.normalise import Normaliser
from crawler.parse.url import Url
from crawler.rules.content_digest import FINGERPRINTED_SHARE, is_sampled, is_suspicious, of_bytes, suffices
from crawler.rules.judge import Judge, JudgeRules
from crawler.rules.lastmod import DATE_SOURCES

AT = datetime(2024, 1, 2, tzinfo=UTC)
BODY = b"<p>text"
DATE, NOW = "Mon, 01 Jan 2024 00:00:00 GMT", "Tue, 02 Jan 2024 00:00:00 GMT"
PLAIN = next(url for n in range(99) if not is_sampled(url := f"https://a.example/{n}.html"))


def test_a_page_with_a_trusted_header_needs_no_fingerprint() -> None:
    assert suffices(PLAIN, BODY, None, is_dated=True)
    assert not suffices(PLAIN, BODY, None, is_dated=False)


@pytest.mark.parametrize(
    "url",
    [
        f"{PLAIN}?a=1",
        "https://a.example/dir/",
        "https://a.example/dir/index.html",
        "https://a.example/2026/11/22",
    ],
)
def test_pages_for_duplicates_and_traps_are_fingerprinted(url: str) -> None:
    assert not suffices(url, BODY, None, is_dated=True)


@pytest.mark.parametrize(
    ("header", "sources", "is_sparing"),
    [(DATE, "auto", True), ("", "auto", False), (NOW, "auto", False), (DATE, "page", False)],
)
def test_only_a_header_that_may_date_is_trusted(header: str, sources: str, is_sparing: bool) -> None:
    rules = JudgeRules("sitemap-crawler", Normaliser(), date_sources=DATE_SOURCES[sources])
    fields = Headers([("content-type", "text/html"), ("last-modified", header)])
    source = Judge(rules).markup(Lease(1, 1, Visit(Url(PLAIN), 1)), Response(200, fields, BODY), AT)
    assert source
    assert (Extract.SPARING in source.wanted) is is_sparing


@pytest.mark.parametrize(
    ("before", "enough"),
    [
        (Facts(200, digest=of_bytes(BODY)), True),
        (Facts(200, digest=of_bytes(b"<p>other")), False),
        (Facts(200, digest=of_bytes(BODY), content="0123456789abcdef"), False),
    ],
)
@pytest.mark.parametrize("is_dated", [True, False])
def test_in_later_run_page_is_fingerprinted_from_first_change(
    before: Facts, enough: bool, is_dated: bool
) -> None:
    assert suffices(PLAIN, BODY, before, is_dated=is_dated) is enough


def test_a_fixed_share_is_always_fingerprinted_on_whatever_host() -> None:
    sampled = [url for n in range(8_000) if is_sampled(url := f"https://a.example/{n}.html")]
    assert 0.8 < len(sampled) * FINGERPRINTED_SHARE / 8_000 < 1.2
    assert not suffices(sampled[0], BODY, None, is_dated=True)
    assert is_sampled(sampled[0].replace("a.example", "b.example:8080"))


def test_all_names_of_a_page_are_sampled_or_none() -> None:
    for n in range(50):
        names = (f"https://a.example/{n}", f"https://a.example/{n}.html", f"https://a.example/{n}.html.en")
        assert len({is_sampled(name) for name in names}) == 1


@pytest.mark.parametrize(
    ("body", "spared"),
    [
        (BODY, True),
        (b"<a href=x>y", True),
        (b"<a href=?sort=up>y", False),
        (b"<a href=//A.example:80/x?sort=up>y", False),
        (b"<a href=https://www.a.example/x?sort=up>y", False),
        (b"<a href=https://b.example/x?sort=up>y", True),
    ],
)
def test_page_that_links_to_queries_is_still_fingerprinted(body: bytes, spared: bool) -> None:
    sparing = extract(
        PageSource(body, PLAIN, charset="utf-8", wanted=frozenset({Extract.FINGERPRINT, Extract.SPARING}))
    )
    whole = extract(PageSource(body, PLAIN, charset="utf-8", wanted=frozenset({Extract.FINGERPRINT})))
    assert sparing.content == (None if spared else whole.content)
    assert (sparing.unordered == whole.unordered) is not spared


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/a/b/a", True), ("/1/2/1", True), ("/en/shop-en", True), ("/x?y=1", True), ("/a8f5f167f44f4964/x", True),
        ("/tag/tea+milk", True), ("/tag/tea,milk", True),
        ("/colour-red/colour-blue", True), ("/x.html/y.html", True), ("/a.php/b.php", True), ("/x.html/x/", True),
        ("/tea-milk-tea-milk", True), ("/a-b-a-b-a-b", True), ("/go/start.news.start", True),
        ("/%C3%BCber/%c3%bcber", True), ("/section-7/page-7.html", False), ("/2024/05/2024-05-17.html", False),
        ("/a/b", False), ("/", False), ("/java.base/java/util/List.html", False), ("/std/vec/struct.vec.html", False),
        ("/the-cat-and-the-hat", False), ("/%D0%BF%D1%80%D0%B8%D0%B2%D0%B5%D1%82", False), ("/a.html", False),
    ],
)  # fmt: skip
def test_suspicious_addresses(path: str, expected: bool) -> None:
    assert is_suspicious(f"https://a.example{path}") is expected
