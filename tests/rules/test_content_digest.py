"""Of which pages the text is fingerprinted."""

from datetime import UTC, datetime

import pytest

from crawler.model.facts import Facts
from crawler.parse import fingerprint
from crawler.parse.extract import Extract
from crawler.parse.html import PageSource, extract
from crawler.rules.content_digest import FINGERPRINTED_SHARE, is_sampled, suffices
from crawler.rules.lastmod import DATE_SOURCES

AT = datetime(2024, 1, 2, tzinfo=UTC)
BODY = b"<p>text"
AUTO = DATE_SOURCES["auto"]
PLAIN = next(url for n in range(99) if not is_sampled(url := f"https://a.example/{n}.html"))
BELIEVED = Facts(200, header=AT)


def test_a_page_with_a_trusted_header_needs_no_fingerprint() -> None:
    assert suffices(PLAIN, BODY, BELIEVED, None, AUTO)


@pytest.mark.parametrize(
    ("url", "facts", "sources"),
    [
        (PLAIN, Facts(200), "auto"),
        (PLAIN, Facts(200, header=AT, fresh=True), "auto"),
        (PLAIN, BELIEVED, "page"),
        (f"{PLAIN}?a=1", BELIEVED, "auto"),
        ("https://a.example/dir/", BELIEVED, "auto"),
        ("https://a.example/dir/index.html", BELIEVED, "auto"),
        ("https://a.example/2026/11/22", BELIEVED, "auto"),
    ],
)
def test_pages_for_dates_duplicates_and_traps_are_fingerprinted(url: str, facts: Facts, sources: str) -> None:
    assert not suffices(url, BODY, facts, None, DATE_SOURCES[sources])


@pytest.mark.parametrize(
    ("before", "enough"),
    [
        (fingerprint.of_bytes(BODY), True),
        (fingerprint.of_bytes(b"<p>other"), False),
        ("0123456789abcdef", False),
    ],
)
@pytest.mark.parametrize("facts", [BELIEVED, Facts(200)])
def test_in_later_run_page_is_fingerprinted_from_first_change(
    before: str, enough: bool, facts: Facts
) -> None:
    assert suffices(PLAIN, BODY, facts, Facts(200, content=before), AUTO) is enough


def test_a_fixed_share_is_always_fingerprinted_on_whatever_host() -> None:
    sampled = [url for n in range(8_000) if is_sampled(url := f"https://a.example/{n}.html")]
    assert 0.8 < len(sampled) * FINGERPRINTED_SHARE / 8_000 < 1.2
    assert not suffices(sampled[0], BODY, BELIEVED, None, AUTO)
    assert is_sampled(sampled[0].replace("a.example", "b.example:8080"))


def test_all_names_of_a_page_are_sampled_or_none() -> None:
    for n in range(50):
        names = (f"https://a.example/{n}", f"https://a.example/{n}.html", f"https://a.example/{n}.html.en")
        assert len({is_sampled(name) for name in names}) == 1


@pytest.mark.parametrize(
    ("body", "digested"),
    [
        (BODY, True),
        (b"<a href=x>y", True),
        (b"<a href=?sort=up>y", False),
        (b"<a href=//A.example:80/x?sort=up>y", False),
        (b"<a href=https://www.a.example/x?sort=up>y", False),
        (b"<a href=https://b.example/x?sort=up>y", True),
    ],
)
def test_page_that_links_to_queries_is_still_fingerprinted(body: bytes, digested: bool) -> None:
    sparing = extract(
        PageSource(body, PLAIN, charset="utf-8", wanted=frozenset({Extract.FINGERPRINT, Extract.DIGEST}))
    )
    whole = extract(PageSource(body, PLAIN, charset="utf-8", wanted=frozenset({Extract.FINGERPRINT})))
    assert sparing.content == (fingerprint.of_bytes(body) if digested else whole.content)
    assert (sparing.unordered == whole.unordered) is not digested
