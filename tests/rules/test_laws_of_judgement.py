"""What holds for any site, over the rules that compare pages: no content leaves the list, and names decide nothing.

The laws of single rules stand beside their other tests; those of whole crawls in `tests/engine`.
"""

import re
from collections.abc import Sequence
from itertools import count

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from crawler.parse.echo import Echo
from crawler.parse.extract import Extract
from crawler.parse.fingerprint import Folded, PageText, echoless, lasting
from crawler.parse.html import PageSource
from crawler.parse.url import Url
from crawler.rules import ignored_parts, soft_404
from crawler.rules.content_digest import is_suspicious
from crawler.rules.soft_404 import ShownPage
from crawler.rules.spellings import Copy, Repeat, copies, unlisted_repeats
from crawler.rules.traps import REQUESTS, questions_for, requests_for

HOME = "https://a.example"
SEGMENTS = st.sampled_from(["news", "News", "shop", "index.html", "a.html", "a", "de", "x9k2m4p7q1", "b;v=1"])
QUERIES = st.sampled_from(["", "", "?", "?x=1", "?x=1&y=2", "?y=2&x=1", "?x=", "?sid=a8f5f167f44f4964"])
URLS = st.builds(
    lambda parts, end, query: Url(f"{HOME}/{'/'.join(parts)}{end}{query}"),
    st.lists(SEGMENTS, max_size=4),
    st.sampled_from(["", "/"]),
    QUERIES,
)
BLOCKS = st.frozensets(st.integers(0, 9), max_size=6)
PAGES = st.builds(
    lambda blocks: ShownPage(
        Url("https://a.example/"), (PageText(tuple(sorted(blocks)), str(blocks)),), None, ()
    ),
    BLOCKS,
)


def site(contents: dict[Url, str]) -> list[Copy]:
    """Pages with one content each."""
    return [
        Copy(number, url, (content,), None, is_canonical=False, linked=number % 3, text=content)
        for number, (url, content) in enumerate(contents.items())
    ]


SITES = st.dictionaries(URLS, st.sampled_from("abc"), max_size=12).map(site)


@given(SITES)
def test_no_content_leaves_the_list_for_its_address(pages: list[Copy]) -> None:
    found, by_url = copies(pages), {page.url: page for page in pages}
    for page in pages:
        if page.id in found:
            other = by_url[found[page.id]]
            assert other.evidence == page.evidence
            assert other.id not in found
    assert {page.text for page in pages if page.id not in found} == {page.text for page in pages}


@given(SITES, SITES)
def test_another_site_changes_no_verdict(pages: list[Copy], others: list[Copy]) -> None:
    moved = [
        replace(page, id=page.id + 100, url=page.url.replace("a.example", "b.example")) for page in others
    ]
    found = copies([*moved, *pages])
    assert {number: url for number, url in found.items() if number < 100} == copies(pages)


@given(st.dictionaries(URLS, st.sampled_from("abc"), max_size=12))
def test_no_content_leaves_the_list_as_a_repeat(contents: dict[Url, str]) -> None:
    """The first page of each content is the original of the others."""
    originals, repeats = dict[str, Url](), list[Repeat]()
    for number, (url, content) in zip(count(), contents.items()):
        if content in originals:
            repeats.append(Repeat(number, url, originals[content]))
        originals.setdefault(content, url)
    gone = unlisted_repeats(repeats, {})
    assert {page.id for page in repeats} >= gone.keys()
    left = [content for number, content in enumerate(contents.values()) if number not in gone]
    assert {*left} == {*contents.values()}


@given(st.lists(st.tuples(URLS, URLS), max_size=8), st.lists(st.tuples(URLS, URLS), max_size=8))
def test_what_else_is_ignored_joins_no_other_pages(
    some: list[tuple[Url, Url]], more: list[tuple[Url, Url]]
) -> None:
    assume({url for pair in some for url in pair}.isdisjoint(url for pair in more for url in pair))
    one, other = ([pair for urls in all_ for pair in ignored_parts.pairs(*urls)] for all_ in (some, more))
    both = ignored_parts.listed_instead([*other, *one], ())
    assert both == dict(ignored_parts.listed_instead(one, ())) | dict(ignored_parts.listed_instead(other, ()))


@given(st.lists(PAGES, min_size=1, max_size=4), BLOCKS, st.lists(PAGES, max_size=4))
def test_no_page_that_is_known_to_be_true_is_missing(
    asked: list[ShownPage], start: frozenset[int], others: list[ShownPage]
) -> None:
    if found := soft_404.missing_page(asked, start, others):
        own = soft_404.shared([page.blocks for page in asked]).difference(start)
        assert not soft_404.is_missing(found, (PageText(tuple(sorted(start)), ""),))
        assert not any(soft_404.is_missing(found, page.said) for page in others if not own <= page.all_blocks)
        assert all(soft_404.is_missing(found, page.said) for page in asked)
        if len({page.blocks for page in asked}) == 1:
            assert not any(
                soft_404.is_missing(found, page.said) for page in others if page.blocks > own | start
            )


@given(st.integers(0, 10**7))
def test_each_content_pays_for_ten_requests(contents: int) -> None:
    assert requests_for(contents) < questions_for(contents) <= 10 * contents + 1_000
    assert requests_for(contents + 1) > requests_for(contents) >= REQUESTS


WORDS = ("lamp", "chair", "table", "shelf", "cups", "12", "345", "the", "of")
PATHS = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map("-".join), min_size=1, max_size=4
)


@given(PATHS)
def test_names_make_no_address_suspicious(parts: list[str]) -> None:
    others = dict(
        zip(WORDS, ("sofa", "stool", "couch", "spoon", "fork", "12", "345", "der", "zu"), strict=True)
    )
    renamed = re.sub("[a-z]+", lambda word: others[word[0]], "/".join(parts))
    assert is_suspicious(f"{HOME}/{renamed}") is is_suspicious(f"{HOME}/{'/'.join(parts)}")


@given(PATHS, SEGMENTS, QUERIES)
def test_what_is_suspicious_stays_so_with_more(parts: list[str], segment: str, query: str) -> None:
    if is_suspicious(f"{HOME}/{'/'.join(parts)}"):
        assert is_suspicious(f"{HOME}/{'/'.join([*parts, segment])}{query}")


@given(
    st.lists(st.sampled_from(["brass", "steel", "lamp", "chair", "of 12", "7"]), min_size=1, max_size=5),
    st.integers(0, 4),
    st.sampled_from(["copper", "silver", "nickel"]),
    PATHS,
)
def test_a_word_that_the_address_lacks_is_content(
    said: Sequence[str], at: int, word: str, parts: list[str]
) -> None:
    """Whatever else repeats the address, such a page is never the same as one without that word."""
    url = f"{HOME}/{'/'.join(parts)}?n=7"
    found = set[str | None]()
    for text in (said, [*said[: at % len(said)], word, *said[at % len(said) + 1 :]]):
        body = "".join(f"<p>{one}" for one in text).encode()
        wanted = frozenset({Extract.FINGERPRINT, Extract.ECHOLESS})
        found.add(PageSource(body, url, None, wanted).read().content)
    assert len(found) == 2


@pytest.mark.parametrize("volatile", [b"1,234 views", b"Generated in 0.2 s", b"12:30:01"])
@given(pieces=st.lists(st.sampled_from([b"lamp", b"chair 7", b"of brass", b"views"]), max_size=4))
def test_volatile_text_does_not_return_with_an_echo(volatile: bytes, pieces: list[bytes]) -> None:
    """What changes by itself is left out of a content, whether something of it repeats the address or not."""
    texts = (b"\0".join([*pieces, one, b"end"]) for one in (volatile, volatile.replace(b"2", b"3")))
    echo = Echo(f"{HOME}/lamp/chair-7")
    told = {
        echoless(folded, echo, lasting(folded))
        for folded in (Folded(b"title", text, b"", b"") for text in texts)
    }
    assert len(told) == 1
